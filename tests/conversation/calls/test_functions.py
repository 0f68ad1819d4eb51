"""Function calls: each answered once, one follow-up for them all."""

from __future__ import annotations

from itertools import count, permutations
from typing import Any, TypeVar

import pytest

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import CallTool, Save, SendUpstream
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ItemRecord, ToolCallRecord
from voiceapp.protocol import codec
from voiceapp.types import JsonObject

Kept = TypeVar("Kept", ItemRecord, ToolCallRecord)


def saved(actions: list[Any], kind: type[Kept]) -> list[Kept]:
    return [a.record for a in actions if isinstance(a, Save) and isinstance(a.record, kind)]


def conversation() -> Conversation:
    talk = Conversation(AssistantConfig(slug="a", name="A"), (f"id_{n}" for n in count()))
    tell(talk, {"type": "session.updated", "session": {}})
    return talk


def tell(talk: Conversation, event: JsonObject, now: float = 0) -> list[object]:
    fields = {"event_id": "e", **event}
    return list(talk.receive_server(codec.server_event(fields), "{}", now))


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


def upstream(actions: list[object]) -> list[JsonObject]:
    return [action.fields for action in actions if isinstance(action, SendUpstream)]


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


def test_a_spoken_turn_starts_when_speech_does() -> None:
    talk = conversation()
    tell(talk, {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}, now=1000)
    tell(talk, {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 2, "item_id": "u"}, now=3000)
    item = {"id": "u", "type": "message", "role": "user", "status": "completed"}
    tell(talk, {"type": "conversation.item.added", "item": item}, now=3001)
    done = tell(talk, {"type": "conversation.item.done", "item": item}, now=3002)
    [record] = saved(done, ItemRecord)
    assert (record.started_ms, record.ended_ms) == (1000, 3002)


def test_a_transcript_that_never_comes_fails_after_fifteen_seconds() -> None:
    talk = conversation()
    item = {"id": "u", "type": "message", "role": "user", "status": "completed"}
    item["content"] = [{"type": "input_audio", "transcript": None}]  # type: ignore[assignment]
    tell(talk, {"type": "conversation.item.done", "item": item}, now=1000)
    assert talk.tick(15_999) == []
    [record] = saved(talk.tick(16_000), ItemRecord)
    assert record.transcript_status == "failed"
    assert talk.tick(60_000) == []


def test_history_fits_its_budget_and_keeps_pairs_together() -> None:
    talk = conversation()
    for n in range(200):
        role, kind = ("user", "input_text") if n % 2 == 0 else ("assistant", "output_text")
        item = {"id": f"m{n}", "type": "message", "role": role, "status": "completed"}
        item["content"] = [{"type": kind, "text": f"turn {n} " + "x" * 600}]  # type: ignore[assignment]
        tell(talk, {"type": "conversation.item.done", "item": item})
    call_item = {"id": "c", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    tell(talk, {"type": "conversation.item.done", "item": call_item})
    lonely = {"id": "c2", "type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"}
    tell(talk, {"type": "conversation.item.done", "item": lonely})
    output = {"id": "o", "type": "function_call_output", "call_id": "call_1", "output": "42"}
    tell(talk, {"type": "conversation.item.done", "item": output})
    sent = upstream(tell(talk, {"type": "session.created", "session": {"type": "realtime"}}))
    creates = [event["item"] for event in sent if event["type"] == "conversation.item.create"]
    assert [item["id"] for item in creates[-2:]] == ["c", "o"]
    assert "c2" not in {item["id"] for item in creates}
    assert creates[-3]["content"][0]["text"].startswith("turn 199 ")
    assert sum(len(str(item)) for item in creates) < 80_000
