"""One question and one answer, as text or as an object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.parts.stalls import longest_hold
from voiceapp.errors import TextEngineError
from voiceapp.text import structured
from voiceapp.text.asking import Spent, ask_for
from voiceapp.types import JsonObject


def doubling(depth: int) -> JsonObject:
    """A schema of a few lines that takes 2 to the power of ``depth`` steps to check."""
    twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"type": "object", "$ref": "#/$defs/a0", "$defs": {**twice, f"a{depth}": {}}}


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
