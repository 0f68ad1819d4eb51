"""One answer made of the chunks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.chat_server import chunk
from voiceapp.errors import TextEngineError
from voiceapp.text.chat.result import MAX_CHARS, Collector, Meter


def test_calls_that_are_all_numbered_0_are_put_together_apart() -> None:
    collector = Collector()
    for call in (
        {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "look", "arguments": "{"}},
        {"index": 0, "id": "b", "function": {"arguments": "}"}},
    ):
        collector.feed(chunk({"index": 0, "delta": {"tool_calls": [call]}}))
    calls = collector.result()["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]


USAGE = {"prompt_tokens": 11, "completion_tokens": 3}


def feed(meter: Meter, *deltas: dict[str, Any], finish_reason: str | None = None) -> list[str]:
    return [
        meter.feed(chunk({"index": 0, "delta": delta, "finish_reason": finish_reason})) for delta in deltas
    ]


def test_text_is_given_on_as_it_comes_and_is_whole_at_the_end() -> None:
    collector = Collector()
    assert not Collector().begun
    assert feed(collector, {"content": "Hel"}, {"content": "lo."}, {}) == ["Hel", "lo.", ""]
    assert collector.begun
    assert collector.text == "Hello."
    [choice] = collector.result()["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello.", "refusal": None}
    assert choice["finish_reason"] == "stop"


def test_the_answer_says_what_the_chunks_said_of_it() -> None:
    collector = Collector()
    collector.feed({"id": "", "model": "", "choices": []})
    feed(collector, {"content": "Hi"}, finish_reason="length")
    collector.feed(chunk(usage=USAGE))
    answer = collector.result()
    assert (answer["id"], answer["model"], answer["object"]) == ("c", "m", "chat.completion")
    assert answer["choices"][0]["finish_reason"] == "length"
    assert (answer["usage"], collector.model) == (USAGE, "m")


def test_other_answers_beside_the_first_do_not_count() -> None:
    collector = Collector()
    assert (
        collector.feed(
            chunk({"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}})
        )
        == "A"
    )
    assert collector.text == "A"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (USAGE, (11, 3)),
        ({"prompt_tokens": -1, "completion_tokens": "many"}, (0, 0)),
        (None, (2, 2)),
    ],
)
def test_tokens_are_counted_by_the_service_or_about(
    usage: dict[str, Any] | None, counted: tuple[int, int]
) -> None:
    meter = Meter()
    feed(meter, {"content": "Hello."})
    if usage is not None:
        meter.feed(chunk(usage=usage))
    assert meter.counted({"messages": [{"role": "user", "content": "Hello"}, "odd"]}) == counted
    assert meter.counted({"messages": "odd"})[1] == counted[1]


@pytest.mark.parametrize(
    "delta", [{"content": "x" * 1_000_000}, {"refusal": "x" * 1_000_000},
              {"tool_calls": [{"function": {"arguments": "x" * 1_000_000}}]},
              {"tool_calls": [{"index": 0}] * 1_000_000}],
)  # fmt: skip
def test_an_answer_without_end_is_given_up(delta: dict[str, Any]) -> None:
    meter = Meter()
    with pytest.raises(TextEngineError) as endless:
        for _ in range(MAX_CHARS // 1_000_000 + 1):
            feed(meter, delta)
    assert endless.value.code == "text_engine_error"


def test_calls_that_are_put_together_elsewhere_are_not_kept_here() -> None:
    collector = Collector(with_calls=False)
    feed(collector, {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]})
    assert "tool_calls" not in collector.result()["choices"][0]["message"]
    given: list[Any] = [{"id": "a"}]
    [choice] = collector.result(given)["choices"]
    assert (choice["message"]["tool_calls"], choice["finish_reason"]) == (given, "tool_calls")
