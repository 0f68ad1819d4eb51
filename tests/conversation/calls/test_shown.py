"""Every call reaches the page as the four events of the contract, in its order, whatever the service says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.approval_talk import CALL, REQUEST, SESSION, Talk
from tests.parts.contracts import ToolCalls
from tests.parts.examples import examples
from voiceapp.conversation.actions import SendBrowser
from voiceapp.conversation.calls.shown import MAX_ARGUMENTS_CHARS
from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol import tool_calls
from voiceapp.protocol.tool_calls import ToolCallOrder

CONTRACT = ToolCalls()
WHERE = {"response_id": "r", "item_id": "f", "output_index": 3}
FUNCTION = {"id": "f", "type": "function_call", "call_id": "c", "name": "clock", "arguments": ""}


def shown(talk: Talk) -> list[dict[str, Any]]:
    """Return the events of tool calls so far, each checked against the contract."""
    told = [json.loads(action.text) for action in talk.actions if isinstance(action, SendBrowser)]
    events = [event for event in told if tool_calls.is_tool_call(event)]
    order = ToolCallOrder(RemoteProtocolError)
    for event in events:
        CONTRACT.check(event)
        order.take(tool_calls.read(event))
    return events


def brief(talk: Talk) -> list[str]:
    return [event["type"].removeprefix("response.tool_call.") for event in shown(talk)]


def begin(talk: Talk) -> None:
    talk.hear({"type": "response.output_item.added", **WHERE, "item": FUNCTION})


def more(talk: Talk, delta: str) -> None:
    talk.hear({"type": "response.function_call_arguments.delta", **WHERE, "call_id": "c", "delta": delta})


def whole(talk: Talk, arguments: str) -> None:
    done = {"type": "response.function_call_arguments.done", **WHERE, "call_id": "c", "name": "clock"}
    talk.hear({**done, "arguments": arguments})


def test_a_function_from_its_first_letter_to_its_output() -> None:
    talk = Talk()
    begin(talk)
    more(talk, '{"a"')
    more(talk, ":1}")
    whole(talk, '{"a":1}')
    assert brief(talk) == ["started", "delta", "delta"], "it runs"
    talk.actions += talk.state.tool_returned("c", "12:00", status="completed", now=1)
    head = {"index": 3, "item_id": "f", "call_id": "c"}
    assert shown(talk)[0] == {"type": "response.tool_call.started", **head, "name": "clock"}
    assert shown(talk)[-1] == {
        "type": "response.tool_call.completed", **head, "name": "clock", "arguments": '{"a":1}',
    }  # fmt: skip


def test_a_function_that_failed_says_why() -> None:
    talk = Talk()
    begin(talk)
    whole(talk, "{}")
    output = json.dumps({"error": {"code": "timeout", "message": "Too slow."}})
    talk.actions += talk.state.tool_returned("c", output, status="failed", now=1)
    assert shown(talk)[-1]["error"] == {"type": "tool_error", "code": "timeout", "message": "Too slow."}


def test_arguments_that_were_not_told_in_pieces_are_told_before_the_end() -> None:
    talk = Talk()
    whole(talk, '{"a":1}')
    assert brief(talk) == ["started", "delta"]
    talk.actions += talk.state.tool_returned("c", "1", status="completed", now=1)
    assert shown(talk)[-1]["arguments"] == '{"a":1}'


def test_an_mcp_call_is_shown_under_its_items_id() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True)
    talk.runs()
    assert brief(talk) == ["started", "delta", "completed"]
    assert {(event["call_id"], event["item_id"]) for event in shown(talk)} == {("mcp_1", "mcp_1")}
    assert shown(talk)[-1]["arguments"] == REQUEST["arguments"]


def test_an_mcp_call_that_failed_says_why() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True)
    talk.runs("failed")
    error = {"type": "tool_execution_error", "code": "tool_execution_error", "message": "Sold out."}
    assert shown(talk)[-1]["error"] == error


def test_an_mcp_call_that_failed_without_a_reason_ends_all_the_same() -> None:
    talk = Talk()
    talk.item(CALL)
    talk.hear({"type": "response.mcp_call.failed", "item_id": "mcp_1", "output_index": 0}, now=10)
    assert brief(talk) == ["started"]
    talk.tick(2_000)
    assert brief(talk) == ["started", "error"]


@pytest.mark.parametrize("how", ["deny", "time out", "lose the service", "hang up"])
def test_a_call_that_never_ran_ends_in_an_error(how: str) -> None:
    talk = Talk()
    talk.asks()
    match how:
        case "deny":
            talk.answer(approve=False)
        case "time out":
            talk.tick(60_000)
        case "lose the service":
            talk.actions += talk.state.disconnected(1)
        case "hang up":
            talk.actions += talk.state.finish(1)
    assert brief(talk)[-1] == "error"
    wanted = {"deny": "not_approved", "time out": "not_approved", "lose the service": "upstream_lost",
              "hang up": "cancelled"}  # fmt: skip
    assert shown(talk)[-1]["error"]["code"] == wanted[how]


def test_arguments_beyond_the_bound_end_the_call_on_the_page_only() -> None:
    talk = Talk()
    begin(talk)
    whole(talk, json.dumps({"a": "x" * MAX_ARGUMENTS_CHARS}))
    assert shown(talk)[-1]["error"]["code"] == "arguments_too_long"
    talk.actions += talk.state.tool_returned("c", "1", status="completed", now=1)
    assert brief(talk) == ["started", "error"]


STEPS = st.sampled_from(
    ["begin", "more", "whole", "return", "fail", "asks", "runs", "breaks", "allow", "deny", "tick", "lose",
     "come back", "done", "incomplete"]
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_any_order_is_legal(steps: list[str]) -> None:  # noqa: C901 - one step for each event
    talk = Talk(ask_first=("clock",))
    for now, step in enumerate(steps):
        match step:
            case "begin":
                begin(talk)
            case "more":
                more(talk, '{"a":')
            case "whole":
                whole(talk, '{"a":1}')
            case "return" | "fail":
                status = "completed" if step == "return" else "failed"
                talk.actions += talk.state.tool_returned("c", "out", status=status, now=now)
            case "asks":
                talk.asks(now=now)
            case "runs" | "breaks":
                talk.runs("completed" if step == "runs" else "failed", now=now)
            case "allow" | "deny":
                talk.answer(approve=step == "allow", now=now)
                talk.answer(approve=step == "allow", request="approval_c", now=now)
            case "tick":
                talk.tick(now * 10_000)
            case "lose":
                talk.actions += talk.state.disconnected(now)
            case "come back":
                talk.hear({"type": "session.updated", "session": SESSION}, now=now)
            case "done":
                talk.hear({"type": "response.done", "response": {"id": "r", "status": "completed"}}, now=now)
            case "incomplete":
                talk.item({**CALL, "status": "incomplete"}, done=True, now=now)
    talk.actions += talk.state.finish(len(steps))
    events = shown(talk)
    ended = [event["call_id"] for event in events if event["type"].endswith(("completed", "error"))]
    assert len(ended) == len(set(ended))
    # Nothing hangs: what was begun and made has ended by now.
    assert {"mcp_1"} & {event["call_id"] for event in events} <= set(ended)
