"""One question and one answer, as text or as an object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.parts.schemas import doubling
from tests.parts.stalls import longest_hold
from voiceapp.errors import TextEngineError
from voiceapp.text import structured
from voiceapp.text.asking import ATTEMPTS, Spent, ask, ask_for
from voiceapp.types import JsonObject


class Nothing:
    """Whoever answers with an empty object."""

    provider = model = "nothing"

    async def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        yield {"choices": [{"index": 0, "delta": {"content": "{}"}, "finish_reason": "stop"}]}

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_checking_an_answer_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "CHECK_S", 0.5)
    asking = asyncio.ensure_future(ask_for(Nothing(), {"messages": []}, doubling(40), Spent()))
    assert await longest_hold(asyncio.wait([asking])) < 0.25
    error = asking.exception()
    assert isinstance(error, TextEngineError)
    assert error.code == "structured_output_failed"


class Scripted:
    """Whoever gives these answers, one after the other, and remembers what was asked."""

    provider = model = "scripted"

    def __init__(self, *answers: str, finish_reason: str = "stop") -> None:
        self.asked: list[JsonObject] = []
        self._answers = list(answers)
        self._finish_reason = finish_reason

    async def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        self.asked.append(body)
        delta = {"content": self._answers.pop(0)}
        yield {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": self._finish_reason}]}
        yield {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}

    async def aclose(self) -> None:
        """Nothing is open."""


NUMBER: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_an_answer_is_its_text_and_what_it_took_is_counted() -> None:
    spent = Spent()
    assert await ask(Scripted("Hello."), {"messages": []}, spent) == "Hello."
    assert (spent.tokens_in, spent.tokens_out, spent.model) == (10, 2, "m")


async def test_an_answer_that_does_not_fit_is_asked_for_again_and_told_why() -> None:
    behind, spent = Scripted('{"n": "one"}', '{"n": 1}'), Spent()
    assert await ask_for(behind, {"messages": [], "temperature": 0}, NUMBER, spent) == ('{"n": 1}', {"n": 1})
    first, second = behind.asked
    assert first["response_format"]["json_schema"]["schema"] == NUMBER
    assert second["temperature"] == 0
    wrong, correction = second["messages"]
    assert wrong == {"role": "assistant", "content": '{"n": "one"}'}
    assert "did not fit the schema" in correction["content"]
    # Both are paid for.
    assert (spent.tokens_in, spent.tokens_out) == (20, 4)


async def test_an_answer_that_never_fits_is_an_error() -> None:
    behind = Scripted(*["no"] * ATTEMPTS)
    with pytest.raises(TextEngineError) as failed:
        await ask_for(behind, {"messages": []}, NUMBER, Spent())
    assert failed.value.code == "structured_output_failed"
    assert len(behind.asked) == ATTEMPTS


async def test_what_a_filter_ended_is_no_answer_but_was_paid_for() -> None:
    spent = Spent()
    with pytest.raises(TextEngineError) as failed:
        await ask(Scripted("Hel", finish_reason="content_filter"), {"messages": []}, spent)
    assert failed.value.code == "content_filter"
    assert spent.tokens_in == 10
