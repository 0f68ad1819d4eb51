"""Chat completions made by one of the product's own providers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from voiceapp.errors import TextEngineError
from voiceapp.text.chat.local import LocalCompletions
from voiceapp.text.chat.result import Collector
from voiceapp.text.provider import (
    CHARACTERS_PER_TOKEN,
    CallArguments,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    ReplyRequest,
    TextDelta,
)

SCHEMA = {"type": "object", "properties": {}}
STRUCTURED = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
CALL = (CallStarted(0, "c", "look"), CallArguments(0, '{"a'), CallArguments(0, '":1}'), CallFinished(0))


class Source:
    """A provider that says these things, and notes whether it was let go of in between."""

    def __init__(self, *deltas: Delta) -> None:
        self._deltas = deltas
        self.left_early = False

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        try:
            for delta in self._deltas:
                yield delta
        except GeneratorExit:
            self.left_early = True
            raise

    async def aclose(self) -> None:
        """Nothing is open."""


async def chunks_of(source: Source, **fields: Any) -> list[dict[str, Any]]:
    body = {"messages": [{"role": "user", "content": "Hello"}], **fields}
    return [chunk async for chunk in LocalCompletions(source, "brain", "embedded").stream(body)]


async def answer(source: Source, **fields: Any) -> dict[str, Any]:
    collector = Collector()
    for chunk in await chunks_of(source, **fields):
        collector.feed(chunk)
    return collector.result()


async def test_text_comes_as_chunks_of_one_answer() -> None:
    chunks = await chunks_of(Source(TextDelta("Hel"), TextDelta("lo."), Finished()), model="mine")
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo."}, {}
    ]  # fmt: skip
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert {(chunk["id"], chunk["model"], chunk["object"]) for chunk in chunks} == {
        (chunks[0]["id"], "mine", "chat.completion.chunk")
    }
    assert (await answer(Source(Finished())))["model"] == "brain"


async def test_a_call_comes_with_its_name_first() -> None:
    whole = await answer(Source(TextDelta("Wait."), *CALL, Finished()))
    [choice] = whole["choices"]
    assert choice["finish_reason"] == "tool_calls"
    [call] = choice["message"]["tool_calls"]
    assert (call["id"], call["function"]) == ("c", {"name": "look", "arguments": '{"a":1}'})


async def test_where_a_schema_is_asked_for_the_calls_arguments_are_the_text() -> None:
    [choice] = (await answer(Source(*CALL, Finished()), response_format=STRUCTURED))["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"a":1}', "stop")
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize(
    ("ended", "reason"),
    [("stop", "stop"), ("max_output_tokens", "length"), ("content_filter", "content_filter")],
)
async def test_why_it_ended_is_said_in_the_services_words(ended: Any, reason: str) -> None:
    assert (await answer(Source(Finished(ended))))["choices"][0]["finish_reason"] == reason


async def test_a_limit_cuts_the_answer_and_ends_the_work() -> None:
    source = Source(TextDelta("x" * 100), TextDelta("more"), Finished())
    [choice] = (await answer(source, max_tokens=2))["choices"]
    assert choice["message"]["content"] == "x" * 2 * CHARACTERS_PER_TOKEN
    assert choice["finish_reason"] == "length"
    assert source.left_early


@pytest.mark.parametrize(
    ("finished", "usage"),
    [
        (Finished(), {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}),
        (Finished("stop", 7, 5), {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}),
    ],
)
async def test_tokens_are_counted_where_that_is_asked_for(finished: Finished, usage: dict[str, int]) -> None:
    source = (TextDelta("Hello."), finished)
    plain = await chunks_of(Source(*source))
    assert all("usage" not in chunk for chunk in plain)
    counted = await chunks_of(Source(*source), stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in counted[:-1]] == [None] * (len(counted) - 1)
    assert (counted[-1]["choices"], counted[-1]["usage"]) == ([], usage)


async def test_a_wrong_request_is_refused_before_the_first_chunk() -> None:
    with pytest.raises(TextEngineError):
        await chunks_of(Source(Finished()), n=2)
