"""Generating: one answer, or a stream of packets, from whoever answers chat requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from voiceapp.config import VoiceConfig
from voiceapp.errors import TextEngineError
from voiceapp.gateway import contract, structured
from voiceapp.gateway.contract import Done, GenerateRequest, GenerateResponse
from voiceapp.text.chat_result import Collector
from voiceapp.text.completions import Completions

Object = dict[str, Any]

ATTEMPTS: Final = 2
"""An answer that does not fit its schema is asked for once more."""


class Generation:
    """One request under way. ``tokens_in``, ``tokens_out`` and ``cost_usd`` count all that it took."""

    def __init__(self, request: GenerateRequest, completions: Completions, config: VoiceConfig) -> None:
        self._request = request
        self._completions = completions
        self._config = config
        self._model = request.model or completions.model
        self.tokens_in = 0
        self.tokens_out = 0

    @property
    def cost_usd(self) -> float:
        """What it cost by the prices in the settings."""
        price_in, price_out = self._config.text_price_in, self._config.text_price_out
        return round((self.tokens_in * price_in + self.tokens_out * price_out) / 1_000_000, 6)

    async def whole(self) -> GenerateResponse:
        """Return the answer; raise ``TextEngineError``."""
        text, value = await self._answer()
        return GenerateResponse(
            text=text,
            model=self._model,
            provider=self._completions.provider,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost_usd=self.cost_usd,
            structured=value,
        )

    async def packets(self) -> AsyncGenerator[Object]:
        """Stream ``token`` packets, ended by exactly one ``done`` or ``error``.

        Where a schema is given the text comes at once, when it is known to fit: what was sent cannot be
        taken back.
        """
        try:
            if self._request.structured_schema is not None:
                yield contract.token((await self._answer())[0])
            else:
                texts = self._texts(contract.chat_body(self._request), Collector())
                async with aclosing(texts):
                    async for text in texts:
                        yield contract.token(text)
        except TextEngineError as error:
            yield contract.failed(f"{error.code}: {error.message}")
            return
        yield contract.done(
            Done(
                provider=self._completions.provider,
                model=self._model,
                tokens_in=self.tokens_in,
                tokens_out=self.tokens_out,
                cost_usd=self.cost_usd,
                turns=sum(message.role == "user" for message in self._request.messages),
            )
        )

    async def _answer(self) -> tuple[str, Object | None]:
        body, schema = contract.chat_body(self._request), self._request.structured_schema
        fault = ""
        for _ in range(1 if schema is None else ATTEMPTS):
            collector = Collector()
            texts = self._texts(body, collector)
            async with aclosing(texts):
                async for _text in texts:
                    pass
            if schema is None:
                return collector.text, None
            value, fault = structured.read(collector.text, schema)
            if value is not None:
                return collector.text, value
            told = (
                f"That did not fit the schema ({fault}). Answer again, with nothing but JSON of the schema."
            )
            more = [{"role": "assistant", "content": collector.text}, {"role": "user", "content": told}]
            body = {**body, "messages": [*body["messages"], *more]}
        raise TextEngineError(
            f"No answer fitted the schema in {ATTEMPTS} attempts: {fault}", code="structured_output_failed"
        )

    async def _texts(self, body: Object, collector: Collector) -> AsyncGenerator[str]:
        chunks = self._completions.stream(body)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if text := collector.feed(chunk):
                        yield text
        finally:
            tokens_in, tokens_out = collector.counted(body)
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
            self._model = collector.model or self._model
        if collector.finish_reason == "content_filter":
            raise TextEngineError("The content filter ended the answer.", code="content_filter")
