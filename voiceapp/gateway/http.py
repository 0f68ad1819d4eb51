"""The gateway's two addresses, a plain ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec
from django.conf import settings

from voiceapp.asgi_scope import Receive, Send
from voiceapp.errors import VoiceAppError
from voiceapp.gateway import contract
from voiceapp.gateway.generate import Generation
from voiceapp.http_exchange import Exchange, serve, stopping
from voiceapp.records import tokens
from voiceapp.records.tokens import TokenHolder
from voiceapp.text import providers, sse, structured

Object = dict[str, Any]

GENERATE, STREAM = "/v1/generate", "/v1/generate/stream"
MAX_BODY_BYTES: Final = 2 * 1024 * 1024


async def generate(scope: Object, receive: Receive, send: Send) -> None:
    """Answer one request to ``/v1/generate`` or ``/v1/generate/stream``."""
    await serve(scope, receive, send, _answer)


async def _answer(exchange: Exchange) -> None:
    holder = await tokens.holder_of(exchange.scope)
    if holder is None:
        raise VoiceAppError(tokens.ADVICE, code="not_authorized")
    request = contract.read_request(await exchange.read_json(MAX_BODY_BYTES))
    completions = await providers.completions(
        settings.VOICE,
        model=request.model or "",
        user_id=holder.user_id,
        thread_id=request.session_id or "",
    )
    generation = Generation(request, completions, settings.VOICE)
    with holder.request():
        if request.structured_schema is not None:
            await structured.check_schema(request.structured_schema)
        if exchange.path == STREAM:
            farewell = contract.failed(stopping())
            await exchange.stream(_frames(generation, holder), farewell=sse.encode(contract.frame(farewell)))
            return
        try:
            answer = await exchange.while_there(_whole(generation))
        finally:
            await _charge(generation, holder)
    await exchange.answer(200, answer)


async def _whole(generation: Generation) -> Object:
    answer: Object = msgspec.to_builtins(await generation.whole())
    return answer


async def _frames(generation: Generation, holder: TokenHolder) -> AsyncGenerator[bytes]:
    packets = generation.packets()
    try:
        async with aclosing(packets):
            async for packet in packets:
                yield sse.encode(contract.frame(packet))
    finally:
        await _charge(generation, holder)


async def _charge(generation: Generation, holder: TokenHolder) -> None:
    spent = generation.spent
    await tokens.charge(holder, generation.provider, spent.tokens_in, spent.tokens_out)
