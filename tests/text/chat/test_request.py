"""The body of a chat request, read for the product's own providers."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.errors import TextEngineError
from voiceapp.text.chat import request
from voiceapp.text.chat.request import MAX_MESSAGES, MAX_TOOLS, STRUCTURED
from voiceapp.text.provider import Called, FunctionTool, Returned, Said

HELLO = {"role": "user", "content": "Hello"}
LOOK = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def body(**fields: Any) -> dict[str, Any]:
    return {"messages": [HELLO], **fields}


def format_of(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}


def test_a_conversation_is_read_as_it_was() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    read = request.read(
        {
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": parts},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "seen"},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
                {"role": "developer", "content": "Be brief."},
            ],
            "model": "m",
            "max_tokens": 9,
        }
    )
    assert read.reply.instructions == "Be kind."
    assert read.reply.history == (
        Said("user", "one\ntwo"),
        Called("c", "look", "{}"),
        Returned("c", "seen"),
        Said("assistant", "No."),
        Said("system", "Be brief."),
    )
    assert (read.model, read.reply.max_tokens, read.structured, read.include_usage) == ("m", 9, False, False)
    assert not read.reply.spoken


def test_tools_and_the_choice_among_them_are_read() -> None:
    read = request.read(body(tools=[LOOK], tool_choice={"type": "function", "function": {"name": "look"}}))
    assert read.reply.tools == (FunctionTool("look", "Look.", {"type": "object"}),)
    assert read.reply.tool_choice == "look"
    assert read.reply.several_calls
    one = request.read(body(tools=[LOOK], tool_choice="required", parallel_tool_calls=False))
    assert (one.reply.tool_choice, one.reply.several_calls) == ("required", False)
    assert request.read(body()).reply.tool_choice == "auto"


def test_a_schema_is_one_function_that_must_be_called() -> None:
    read = request.read(body(response_format=format_of(SCHEMA)))
    assert read.structured
    assert (read.reply.tool_choice, read.reply.several_calls) == (STRUCTURED, False)
    [tool] = read.reply.tools
    assert (tool.name, tool.parameters) == (STRUCTURED, SCHEMA)
    # Where there are tools, the model may call those.
    both = request.read(body(response_format=format_of(SCHEMA), tools=[LOOK]))
    assert not both.structured
    assert not request.read(body(response_format={"type": "text"})).structured


def test_the_newer_limit_goes_before_the_older() -> None:
    assert request.read(body(max_completion_tokens=5, max_tokens=9)).reply.max_tokens == 5
    assert request.read(body(max_completion_tokens=None, max_tokens=9)).reply.max_tokens == 9
    assert request.read(body()).reply.max_tokens is None


@pytest.mark.parametrize(
    ("asked", "code", "param"),
    [
        ({}, "missing_required_parameter", "messages"),
        ({"messages": "Hello"}, "invalid_type", "messages"),
        ({"messages": []}, "empty_array", "messages"),
        ({"messages": [HELLO] * (MAX_MESSAGES + 1)}, "array_above_max_length", "messages"),
        ({"messages": ["Hello"]}, "invalid_type", "messages[0]"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "invalid_type", "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "unsupported_content",
         "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "invalid_type", "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "invalid_type",
         "messages[0].tool_calls"),
        (body(model=7), "invalid_type", "model"),
        (body(max_tokens=True), "invalid_type", "max_tokens"),
        (body(max_tokens=0), "integer_out_of_range", "max_tokens"),
        (body(n=2), "unsupported_value", "n"),
        (body(stop=["x"]), "unsupported_parameter", "stop"),
        (body(logprobs=True), "unsupported_parameter", "logprobs"),
        (body(modalities=["audio"]), "unsupported_value", "modalities"),
        (body(stream_options=[1]), "invalid_type", "stream_options"),
        (body(tools={}), "invalid_type", "tools"),
        (body(tools=[LOOK] * (MAX_TOOLS + 1)), "array_above_max_length", "tools"),
        (body(tools=[{"type": "web_search"}]), "invalid_type", "tools[0]"),
        (body(tools=[{"type": "function", "function": {"name": ""}}]), "invalid_type",
         "tools[0].function.name"),
        (body(tool_choice="look"), "invalid_value", "tool_choice"),
        (body(tool_choice={"function": {"name": "other"}}, tools=[LOOK]), "invalid_value", "tool_choice"),
        (body(response_format={"type": "json_object"}), "unsupported_value", "response_format"),
        (body(response_format=format_of({"type": "array"})), "invalid_type",
         "response_format.json_schema.schema"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_the_services_code_and_the_place(
    asked: dict[str, Any], code: str, param: str
) -> None:
    with pytest.raises(TextEngineError) as refused:
        request.read(asked)
    assert (refused.value.code, refused.value.param) == (code, param)
