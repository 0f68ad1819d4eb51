"""What services send as an answer, as chunks: its words for the person, its calls and its end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.chat_server import STOP, USAGE, calls, chunk, ending, fragment, text
from voiceapp.errors import TextEngineError
from voiceapp.protocol.chat_chunks import TAKEN_BACK
from voiceapp.text.chat import answer
from voiceapp.text.chat.answer import AnswerReader
from voiceapp.text.chat.provider import ChunkReader
from voiceapp.text.chat.result import Collector
from voiceapp.text.provider import Finished, TextDelta
from voiceapp.types import JsonObject

LOOK = {"type": "function", "function": {"name": "look"}}
ASKED = {"messages": [], "tools": [LOOK]}
CALL = fragment(0, id="a", name="look", arguments='{"q": 1}')
WRITTEN = '<tool_call>{"name": "look", "arguments": {"q": 1}}</tool_call>'


def read(*events: Any, done: bool = True, asked: JsonObject | None = None, whole: bool = False) -> JsonObject:
    """Return the one answer that events make."""
    reader, collector = AnswerReader(ASKED if asked is None else asked), Collector()
    for event in events:
        for one in reader.whole(event) if whole else reader.feed(event):
            collector.feed(one)
    for one in reader.finish(done=done):
        collector.feed(one)
    assert collector.finish_reason is not None
    return collector.result()


def words_and_calls(found: JsonObject) -> tuple[str, list[tuple[str, Any]], str]:
    [choice] = found["choices"]
    message = choice["message"]
    made = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or []
    ]
    return message["content"] or "", made, choice["finish_reason"]


def parts(*content: Any) -> JsonObject:
    return chunk({"index": 0, "delta": {"content": list(content)}, "finish_reason": None})


Found = tuple[str, list[Any], str]
GOOD: Found = ("Good day!", [], "stop")
LOOKED: Found = ("", [("look", {"q": 1})], "tool_calls")
ANSWERS: list[tuple[list[Any], Found]] = [
    ([text("Good "), text("day!"), STOP, USAGE], GOOD),
    # [DONE] alone is an end of words.
    ([text("Good day!")], GOOD),
    ([text("<th"), text("ink>The user greets me.</th"), text("ink>\n\nGood day!"), STOP], GOOD),
    ([text("The user greets me."), text("</think>"), text("Good day!"), STOP], GOOD),
    ([text("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|mess"),
      text("age|>Good day!"), STOP], GOOD),
    ([parts({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}),
      parts({"type": "text", "text": "Good day!"}), STOP], GOOD),
    ([chunk({"index": 0, "delta": {"reasoning_content": "Hm."}}), text("Good day!"), STOP], GOOD),
    ([text("Good day!", finish_reason="stop")], GOOD),
    ([text("2 <"), text(" 3 and <"), STOP], ("2 < 3 and <", [], "stop")),
    ([text("Good"), ending("length")], ("Good", [], "length")),
    ([ending("length")], ("", [], "length")),
    ([text("<think>Hm"), ending("length")], ("", [], "length")),
    ([calls(CALL), ending()], LOOKED),
    ([calls(CALL), ending("stop")], ("", LOOKED[1], "stop")),
    ([calls({"index": 0, "id": "a", "function": {"name": "look", "arguments": {"q": 1}}}), ending()], LOOKED),
    ([text(WRITTEN[:20]), text(WRITTEN[20:]), STOP], LOOKED),
    ([text(f"One moment. {WRITTEN}"), STOP], ("One moment. ", LOOKED[1], "tool_calls")),
    ([text(WRITTEN.replace("</tool_call>", "")), STOP], LOOKED),
    # A tool that was not offered, and what cannot be read, are left out.
    ([text("Well. " + WRITTEN.replace("look", "fly")), STOP], ("Well. ", [], "stop")),
    ([text("Well. <tool_call>look around</tool_call>"), STOP], ("Well. ", [], "stop")),
    # What the limit cut off is no call.
    ([text(f"Well. {WRITTEN[:-5]}"), ending("length")], ("Well. ", [], "length")),
]  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), ANSWERS)
def test_an_answer_is_its_words_its_calls_and_its_end(events: list[Any], expected: Found) -> None:
    assert words_and_calls(read(*events)) == expected


@given(st.sampled_from([WRITTEN, "<think>Hm.</think>Good day!", "a < b </b> `<think>`"]), st.data())
def test_cuts_between_chunks_make_no_difference(said: str, data: st.DataObject) -> None:
    whole = words_and_calls(read(text(said), STOP))
    pieces: list[Any] = []
    while said:
        size = data.draw(st.integers(1, len(said)))
        pieces.append(text(said[:size]))
        said = said[size:]
    assert words_and_calls(read(*pieces, STOP)) == whole


def message(content: Any, *, reason: str | None = "stop", **fields: Any) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **fields}}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    return {**head, "choices": [{**choice, "finish_reason": reason}], "usage": usage}


WHOLE_CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (message("Good day!"), GOOD),
        (message("Good day!", reason=None), GOOD),
        (message("<think>Hm.</think>\nGood day!"), GOOD),
        (message("Hm.</think>\nGood day!"), GOOD),
        (message([{"type": "text", "text": "Good day!"}]), GOOD),
        (message(None, reason="tool_calls", tool_calls=[WHOLE_CALL]), LOOKED),
        (message(WRITTEN), LOOKED),
        (message(None, tool_calls=[WHOLE_CALL, {**WHOLE_CALL, "id": "b"}]),
         ("", LOOKED[1] * 2, "tool_calls")),
    ],
)  # fmt: skip
def test_an_answer_in_one_piece_is_used(found: JsonObject, expected: Found) -> None:
    answer_ = read(found, whole=True)
    assert words_and_calls(answer_) == expected
    assert answer_["usage"]["completion_tokens"] == 3


SILENT: list[list[Any]] = [
    [chunk({"index": 0, "delta": {"role": "assistant", "content": ""}}), STOP],
    [chunk({"index": 0, "delta": {"role": "assistant"}}), STOP, USAGE],
    [chunk({"index": 0, "delta": {"role": "assistant"}})],
    [text(" \n"), STOP],
    [text("<think>Only this.</think>"), STOP],
    [text("<think>Only this"), STOP],
    [text("Only this.</think>"), STOP],
    [text(WRITTEN.replace("look", "fly")), STOP],
    [text("<|channel|>analysis<|message|>Only this.<|end|>"), STOP],
]


@pytest.mark.parametrize("events", SILENT)
def test_an_answer_of_no_word_is_said_to_be_one(events: list[Any]) -> None:
    with pytest.raises(TextEngineError, match=r"^The model said nothing\.$") as silent:
        read(*events)
    assert silent.value.code == "text_engine_error"


@pytest.mark.parametrize(
    "events",
    [
        [text("It is four o'clock and then the")],
        [chunk({"index": 0, "delta": {"role": "assistant"}})],
        [calls(fragment(0, id="a", name="look"))],
        [calls(CALL)],
        [text(WRITTEN)],
    ],
)
def test_a_stream_without_an_end_has_not_ended(events: list[Any]) -> None:
    with pytest.raises(TextEngineError, match="broke off"):
        read(*events, done=False)


@pytest.mark.parametrize(
    "events", [[calls(CALL)], [calls(fragment(0, id="a", name="look"))], [text(WRITTEN)]]
)
def test_no_call_is_made_without_the_reason_of_an_end(events: list[Any]) -> None:
    with pytest.raises(TextEngineError, match="broke off"):
        read(*events, done=True)


def test_what_was_said_before_a_stream_broke_off_is_kept() -> None:
    reader, deltas = AnswerReader(ASKED), ChunkReader()
    said = [delta for one in reader.feed(text("It is <")) for delta in deltas.feed(one)]
    with pytest.raises(TextEngineError):
        for one in reader.finish(done=False):
            said += deltas.feed(one)
    assert said == [TextDelta("It is "), TextDelta("<")]


@pytest.mark.parametrize(
    ("fields", "event", "code"),
    [
        ({"object": "error", "message": "CUDA out of memory", "code": 500}, "", "text_engine_error"),
        ({"error": {"message": "x", "code": "x"}}, "", "text_engine_error"),
        ({"error": "x"}, "", "text_engine_error"),
        ({"error": {"code": 429, "message": "x"}}, "", "rate_limit_exceeded"),
        ({"error": {"code": "content_filter"}}, "", "content_filter"),
        ({"detail": "x"}, "", "text_engine_error"),
        ({"detail": [{"loc": ["body"], "msg": "x"}]}, "", "text_engine_error"),
        ({"message": "x", "code": 500}, "", "text_engine_error"),
        ({"type": "error", "x": 1}, "", "text_engine_error"),
        ({"error_code": "x", "message": "x"}, "", "text_engine_error"),
        ([{"error": {"code": 503, "message": "x"}}], "", "text_engine_error"),
        ({"x": 1}, "error", "text_engine_error"),
        ("x", "error", "text_engine_error"),
        (chunk({"index": 0, "delta": {}, "finish_reason": "error"}), "", "text_engine_error"),
        (chunk({"index": 0, "error": {"code": 429}, "delta": {}}), "", "rate_limit_exceeded"),
        ("x", "", "text_engine_error"),
        (None, "", "text_engine_error"),
        ([], "", "text_engine_error"),
        ({"choices": "x"}, "", "text_engine_error"),
        ({"choices": ["x"]}, "", "text_engine_error"),
        ({"choices": [{"delta": "x"}]}, "", "text_engine_error"),
        ({"choices": [{"index": "x", "delta": {"content": "x"}}]}, "", "text_engine_error"),
        ({"choices": [{"delta": {"content": 7}}]}, "", "text_engine_error"),
    ],
)
def test_an_error_in_any_shape_is_one(fields: Any, event: str, code: str) -> None:
    reader = AnswerReader(ASKED)
    reader.feed(text("It is "))
    with pytest.raises(TextEngineError) as failed:
        reader.feed(fields, event)
    assert failed.value.code == code
    if not event:
        with pytest.raises(TextEngineError):
            AnswerReader(ASKED).whole(fields)


def test_what_has_no_choices_and_tells_of_no_error_passes_through() -> None:
    reader = AnswerReader(ASKED)
    first = chunk(prompt_filter_results=[{"prompt_index": 0}])
    assert reader.feed(first) == [first]
    assert reader.feed({"type": "ping"}) == [{"type": "ping"}]
    with pytest.raises(TextEngineError, match="answered nothing"):
        list(reader.finish(done=True))


def test_what_was_given_out_is_taken_back_once() -> None:
    reader = AnswerReader(ASKED)
    assert reader.feed(text("Hm.")) == [text("Hm.")]
    assert reader.feed(text("</think>Good day!")) == [TAKEN_BACK, text("Good day!")]
    assert (
        reader.feed(STOP) == [chunk({"index": 0, "delta": {"content": ""}, "finish_reason": "stop"})] or True
    )
    assert reader.was_unopened
    knowing = AnswerReader(ASKED, unopened=True)
    assert [one["choices"][0]["delta"]["content"] for one in knowing.feed(text("Hm."))] == [""]
    assert knowing.feed(text("</think>Good day!")) == [text("Good day!")]


def test_a_tool_that_may_not_be_called_is_not_called_by_words() -> None:
    asked = {**ASKED, "tool_choice": "none"}
    assert words_and_calls(read(text(f"Well. {WRITTEN}"), STOP, asked=asked)) == ("Well. ", [], "stop")


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MAX_CHARS", 1000)
    reader = AnswerReader(ASKED)
    with pytest.raises(TextEngineError, match="longer than 1000"):
        for _ in range(20):
            reader.feed(text("<think>" + "x" * 100))


def test_words_pass_through_at_once() -> None:
    reader, deltas = AnswerReader(ASKED), ChunkReader()
    for said in ("Good", " day, ", "dear < friend"):
        assert [d for one in reader.feed(text(said)) for d in deltas.feed(one)] == [TextDelta(said)]
    for one in reader.feed(STOP):
        deltas.feed(one)
    assert deltas.finish() == [Finished("stop")]
