"""Generating: one answer, or a stream of packets, from whoever answers chat requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from voiceapp.config import VoiceConfig
from voiceapp.errors import TextEngineError
from voiceapp.gateway import contract
from voiceapp.gateway.contract import Done, GenerateRequest, GenerateResponse
from voiceapp.text import asking
from voiceapp.text.asking import Spent
from voiceapp.text.chat_result import Meter
from voiceapp.text.completions import Completions

Object = dict[str, Any]


class Generation:
    """One request under way; ``spent`` and ``cost_usd`` count all that it took."""

    def __init__(self, request: GenerateRequest, completions: Completions, config: VoiceConfig) -> None:
        self._request = request
        self._completions = completions
        self._config = config
        self.spent = Spent(model=completions.model)

    @property
    def provider(self) -> str:
        """Who answers."""
        return self._completions.provider

    @property
    def cost_usd(self) -> float:
        """What it cost by the prices in the settings."""
        return self._config.cost_usd(self.provider, self.spent.tokens_in, self.spent.tokens_out)

    async def whole(self) -> GenerateResponse:
        """Return the answer; raise ``TextEngineError``."""
        text, value = await self._answer()
        return GenerateResponse(
            text=text,
            model=self.spent.model,
            provider=self.provider,
            tokens_in=self.spent.tokens_in,
            tokens_out=self.spent.tokens_out,
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
                texts = self._texts(contract.chat_body(self._request))
                async with aclosing(texts):
                    async for text in texts:
                        yield contract.token(text)
        except TextEngineError as error:
            yield contract.failed(error)
            return
        yield contract.done(
            Done(
                provider=self.provider,
                model=self.spent.model,
                tokens_in=self.spent.tokens_in,
                tokens_out=self.spent.tokens_out,
                cost_usd=self.cost_usd,
                turns=sum(message.role == "user" for message in self._request.messages),
            )
        )

    async def _answer(self) -> tuple[str, Object | None]:
        body, schema = contract.chat_body(self._request), self._request.structured_schema
        if schema is None:
            return await asking.ask(self._completions, body, self.spent), None
        return await asking.ask_for(self._completions, body, schema, self.spent)

    async def _texts(self, body: Object) -> AsyncGenerator[str]:
        meter = Meter()
        chunks = self._completions.stream(body)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if text := meter.feed(chunk):
                        yield text
        finally:
            self.spent.add(meter, body)
        asking.check_filter(meter)
