"""Calls of servers' tools, from the model's last argument to the result."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.engine_parts import counting_ids
from voiceapp.engine.session.actions import Action
from voiceapp.engine.session.config import SessionConfig
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import ConversationItems, SessionItem
from voiceapp.engine.session.mcp.calls import _MAX_OPEN, HostedMcpCall, HostedMcpCalls
from voiceapp.engine.session.mcp.tools import Offer
from voiceapp.errors import ProtocolError
from voiceapp.protocol.events import ServerEvent
from voiceapp.tools.mcp.messages import CallMcpTool, McpAddress, McpTool

SHOP = McpAddress("shop", "https://shop.example/mcp")


class Calls:
    """The calls of a session, and all that it emitted and asked for."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.actions: list[Action] = []
        self.items = ConversationItems()
        context = Context(
            config=SessionConfig("sess_1", "model", 0), items=self.items, conversation_id="conv_1",
            new_id=counting_ids(), emit=self._emit, act=self.actions.append,
        )  # fmt: skip
        self.calls = HostedMcpCalls(context)

    def _emit(self, kind: type[ServerEvent], **fields: Any) -> None:
        self.events.append((kind.type_name(), fields))

    def begin(self, arguments: str = '{"n": 1}', *, ask: bool = False, number: int = 1) -> SessionItem:
        request_id = f"mcpr_{number}" if ask else None
        item = SessionItem({
            "id": f"mcp_{number}", "type": "mcp_call", "name": "buy", "arguments": arguments,
            "approval_request_id": request_id, "status": "in_progress", "output": None, "error": None,
        })  # fmt: skip
        self.items.insert(item, None)
        offer = Offer(SHOP, McpTool("buy"), needs_approval=ask)
        self.calls.begin(HostedMcpCall(item, offer, "resp_1", 0, in_conversation=True))
        return item

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


def answer(request_id: str, *, approve: bool, reason: str | None = None) -> SessionItem:
    fields = {"id": "a", "type": "mcp_approval_response", "approval_request_id": request_id}
    return SessionItem({**fields, "approve": approve, "reason": reason})


def test_a_call_runs_at_once_and_ends_with_its_output() -> None:
    calls = Calls()
    item = calls.begin()
    assert calls.actions == [CallMcpTool("mcp_1", SHOP, "buy", {"n": 1})]
    calls.calls.called("mcp_1", "bought", None)
    assert (item.fields["status"], item.fields["output"]) == ("completed", "bought")
    assert calls.kinds == [
        "response.mcp_call.in_progress", "response.mcp_call.completed", "conversation.item.done",
        "response.output_item.done",
    ]  # fmt: skip
    # A second word of the same call is none.
    calls.calls.called("mcp_1", "again", None)
    assert item.fields["output"] == "bought"


def test_a_failed_call_keeps_its_error() -> None:
    calls = Calls()
    item = calls.begin()
    error = {"type": "http_error", "code": 500, "message": "Oops."}
    calls.calls.called("mcp_1", None, error)
    assert (item.fields["status"], item.fields["error"]) == ("failed", error)
    assert "response.mcp_call.failed" in calls.kinds


@pytest.mark.parametrize("arguments", ["[1]", "{", '"x"', "null"])
def test_arguments_that_are_no_object_never_reach_the_server(arguments: str) -> None:
    calls = Calls()
    item = calls.begin(arguments)
    assert calls.actions == []
    assert item.fields["error"]["message"] == "The arguments are no JSON object."


def test_empty_arguments_are_an_empty_object() -> None:
    calls = Calls()
    calls.begin("")
    assert calls.actions == [CallMcpTool("mcp_1", SHOP, "buy", {})]


def test_a_call_that_is_asked_about_runs_once_it_is_allowed() -> None:
    calls = Calls()
    calls.begin(ask=True)
    assert calls.actions == []
    allowed = answer("mcpr_1", approve=True)
    calls.calls.check(allowed)
    calls.calls.answer(allowed)
    assert calls.actions == [CallMcpTool("mcp_1", SHOP, "buy", {"n": 1})]
    # It was answered: a second answer is to nothing.
    with pytest.raises(ProtocolError) as refused:
        calls.calls.check(allowed)
    assert refused.value.code == "invalid_approval_request_id"
    calls.calls.answer(answer("mcpr_1", approve=False))
    assert len(calls.actions) == 1


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [(None, "The user did not approve it."), ("Too dear.", "The user did not approve this call: Too dear.")],
)
def test_a_call_that_is_not_allowed_fails_with_the_reason(reason: str | None, sentence: str) -> None:
    calls = Calls()
    item = calls.begin(ask=True)
    calls.calls.answer(answer("mcpr_1", approve=False, reason=reason))
    assert calls.actions == []
    assert item.fields["error"] == {"type": "tool_execution_error", "message": sentence}


def test_only_so_many_calls_are_open_at_once() -> None:
    calls = Calls()
    for number in range(_MAX_OPEN):
        calls.begin(ask=True, number=number)
    late = calls.begin(number=_MAX_OPEN)
    assert late.fields["status"] == "failed"
    assert calls.actions == []
    calls.calls.answer(answer("mcpr_0", approve=False))
    assert calls.begin(number=_MAX_OPEN + 1).fields["status"] == "in_progress"
