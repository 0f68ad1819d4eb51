"""Clients for Python that need an environment of their own, each a program of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parts.places import ROOT
from tests.sdks.programs import Engine, assert_conversation, assert_cut, hold_conversation


@pytest.fixture(scope="module")
def python() -> str:
    """The Python that has the clients."""
    folder = Path(os.environ.get("CLIENTS_ENV", ROOT / ".venv-clients"))
    found = folder / "bin" / "python"
    assert found.exists(), f"Install requirements-clients.lock into a virtual environment at {folder} first."
    return str(found)


def test_openai_agents(engine: Engine, spoken_question: Path, python: str) -> None:
    told = hold_conversation([python, "agents_python.py"], engine, spoken_question)
    assert_conversation(told)
    assert_cut(told["cut"])


@pytest.mark.parametrize("kind", ["openai", "azure", "azure-preview"])
def test_livekit(engine: Engine, spoken_question: Path, python: str, kind: str) -> None:
    told = hold_conversation([python, "livekit_python.py", kind], engine, spoken_question)
    assert_conversation(told)
