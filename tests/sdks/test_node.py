"""Clients for Node, each a program of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.sdks.programs import (
    FOLDER,
    Engine,
    assert_conversation,
    assert_cut,
    assert_tool,
    hold_conversation,
    says_42,
)


@pytest.fixture(scope="module")
def node() -> str:
    """The command; the tests are skipped where there is no Node, but not where its packages are missing."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node here")
    assert (FOLDER / "node_modules").is_dir(), "Install the clients first: npm ci --prefix tests/sdks"
    return found


@pytest.mark.parametrize("kind", ["openai", "azure", "beta-azure"])
def test_openai(engine: Engine, spoken_question: Path, node: str, kind: str) -> None:
    told = hold_conversation([node, "openai_node.mjs", kind], engine, spoken_question)
    assert_conversation(told)


def test_openai_agents(engine: Engine, spoken_question: Path, node: str) -> None:
    told = hold_conversation([node, "agents_node.mjs"], engine, spoken_question)
    assert_conversation(told)
    assert_cut(told["cut"])


@pytest.mark.parametrize("kind", ["openai", "azure"])
def test_chat_completions(engine: Engine, spoken_question: Path, node: str, kind: str) -> None:
    told = hold_conversation([node, "chat_node.mjs", kind], engine, spoken_question)
    assert says_42(told["whole"])
    assert says_42(told["streamed"])
    assert told["tokens"] > 0
    assert_tool(told["tool"])
    assert told["refusal"] == "400 empty_array"
