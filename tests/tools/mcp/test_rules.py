"""Which tools of a server may be used, and which are asked about first."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.tools.mcp.messages import McpTool
from voiceapp.tools.mcp.rules import allowed, needs_approval

BUY = McpTool("buy")
LOOK = McpTool("look", annotations={"readOnlyHint": True})


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        (None, {"buy", "look"}),
        ([], set()),
        (["buy"], {"buy"}),
        ({}, {"buy", "look"}),
        ({"tool_names": ["look"]}, {"look"}),
        ({"read_only": True}, {"look"}),
        ({"read_only": False}, {"buy"}),
        ({"tool_names": ["buy"], "read_only": True}, set()),
    ],
)
def test_the_tools_that_a_server_may_offer(wanted: Any, offered: set[str]) -> None:
    assert {tool.name for tool in (BUY, LOOK) if allowed(wanted, tool)} == offered


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (None, {"buy", "look"}),
        ("always", {"buy", "look"}),
        ("never", set()),
        ({}, {"buy", "look"}),
        ({"never": {"read_only": True}}, {"buy"}),
        ({"never": {"tool_names": ["buy"]}}, {"look"}),
        ({"never": {}}, {"buy", "look"}),
        ({"always": {"tool_names": ["buy"]}}, {"buy", "look"}),
        # What is in both is asked about.
        ({"always": {"tool_names": ["buy"]}, "never": {"tool_names": ["buy", "look"]}}, {"buy"}),
        ({"always": {}, "never": {"tool_names": ["look"]}}, {"buy", "look"}),
    ],
)
def test_nothing_runs_unasked_by_mistake(rule: Any, asked: set[str]) -> None:
    assert {tool.name for tool in (BUY, LOOK) if needs_approval(rule, tool)} == asked


@pytest.mark.parametrize("annotations", [None, {}, {"readOnlyHint": "true"}, {"readOnlyHint": False}])
def test_a_tool_changes_something_unless_its_server_says_otherwise(annotations: Any) -> None:
    assert not McpTool("f", annotations=annotations).read_only
    assert LOOK.read_only
