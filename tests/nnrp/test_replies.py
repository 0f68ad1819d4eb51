"""Chat chunks as the profile's events, and as one body."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.chat_server import calls, chunk, ending, fragment, text
from tests.parts.contracts import ToolCalls
from voiceapp.errors import RemoteProtocolError
from voiceapp.nnrp import profile, wire
from voiceapp.nnrp.data_layouts import Status
from voiceapp.nnrp.replies import MAX_REPLY_CHARS, ReplyEvents
from voiceapp.nnrp.wire import MessageType
from voiceapp.protocol.chat_chunks import TAKEN_BACK
from voiceapp.protocol.tool_calls import ToolCallFault

CONTRACT = ToolCalls()

FAULT = ToolCallFault(type="server_error", code="gone", message="It is gone.")

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_text_calls_and_usage_become_events_and_one_body() -> None:
    reply = ReplyEvents("r", with_usage=True)
    chunks = [
        chunk(),
        text("Wait"),
        text(" here."),
        calls(fragment(0, id="a", name="look", arguments='{"x":')),
        calls(fragment(0, arguments="1}")),
        ending(),
        chunk(usage=USAGE),
    ]
    events = [event for one in chunks for event in reply.feed(one)] + reply.finish()
    assert [event["type"].removeprefix("response.") for event in events] == [
        "output_text.delta",
        "output_text.delta",
        "tool_call.started",
        "tool_call.delta",
        "tool_call.delta",
        "tool_call.completed",
        "usage",
    ]
    for event in events:
        if event["type"] in CONTRACT.schemas:
            CONTRACT.check(event)
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}}
    assert reply.body() == {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Wait here.",
                    "refusal": None,
                    "tool_calls": [call],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }


def test_usage_and_chunks_are_told_only_to_who_wants_them() -> None:
    quiet, chatty = ReplyEvents("r", with_usage=False), ReplyEvents("r", with_usage=False, with_chunks=True)
    assert quiet.feed(text("a")) == [profile.text_event(0, "a")]
    assert chatty.feed(text("a")) == [{**profile.text_event(0, "a"), "openai_chunk": text("a")}]
    assert quiet.feed(chunk(usage=USAGE)) == []
    assert quiet.usage == USAGE


def test_a_refusal_is_text_and_kept_as_a_refusal() -> None:
    reply = ReplyEvents("r", with_usage=False)
    said = chunk({"index": 0, "delta": {"refusal": "No."}, "finish_reason": "stop"})
    assert reply.feed(said) == [profile.text_event(0, "No.")]
    assert reply.body()["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": "No."}


@pytest.mark.parametrize(
    ("chunks", "code"),
    [
        ([], "missing_terminal_event"),
        ([chunk(), chunk(usage=USAGE)], "missing_terminal_event"),
        ([calls(fragment(0, id="a", arguments="{}")), ending()], "tool_call_without_name"),
    ],
)
def test_a_stream_that_is_not_whole_is_a_fault(chunks: list[dict[str, Any]], code: str) -> None:
    reply = ReplyEvents("r", with_usage=False)
    for one in chunks:
        reply.feed(one)
    with pytest.raises(RemoteProtocolError) as caught:
        reply.finish()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "cut",
    [[text("a")], [calls(fragment(0, id="a", name="f"))], [calls(fragment(0, name="f", arguments="{}"))]],
)
def test_a_stream_that_does_not_say_why_it_ended_is_not_whole(cut: list[dict[str, Any]]) -> None:
    reply = ReplyEvents("r", with_usage=False)
    for one in cut:
        reply.feed(one)
    with pytest.raises(RemoteProtocolError) as caught:
        reply.finish()
    assert caught.value.code == "missing_terminal_event"
    assert all(event["type"] == "response.tool_call.error" for event in reply.abort(FAULT))


def test_what_is_with_the_client_cannot_be_taken_back() -> None:
    reply = ReplyEvents("r", with_usage=False)
    reply.feed(text("Hm."))
    assert reply.feed(dict(TAKEN_BACK)) == []
    reply.feed(text("Good day!", finish_reason="stop"))
    assert reply.body()["choices"][0]["message"]["content"] == "Hm.Good day!"


def test_a_reply_has_a_bound_and_its_tool_calls_end_with_it() -> None:
    reply = ReplyEvents("r", with_usage=False)
    (started,) = reply.feed(calls(fragment(0, id="a", name="f")))
    with pytest.raises(RemoteProtocolError) as caught:
        reply.feed(text("x" * (MAX_REPLY_CHARS + 1)))
    assert caught.value.code == "reply_too_long"
    (failed,) = reply.abort(FAULT)
    CONTRACT.check(failed)
    assert (started["call_id"], failed["type"]) == ("a", "response.tool_call.error")


def test_the_longest_reply_fits_a_packet() -> None:
    reply = ReplyEvents("r", with_usage=False)
    reply.feed(text("\x01" * MAX_REPLY_CHARS, finish_reason="stop"))
    metadata, packed = profile.write_result(Status.OK, profile.completed_event(reply.body()))
    wire.encode(MessageType.RESULT_PUSH, metadata, packed)
