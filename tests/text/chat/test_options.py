"""What a chat service does not take, learnt from its refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.text.chat.options import ServiceOptions
from voiceapp.types import JsonObject

LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
BUY = {"type": "function", "function": {"name": "buy", "parameters": {"type": "array"}}}
BODY: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "What may temperature and max_tokens be?"}],
    "max_tokens": 50,
    "temperature": 0,
    "stream_options": {"include_usage": True},
    "parallel_tool_calls": False,
    "tools": [LOOK, BUY],
    "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
}


def openai_says(
    message: str, param: str | None = None, code: str = "unsupported_parameter"
) -> dict[str, Any]:
    return {"message": message, "type": "invalid_request_error", "param": param, "code": code}


def mistral_says(*loc: Any) -> dict[str, Any]:
    fault = {
        "type": "extra_forbidden",
        "loc": list(loc),
        "msg": "Extra inputs are not permitted",
        "input": BODY,
    }
    return {"detail": [fault]}


REFUSALS: list[tuple[Any, str]] = [
    (
        openai_says(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        "max_tokens",
    ),
    (
        openai_says(
            "Unsupported value: 'temperature' does not support 0 with this model. "
            "Only the default (1) value is supported.",
            "temperature",
            "unsupported_value",
        ),
        "temperature",
    ),
    (
        openai_says("Unsupported parameter: 'parallel_tool_calls' is not supported with this model."),
        "parallel_tool_calls",
    ),
    (openai_says("No.", "stream_options", "x"), "stream_options"),
    (openai_says("No.", "$.stream_options.include_usage", "x"), "stream_options"),
    (openai_says("No.", "body.response_format", "x"), "response_format"),
    (mistral_says("body", "stream_options"), "stream_options"),
    ({"object": "error", "message": mistral_says("body", "parallel_tool_calls")}, "parallel_tool_calls"),
    ({"error_code": "BAD_REQUEST", "message": 'Bad request: json: unknown field "stream_options"\n'},
     "stream_options"),
    ({"object": "error", "type": "BadRequestError", "param": None, "code": 400,
      "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'response_format'), 'input': {}}]"},
     "response_format"),
    ("Unrecognized request argument supplied: parallel_tool_calls", "parallel_tool_calls"),
    ({"detail": "`temperature` and other parameters of sampling are not supported"}, "temperature"),
    ({"message": "this model does not support tools"}, "tools"),
    ({"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'},
     "tools"),
]  # fmt: skip


@pytest.mark.parametrize(("refusal", "name"), REFUSALS)
def test_what_is_refused_by_name_is_left_out_from_then_on(refusal: Any, name: str) -> None:
    options = ServiceOptions()
    assert options.fitted(BODY) == BODY
    assert options.learn(refusal, BODY) == name
    fitted = options.fitted(BODY)
    assert name not in fitted
    if name != "max_tokens":
        assert options.learn(refusal, fitted) == "", "nothing more can be done"
    others = BODY.keys() - {name} - ({"tool_choice", "parallel_tool_calls"} if name == "tools" else set())
    assert others <= fitted.keys()
    assert fitted.get("max_completion_tokens") == (50 if name == "max_tokens" else None)


@pytest.mark.parametrize("new_limit", [False, True])
def test_a_limit_goes_by_its_other_name_and_then_not_at_all(new_limit: bool) -> None:
    options = ServiceOptions(new_limit=new_limit)
    names = ["max_completion_tokens", "max_tokens"] if new_limit else ["max_tokens", "max_completion_tokens"]
    for name, other in (names, reversed(names)):
        fitted = options.fitted(BODY)
        assert (fitted[name], fitted.get(other)) == (50, None)
        assert options.learn(openai_says("No.", name), fitted) == name
    fitted = options.fitted(BODY)
    assert not fitted.keys() & set(names)
    # A program may ask by either name.
    asked = {**BODY, "max_completion_tokens": 9}
    del asked["max_tokens"]
    assert not options.fitted(asked).keys() & set(names)


def test_a_limit_that_nobody_asked_for_is_not_sent() -> None:
    assert ServiceOptions(new_limit=True).fitted({"messages": []}) == {"messages": []}


@pytest.mark.parametrize(
    "refusal",
    [
        openai_says("The model `m` does not exist", "model", "model_not_found"),
        openai_says("'messages' is too long; temperature plays no role", "messages", "invalid"),
        mistral_says("body", "messages", 0, "content"),
        openai_says("Invalid 'temperature': must be at most 2.", "temperature", "decimal_above_max_value"),
        openai_says("Invalid type for 'temperature': expected a number.", "temperature", "invalid_type"),
        openai_says("max_tokens is too large: 50.", "max_tokens", "invalid_value"),
        openai_says("No.", "unheard_of"),
        openai_says("This model's maximum context length is 10 tokens.", None, "context_length_exceeded"),
        {"message": "You use tools, says the user"},
        {"detail": []},
        "",
        None,
        [[[[[[[[["temperature"]]]]]]]]],
    ],
)
def test_what_names_something_needed_or_nothing_teaches_nothing(refusal: Any) -> None:
    options = ServiceOptions()
    assert options.learn(refusal, BODY) == ""
    assert options.fitted(BODY) == BODY


@pytest.mark.parametrize(
    "refusal",
    [
        openai_says(
            "Invalid schema for function 'buy': schema must be of type object", "tools[1].function.parameters"
        ),
        openai_says("Invalid schema for function 'buy': array schema missing items", None, "invalid"),
        mistral_says("body", "tools", 1, "function", "parameters"),
        openai_says("No.", "tools.1.function.parameters.type"),
        {"message": "bad tools[1].function.parameters"},
    ],
)
def test_a_tool_that_is_refused_costs_itself_alone(refusal: Any) -> None:
    options = ServiceOptions()
    assert options.learn(refusal, BODY) == "the tool 'buy'"
    assert options.fitted(BODY) == {**BODY, "tools": [LOOK]}
    # It must have been chosen, or the only one.
    chosen = {**BODY, "tool_choice": {"type": "function", "function": {"name": "buy"}}}
    assert "tool_choice" not in options.fitted(chosen)
    alone = options.fitted({**BODY, "tools": [BUY]})
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & alone.keys()
    # Another schema is another tool.
    mended = {**BUY, "function": {**BUY["function"], "parameters": {}}}  # type: ignore[dict-item]
    assert options.fitted({**BODY, "tools": [mended]})["tools"] == [mended]


def test_the_form_of_an_answer_that_is_not_taken_is_said_in_words() -> None:
    options = ServiceOptions()
    options.learn(openai_says("No.", "response_format"), BODY)
    order, *rest = options.fitted(BODY)["messages"]
    assert (order["role"], rest) == ("system", BODY["messages"])
    assert '{"type": "object"}' in order["content"]
    asked = {**BODY, "response_format": {"type": "json_object"}}
    assert "JSON object" in options.fitted(asked)["messages"][0]["content"]
    assert options.fitted({**BODY, "response_format": {"type": "text"}})["messages"] == BODY["messages"]


def test_a_schema_that_is_refused_costs_itself_alone() -> None:
    options = ServiceOptions()
    refusal = openai_says("Invalid schema for response_format 'a': missing.", "response_format", "x")
    assert options.learn(refusal, BODY) == "one schema of an answer"
    assert "response_format" not in options.fitted(BODY)
    other = {**BODY, "response_format": {"type": "json_object"}}
    assert options.fitted(other) == other


@pytest.mark.parametrize(
    "refusal",
    [
        {"message": "Conversation roles must alternate user/assistant/user/assistant/..."},
        {"message": "System message must be at the beginning."},
        {"message": "Unexpected role 'user' after role 'tool'", "type": "invalid_request_message_order"},
        {"error": "Expected last role User or Tool for serving but got assistant"},
    ],
)
def test_messages_are_put_in_turns_where_a_service_wants_them(refusal: Any) -> None:
    options = ServiceOptions()
    in_order = {"messages": [{"role": "user", "content": "a"}]}
    assert options.learn(refusal, in_order) == ""
    unknown = {"messages": [{"role": "robot", "content": "a"}, {"role": "user", "content": "b"}]}
    assert options.learn(refusal, unknown) == "", "the messages themselves are wrong"
    two = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}
    assert options.learn(refusal, two) == "messages that are not in turns"
    assert options.fitted(two)["messages"] == [{"role": "user", "content": "a\n\nb"}]
    assert options.learn(refusal, options.fitted(two)) == ""


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(sorted(BODY)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from([*BODY, "param", "loc", "detail", "message", "error", "role", "function", "name"]),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(st.lists(st.tuples(ODD, st.dictionaries(st.sampled_from(sorted(BODY)), ODD)), max_size=4), ODD)
def test_whatever_is_sent_and_refused_requests_can_be_made(
    refused: list[tuple[Any, dict[str, Any]]], messages: Any
) -> None:
    options = ServiceOptions()
    for refusal, body in refused:
        sent = options.fitted({**BODY, **body})
        assert isinstance(options.learn(refusal, sent), str)
        assert options.fitted(sent) == options.fitted(options.fitted(sent)) or "response_format" in sent
    assert "messages" in options.fitted({**BODY, "messages": messages})


TOOLS_SENT: list[JsonObject] = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        ({"tools": []}, {"error": {"message": "[] is too short - 'tools'"}}),
        (
            {"tools": TOOLS_SENT, "tool_choice": "odd"},
            {
                "error": {
                    "param": "tool_choice",
                    "message": "Invalid value: 'odd'. Supported values are: 'auto'.",
                }
            },
        ),
    ],
)
def test_what_one_request_says_wrongly_takes_tools_from_nobody(sent: JsonObject, refusal: JsonObject) -> None:
    options = ServiceOptions()
    options.learn(refusal, {"messages": [], **sent})
    fitted = options.fitted({"messages": [], "tools": TOOLS_SENT, "tool_choice": "auto"})
    assert (fitted["tools"], fitted["tool_choice"]) == (TOOLS_SENT, "auto")


@pytest.mark.parametrize(
    "body", [{"tools": []}, {"tool_choice": "auto"}, {"tools": [], "tool_choice": "none"}]
)
def test_no_tools_are_not_asked_for_at_all(body: JsonObject) -> None:
    assert ServiceOptions().fitted({"messages": [], **body}) == {"messages": []}
