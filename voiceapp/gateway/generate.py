"""Generating: one answer, or a stream of packets, from whoever answers chat requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from voiceapp.config import VoiceConfig, voice_config
from voiceapp.errors import TextEngineError
from voiceapp.gateway import contract
from voiceapp.gateway.contract import Done, GenerateRequest, GenerateResponse
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.serving.exchange import Exchange, serve, stopping
from voiceapp.serving.sse import encode
from voiceapp.text import asking, providers, structured
from voiceapp.text.asking import Spent
from voiceapp.text.chat.result import Meter
from voiceapp.text.provider import Completions
from voiceapp.types import JsonObject, Receive, Send


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

    async def packets(self) -> AsyncGenerator[JsonObject]:
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

    async def _answer(self) -> tuple[str, JsonObject | None]:
        body, schema = contract.chat_body(self._request), self._request.structured_schema
        if schema is None:
            return await asking.ask(self._completions, body, self.spent), None
        return await asking.ask_for(self._completions, body, schema, self.spent)

    async def _texts(self, body: JsonObject) -> AsyncGenerator[str]:
        meter, said = Meter(), False
        chunks = self._completions.stream(body)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if text := meter.feed(chunk):
                        said = said or bool(text.strip())
                        yield text
        finally:
            self.spent.add(meter, body)
        asking.check_end(meter)
        asking.check_filter(meter)
        if not said:
            asking.check_words("")


GENERATE, STREAM = "/v1/generate", "/v1/generate/stream"
MAX_BODY_BYTES: Final = 2 * 1024 * 1024


async def generate(scope: JsonObject, receive: Receive, send: Send) -> None:
    """Answer one request to ``/v1/generate`` or ``/v1/generate/stream``."""
    await serve(scope, receive, send, _answer)


async def _answer(exchange: Exchange) -> None:
    holder = await tokens.holder_of(exchange.scope)
    if holder is None:
        raise tokens.refusal()
    request = contract.read_request(await exchange.read_json(MAX_BODY_BYTES))
    completions = await providers.completions(
        voice_config(),
        model=request.model or "",
        user_id=holder.user_id,
        thread_id=request.session_id or "",
    )
    generation = Generation(request, completions, voice_config())
    with holder.request():
        if request.structured_schema is not None:
            await structured.check_schema(request.structured_schema)
        if exchange.path == STREAM:
            farewell = contract.failed(stopping())
            await exchange.stream(_frames(generation, holder), farewell=encode(contract.frame(farewell)))
            return
        try:
            answer = await exchange.while_there(_whole(generation))
        finally:
            await _charge(generation, holder)
    await exchange.answer(200, answer)


async def _whole(generation: Generation) -> JsonObject:
    answer: JsonObject = msgspec.to_builtins(await generation.whole())
    return answer


async def _frames(generation: Generation, holder: TokenHolder) -> AsyncGenerator[bytes]:
    packets = generation.packets()
    try:
        async with aclosing(packets):
            async for packet in packets:
                yield encode(contract.frame(packet))
    finally:
        await _charge(generation, holder)


async def _charge(generation: Generation, holder: TokenHolder) -> None:
    spent = generation.spent
    await tokens.charge(holder, generation.provider, spent.tokens_in, spent.tokens_out)
