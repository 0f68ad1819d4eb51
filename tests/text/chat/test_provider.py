"""Thinking by chat completions: what is asked, and chunks as deltas."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.errors import TextEngineError
from voiceapp.text.chat.provider import ChunkReader, chat_body, messages
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Finished,
    FunctionTool,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
)


def test_calls_in_a_row_share_one_message_and_outputs_follow() -> None:
    history = (
        Said("user", "go"), Called("a", "f", "{}"), Called("b", "g", "{}"), Returned("a", "1"),
        Returned("b", "2"), Said("assistant", "Done."),
    )  # fmt: skip
    found = messages(ReplyRequest("", history, spoken=True))
    assert "read aloud" in found[0]["content"]
    assert [message["role"] for message in found[1:]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in found[2]["tool_calls"]] == ["a", "b"]


def test_what_is_asked_is_the_body_of_a_chat_request() -> None:
    tools = (FunctionTool("f", "Does f."),)
    asked = ReplyRequest("Be kind.", (Said("user", "Hi"),), tools=tools, spoken=False, max_tokens=5)
    function = {"name": "f", "description": "Does f.", "parameters": {"type": "object", "properties": {}}}
    assert chat_body(asked) == {
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "auto",
    }


def test_a_choice_without_tools_is_not_sent() -> None:
    assert chat_body(ReplyRequest("", ())).keys() == {"messages", "stream_options"}
    one = ReplyRequest("", (), tools=(FunctionTool("f"),), tool_choice="f", several_calls=False)
    assert chat_body(one)["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert chat_body(one)["parallel_tool_calls"] is False


def test_chunks_are_read_whatever_is_left_out_of_them() -> None:
    reader = ChunkReader()
    odd_chunks: list[dict[str, Any]] = [
        {},
        {"choices": None},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
    ]
    for odd in odd_chunks:
        assert reader.feed(odd) == []
    assert reader.feed({"choices": [{"delta": {"content": "Hi"}}]}) == [TextDelta("Hi")]
    nameless = {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    assert reader.feed({"choices": [{"delta": nameless}]}) == [], "a call begins with its name"
    with pytest.raises(TextEngineError, match="broke off"):
        reader.finish()
    reader.feed({"choices": [{"finish_reason": "eos"}]})
    assert reader.finish() == [Finished("stop")]


def test_a_calls_end_comes_with_the_replys() -> None:
    reader = ChunkReader()
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    found = reader.feed({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "length"}]})
    assert found == [CallStarted(0, "a", "f"), CallArguments(0, "{}")]
    reader.feed({"usage": {"prompt_tokens": 4, "completion_tokens": 2}})
    assert reader.finish() == [CallFinished(0), Finished("max_output_tokens", 4, 2)]
