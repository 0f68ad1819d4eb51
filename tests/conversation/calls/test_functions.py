"""Function calls: each answered once, one follow-up for them all."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.parts.relay_talk import conversation, saved, tell, upstream
from voiceapp.conversation.actions import CallTool
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.types import JsonObject


def call(talk: Conversation, n: int, arguments: str = "{}") -> list[object]:
    return tell(
        talk,
        {
            "type": "response.function_call_arguments.done",
            "response_id": "r",
            "item_id": f"item_{n}",
            "output_index": n,
            "call_id": f"call_{n}",
            "name": "clock",
            "arguments": arguments,
        },
    )


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
@pytest.mark.parametrize("early", range(4))
def test_three_calls_get_three_outputs_and_one_response(order: tuple[int, ...], early: int) -> None:
    talk = conversation()
    tell(talk, {"type": "response.created", "response": {"id": "r"}})
    for n in order:
        assert [a for a in call(talk, n) if isinstance(a, CallTool)]
    sent: list[JsonObject] = []
    for at, n in enumerate(order):
        if at == early:
            sent += upstream(tell(talk, {"type": "response.done", "response": {"id": "r"}}))
        sent += upstream(list(talk.tool_returned(f"call_{n}", "12:00", status="completed", now=5)))
    if early == 3:
        assert not [event for event in sent if event["type"] == "response.create"]
        sent += upstream(tell(talk, {"type": "response.done", "response": {"id": "r"}}))
    outputs = [event["item"]["call_id"] for event in sent if event["type"] == "conversation.item.create"]
    assert outputs == [f"call_{n}" for n in order]
    assert [event["type"] for event in sent].count("response.create") == 1
    assert sent[-1]["type"] == "response.create"


def test_a_call_is_answered_once() -> None:
    talk = conversation()
    call(talk, 1)
    assert [a for a in call(talk, 1) if isinstance(a, CallTool)] == []
    first = talk.tool_returned("call_1", "x", status="completed", now=1)
    assert saved(first, ToolCallRecord)
    assert talk.tool_returned("call_1", "x", status="completed", now=2) == []
    assert [a for a in call(talk, 1) if isinstance(a, CallTool)] == []


def test_a_response_that_began_meanwhile_needs_no_follow_up() -> None:
    talk = conversation()
    tell(talk, {"type": "response.created", "response": {"id": "r"}})
    call(talk, 1)
    talk.tool_returned("call_1", "x", status="completed", now=1)
    tell(talk, {"type": "response.created", "response": {"id": "r2"}})
    assert upstream(tell(talk, {"type": "response.done", "response": {"id": "r2"}})) == []


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '"text"', "x" * 1_000_000, '{"a": "\\u0000"}'])
def test_raw_arguments_are_kept_whatever_they_are(arguments: str) -> None:
    talk = conversation()
    [made] = [a for a in call(talk, 1, arguments) if isinstance(a, CallTool)]
    assert made.arguments == arguments
    [record] = saved(talk.tool_returned("call_1", "{}", status="failed", now=1), ToolCallRecord)
    assert record.arguments == arguments
