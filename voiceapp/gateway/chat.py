"""Chat completions of the embedded engine, at Azure's two addresses.

``POST /openai/deployments/{deployment}/chat/completions?api-version=…`` and
``POST /openai/v1/chat/completions``, streamed or whole, as Azure OpenAI has them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from typing import Final

from voiceapp.config import EMBEDDED_MODEL, voice_config
from voiceapp.engine.server import credentials
from voiceapp.errors import TextEngineError, VoiceAppError
from voiceapp.protocol.chat_chunks import is_taken_back
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.serving import sse
from voiceapp.serving.exchange import ClientGone, Exchange, serve, stopping
from voiceapp.text import providers
from voiceapp.text.asking import check_end, take_in
from voiceapp.text.chat.result import Collector, Meter
from voiceapp.text.provider import Completions
from voiceapp.types import JsonObject, Receive, Send

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MODELS: Final = "/openai/v1/models"
PATHS: Final = re.compile(r"/openai/(?:v1|deployments/(?P<deployment>[^/]+))/chat/completions/?")

# Azure tells first how it judged the prompt; clients must survive a chunk without choices.
_FILTERED: Final[JsonObject] = {
    "id": "", "object": "", "created": 0, "model": "", "choices": [],
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
}  # fmt: skip


async def chat_completions(scope: JsonObject, receive: Receive, send: Send) -> None:
    """Answer one request, an ASGI application."""
    await serve(scope, receive, send, _answer, body_of=_error_body)


async def list_models(scope: JsonObject, receive: Receive, send: Send) -> None:
    """Answer ``GET /openai/v1/models``, by which clients look what there is."""
    await serve(scope, receive, send, _list, method="GET", body_of=_error_body)


async def _list(exchange: Exchange) -> None:
    await _authorised(exchange)
    completions = await providers.completions(voice_config())
    names = dict.fromkeys((completions.model, EMBEDDED_MODEL))
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "voiceapp"} for name in names]
    await exchange.answer(200, {"object": "list", "data": listed})


async def _answer(exchange: Exchange) -> None:
    holder = await _authorised(exchange)
    body = await exchange.read_json(MAX_BODY_BYTES)
    if (found := PATHS.fullmatch(exchange.path)) and found["deployment"]:
        # The deployment in the address counts, as on Azure.
        body["model"] = found["deployment"]
    model = body.get("model")
    completions = await providers.completions(
        voice_config(),
        model=model if isinstance(model, str) else "",
        user_id=holder.user_id if holder else None,
    )
    with holder.request() if holder else nullcontext():
        if body.get("stream"):
            await _stream(exchange, completions, body, holder)
        else:
            await exchange.answer(200, await exchange.while_there(_whole(completions, body, holder)))


async def _authorised(exchange: Exchange) -> TokenHolder | None:
    """Return the holder of the API token that was given, ``None`` for the engine's key."""
    given = credentials.offered(exchange.headers, exchange.query)
    if credentials.holds_key(given):
        return None
    for token in (*given, exchange.query.get("token", "")):
        # Clients made for Azure give a token where they would give a key.
        holder = await tokens.holder_with(token)
        if holder is not None:
            return holder
    raise credentials.refusal(given)


async def _whole(completions: Completions, body: JsonObject, holder: TokenHolder | None) -> JsonObject:
    collector, refused = Collector(), False
    try:
        await take_in(completions, {**body, "stream_options": {"include_usage": True}}, collector)
    except TextEngineError:
        # Whoever leaves before the end has used what was made by then; who was refused has used nothing.
        refused = not collector.begun
        raise
    finally:
        if not refused:
            await _charge(holder, completions, collector, body)
    return collector.result()


async def _stream(
    exchange: Exchange, completions: Completions, body: JsonObject, holder: TokenHolder | None
) -> None:
    """Begin the answer with the first chunk: what fails before has a status of its own."""
    wanted = _wants_usage(body)
    # Tokens are counted for whoever pays; the client sees the count where it asked for it.
    counted = {**body, "stream_options": {"include_usage": True}}
    chunks = completions.stream(counted if wanted or holder else body)
    first: JsonObject | None = None
    try:
        first = await exchange.while_there(_first(chunks))
    except ClientGone:
        await _charge(holder, completions, Meter(), body)
        raise
    finally:
        if first is None:
            await chunks.aclose()
    await exchange.stream(
        _events(completions, body, first, chunks, wanted, holder),
        farewell=sse.encode(sse.event(_error_body(stopping()))),
    )


async def _first(chunks: AsyncGenerator[JsonObject]) -> JsonObject:
    async for chunk in chunks:
        return chunk
    raise TextEngineError("The chat endpoint answered nothing.", code="text_engine_error")


def _wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


async def _events(
    completions: Completions,
    body: JsonObject,
    first: JsonObject,
    chunks: AsyncGenerator[JsonObject],
    wanted: bool,
    holder: TokenHolder | None,
) -> AsyncGenerator[bytes]:
    meter = Meter()
    async with aclosing(chunks):
        if completions.provider != "azure":
            yield sse.encode(sse.event(_FILTERED))
        meter.feed(first)
        yield sse.encode(sse.event(_shown(first, wanted)))
        try:
            async for chunk in chunks:
                meter.feed(chunk)
                # What is with the client cannot be taken back.
                if chunk.get("choices") or (wanted and not is_taken_back(chunk)):
                    yield sse.encode(sse.event(_shown(chunk, wanted)))
            check_end(meter)
        except TextEngineError as error:
            yield sse.encode(sse.event(_error_body(error)))
            return
        finally:
            await _charge(holder, completions, meter, body)
    yield sse.encode(sse.event("[DONE]"))


def _shown(chunk: JsonObject, wanted: bool) -> JsonObject:
    return chunk if wanted or "usage" not in chunk else {k: v for k, v in chunk.items() if k != "usage"}


async def _charge(
    holder: TokenHolder | None, completions: Completions, meter: Meter, body: JsonObject
) -> None:
    if holder is not None:
        await tokens.charge(holder, completions.provider, *meter.counted(body))


def _error_body(error: VoiceAppError) -> JsonObject:
    status = error.status
    kind = (
        "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    )
    param = getattr(error, "param", "") or None
    return {"error": {"message": error.message, "type": kind, "param": param, "code": error.code}}
