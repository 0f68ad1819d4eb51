"""The Responses API as hosts speak it: what is asked is read again as it was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.hosts import COMPLETED, delta
from voiceapp.errors import TextEngineError
from voiceapp.text.history import paired
from voiceapp.text.model_host import responses_api
from voiceapp.text.model_host.responses_api import EventReader
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    ReplyRequest,
    Returned,
    Said,
    TakenBack,
    TextDelta,
)

TEXT = st.text(max_size=20)
NAMES = st.sampled_from(["look", "tell", "buy"])
ITEMS = (
    st.builds(Said, st.sampled_from(["system", "user", "assistant"]), TEXT)
    | st.builds(Called, TEXT, NAMES, TEXT)
    | st.builds(Returned, TEXT, TEXT)
)
REQUESTS = st.builds(
    ReplyRequest,
    TEXT,
    st.lists(ITEMS, max_size=5).map(tuple),
    st.lists(st.builds(FunctionTool, NAMES, TEXT, st.just({"type": "object"})), max_size=3).map(tuple),
    st.sampled_from(["auto", "none", "required"]) | NAMES,
    several_calls=st.booleans(),
    spoken=st.just(False),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["message", "user", "text"]) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("type"), inner, max_size=3),
    max_leaves=8,
)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_asked(request: ReplyRequest) -> None:
    fields = json.loads(json.dumps(responses_api.request_fields(request, "m", {})))
    assert responses_api.read_request(fields) == replace(request, history=paired(request.history))


@given(st.dictionaries(st.sampled_from(["instructions", "input", "tools", "toolChoice"]), JSON))
def test_whatever_is_asked_something_is_read(fields: dict[str, Any]) -> None:
    assert isinstance(responses_api.read_request(fields), ReplyRequest)


END = Finished("stop", 5, 2)
CALL: list[Delta] = [CallStarted(0, "call_written_0", "look"), CallArguments(0, "{}"), CallFinished(0)]


def message(words: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": words}]}


def read(*events: dict[str, Any], unopened: bool = False) -> list[Delta]:
    reader = EventReader(["look"], unopened=unopened)
    return [found for event in events for found in reader.feed(event)]


def all_at_once(*output: dict[str, Any]) -> dict[str, Any]:
    response: Any = COMPLETED["response"]
    return {"type": "response.completed", "response": {**response, "output": list(output)}}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([delta("<th"), delta("ink>Hm.</think>\nGood day!"), COMPLETED], [TextDelta("Good day!"), END]),
        ([delta("Hm."), delta("</think>Good day!"), COMPLETED],
         [TextDelta("Hm."), TakenBack(), TextDelta("Good day!"), END]),
        ([delta("2 <"), COMPLETED], [TextDelta("2 "), TextDelta("<"), END]),
        ([{"type": "response.output_item.done", "output_index": 0, "item": message("<think>a</think>b")},
          COMPLETED], [TextDelta("b"), END]),
        ([all_at_once({"type": "reasoning"}, message("Good day!"))], [TextDelta("Good day!"), END]),
        ([all_at_once({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"})],
         [CallStarted(0, "c", "look"), CallArguments(0, "{}"), CallFinished(0), END]),
        ([delta('<tool_call>{"name": "look"}</tool_call>'), COMPLETED], [*CALL, END]),
        ([delta('Well. <tool_call>{"name": "fly"}</tool_call>'), COMPLETED], [TextDelta("Well. "), END]),
    ],
)  # fmt: skip
def test_of_a_models_text_the_words_for_the_person_count(
    events: list[dict[str, Any]], expected: list[Delta]
) -> None:
    assert read(*events) == expected


def test_a_thought_that_is_known_to_have_no_opening_mark_is_not_given_out() -> None:
    events = (delta("Hm."), delta("</think>Good day!"), COMPLETED)
    assert read(*events, unopened=True) == [TextDelta("Good day!"), END]


@pytest.mark.parametrize("events", [[], [delta(" \n")], [delta("<think>Hm.</think>")], [delta("<think>Hm")]])
def test_a_reply_of_no_word_is_said_to_be_one(events: list[dict[str, Any]]) -> None:
    with pytest.raises(TextEngineError, match="The model said nothing") as silent:
        read(*events, COMPLETED)
    assert silent.value.code == "model_host_error"
