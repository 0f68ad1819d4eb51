"""Checks of the tools that a client offers."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.assistants.mcp_servers import MAX_HEADERS, MAX_SERVERS, MAX_TOOLS
from voiceapp.engine.session.tool_validation import no_mcp, tool_choice, tools
from voiceapp.errors import ProtocolError
from voiceapp.protocol import codec

FUNCTION = {"type": "function", "name": "clock", "description": "Tell the time.", "parameters": {}}
SERVER = {"type": "mcp", "server_label": "shop", "server_url": "https://shop.example/mcp"}


def server(**fields: Any) -> dict[str, Any]:
    return {**SERVER, **fields}


def test_lawful_tools_are_kept_in_their_order() -> None:
    whole = server(
        authorization="token", headers={"X-Shop": "1"}, allowed_tools=["buy"],
        require_approval={"never": {"tool_names": ["look"]}}, server_description=None,
    )  # fmt: skip
    assert tools([FUNCTION, whole], "tools") == [FUNCTION, whole]
    # A tool without a type is a function.
    assert tools([{"name": "f"}], "tools") == [{"type": "function", "name": "f"}]
    assert tools([server(allowed_tools={"read_only": True}, require_approval="always")], "tools")


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({}, "invalid_type", "tools"),
        ([{**FUNCTION}] * (MAX_TOOLS + 1), "array_above_max_length", "tools"),
        (["clock"], "invalid_type", "tools[0]"),
        ([{"type": "web_search"}], "invalid_value", "tools[0].type"),
        ([{"type": "function"}], "missing_required_parameter", "tools[0].name"),
        ([{"name": "tell time"}], "invalid_value", "tools[0].name"),
        ([{"name": "x" * 65}], "invalid_value", "tools[0].name"),
        ([{"name": "f", "parameters": []}], "invalid_type", "tools[0].parameters"),
        ([{"name": "f", "extra": 1}], "unknown_parameter", "tools[0].extra"),
        ([SERVER, SERVER], "invalid_value", "tools"),
        ([server(server_label=f"s{n}") for n in range(MAX_SERVERS + 1)], "array_above_max_length", "tools"),
        ([server(server_url="ftp://x")], "invalid_value", "tools[0].server_url"),
        ([server(connector_id="dropbox")], "invalid_value", "tools[0].connector_id"),
        ([server(authorization="line\nbreak")], "invalid_value", "tools[0].authorization"),
        ([server(headers={"Host": "x"})], "invalid_value", "tools[0].headers"),
        ([server(headers={"a b": "x"})], "invalid_value", "tools[0].headers"),
        ([server(headers={f"X-{n}": "" for n in range(MAX_HEADERS + 1)})], "object_above_max_properties",
         "tools[0].headers"),
        ([server(allowed_tools=[7])], "invalid_type", "tools[0].allowed_tools[0]"),
        ([server(require_approval="sometimes")], "invalid_value", "tools[0].require_approval"),
    ],
)  # fmt: skip
def test_wrong_tools_are_refused_with_their_place(given: Any, code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        tools(given, "tools")
    assert (refused.value.code, refused.value.param) == (code, param)


@pytest.mark.parametrize(
    "choice",
    [
        "none",
        "auto",
        "required",
        {"type": "function", "name": "clock"},
        {"type": "mcp", "server_label": "shop"},
        {"type": "mcp", "server_label": "shop", "name": "buy"},
    ],
)
def test_lawful_choices_are_kept(choice: Any) -> None:
    assert tool_choice(choice, "tool_choice") == choice


@pytest.mark.parametrize(
    ("choice", "param"),
    [
        ("any", "tool_choice"),
        (None, "tool_choice"),
        ({"type": "function"}, "tool_choice.name"),
        ({"type": "tool", "name": "x"}, "tool_choice.type"),
        ({"type": "mcp"}, "tool_choice.server_label"),
    ],
)
def test_other_choices_are_refused(choice: Any, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        tool_choice(choice, "tool_choice")
    assert refused.value.param == param


@pytest.mark.parametrize("kind", ["session.update", "response.create"])
def test_a_session_without_events_for_servers_takes_none(kind: str) -> None:
    name = kind.partition(".")[0]
    no_mcp(codec.client_event({"type": kind, name: {"tools": [FUNCTION]}}))
    no_mcp(codec.client_event({"type": kind, name: {}}))
    with pytest.raises(ProtocolError) as refused:
        no_mcp(codec.client_event({"type": kind, name: {"tools": [FUNCTION, SERVER]}}))
    assert refused.value.param == f"{name}.tools[1].type"
