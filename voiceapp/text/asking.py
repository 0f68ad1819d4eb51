"""One question to whoever answers chat requests, and one answer: as text, or as an object of a schema."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from voiceapp.errors import TextEngineError, TextRequestError
from voiceapp.text import structured
from voiceapp.text.chat.result import Collector, Meter
from voiceapp.text.provider import Completions
from voiceapp.types import JsonObject

ATTEMPTS: Final = 2
"""An answer that does not fit its schema is asked for once more."""


@dataclass
class Spent:
    """What asking took so far, failed attempts included, and the model that the service says it used."""

    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""

    def add(self, meter: Meter, body: JsonObject) -> None:
        """Count one request."""
        tokens_in, tokens_out = meter.counted(body)
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.model = meter.model or self.model


async def take_in(completions: Completions, body: JsonObject, meter: Meter) -> None:
    """Feed ``meter`` the whole answer; raise ``TextEngineError``, also where it has no end."""
    chunks = completions.stream(body)
    async with aclosing(chunks):
        async for chunk in chunks:
            meter.feed(chunk)
    check_end(meter)


async def ask(completions: Completions, body: JsonObject, spent: Spent) -> str:
    """Return the text of the answer; raise ``TextEngineError``."""
    collector = Collector()
    try:
        await take_in(completions, body, collector)
    finally:
        spent.add(collector, body)
    check_filter(collector)
    check_words(collector.text)
    return collector.text


async def ask_for(
    completions: Completions, body: JsonObject, schema: JsonObject, spent: Spent
) -> tuple[str, JsonObject]:
    """Return the answer as text and as an object of ``schema``.

    The schema goes to the service, which may keep to it; where the answer does not fit all the same, it is
    asked once more and told why. Raises ``TextEngineError``, ``structured_output_failed`` among others.
    """
    wanted = {"name": "answer", "schema": schema}
    body = {**body, "response_format": {"type": "json_schema", "json_schema": wanted}}
    fault = ""
    for _ in range(ATTEMPTS):
        text = await ask(completions, body, spent)
        value, fault = await structured.read(text, schema)
        if value is not None:
            return text, value
        correction = (
            f"That did not fit the schema ({fault}). Answer again, with nothing but JSON of the schema."
        )
        more = [{"role": "assistant", "content": text}, {"role": "user", "content": correction}]
        body = {**body, "messages": [*body["messages"], *more]}
    raise TextEngineError(
        f"No answer fitted the schema in {ATTEMPTS} attempts: {fault}", code="structured_output_failed"
    )


def check_filter(meter: Meter) -> None:
    """Raise where an answer was ended by the service's filter: what there is of it is no answer."""
    if meter.finish_reason == "content_filter":
        raise TextRequestError("The content filter ended the answer.", code="content_filter")


def check_end(meter: Meter) -> None:
    """Raise where a stream was over before its answer was."""
    if meter.finish_reason is None:
        raise TextEngineError("The answer was broken off.", code="text_engine_error")


def check_words(text: str) -> None:
    """Raise where an answer that had to be text has none, as of a model that used up its limit thinking."""
    if not text.strip():
        raise TextEngineError("The model said nothing.", code="text_engine_error")
