"""Chat services, Azure's and compatible ones, reached by the ``openai`` package."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from itertools import count
from typing import Any, Final

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from voiceapp.config import VoiceConfig
from voiceapp.errors import (
    ConfigurationError,
    TextEngineError,
    TextEngineLimited,
    TextEngineTimeout,
    TextModelNotFound,
    TextRequestError,
    UpstreamRefused,
)
from voiceapp.outbound import entra
from voiceapp.outbound.addresses import service_base
from voiceapp.serving import sse
from voiceapp.text.chat.answer import BROKEN_OFF, NO_PART, AnswerReader
from voiceapp.text.chat.options import ServiceOptions
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

# Without a key the client refuses to start; local servers want none.
_NO_KEY: Final = "none"
_CONNECT_TIMEOUT_S: Final = 10.0
_TIMEOUT_S: Final = 60.0
"""How long a service may take to begin its answer, and between two pieces of it."""
_LATE: Final = "The chat endpoint did not answer in time."
MAX_TRIES: Final = 8
"""How often one request is sent where the service refuses wishes of it, each time another one."""
_DRAIN_S: Final = 0.1
_DONE: Final = "[DONE]"
_SNIFFED: Final = 1024
_AT_ONCE: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"
# Their models refuse the older word for the limit of an answer.
_NEW_LIMIT_HOSTS: Final = ("api.openai.com", ".openai.azure.com", ".azure.com", ".azure.us", ".azure.cn")


def completions(config: VoiceConfig) -> RemoteCompletions:
    """Return the chat service that the settings name."""
    if config.text_base_url:
        client = openai.AsyncOpenAI(
            base_url=config.text_base_url, api_key=config.text_api_key or _NO_KEY, **client_options()
        )
        return RemoteCompletions(client, config.text_model, "compatible")
    return RemoteCompletions(azure_client(config), config.azure_chat_deployment, "azure")


def azure_client(config: VoiceConfig) -> openai.AsyncOpenAI:
    """Return a client for the resource's v1 address, or for the dated one where a version is set.

    A key goes as ``api-key``; without one, Microsoft Entra ID gives a fresh token for each request.
    """
    base = service_base(config.azure_endpoint, websocket=False)
    token = _tokens(config.azure_entra_scope)
    if config.azure_chat_api_version:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=base,
            api_version=config.azure_chat_api_version,
            azure_deployment=config.azure_chat_deployment,
            **(
                {"api_key": config.azure_api_key}
                if config.azure_api_key
                else {"azure_ad_token_provider": token}
            ),
            **client_options(),
        )
    headers = {"api-key": config.azure_api_key} if config.azure_api_key else None
    return openai.AsyncOpenAI(
        base_url=f"{base}/openai/v1",
        api_key=config.azure_api_key or token,
        default_headers=headers,
        **client_options(),
    )


def _tokens(scope: str) -> Callable[[], Awaitable[str]]:
    async def token() -> str:
        return await entra.token(scope)

    return token


class RemoteCompletions:
    """A chat service, reached by the ``openai`` package.

    Requests pass through as far as the service takes them, and chunks without what is no word for the person.
    What was learnt of the service, from its refusals and answers, holds as long as this object.
    """

    def __init__(self, client: openai.AsyncOpenAI, model: str, provider: str) -> None:
        self._client = client
        self.model = model
        self.provider = provider
        host = client.base_url.host
        self._options = ServiceOptions(new_limit=provider == "azure" or host.endswith(_NEW_LIMIT_HOSTS))
        self._unopened = False

    async def stream(
        self, body: JsonObject, on_headers: Callable[[Mapping[str, str]], None] | None = None
    ) -> AsyncGenerator[JsonObject]:
        """See ``Completions``; ``on_headers`` is called with the headers of the service's answer."""
        # The name that a client gives is this product's; whose tokens are spent is the operator's choice.
        asked = {**body, "model": self.model, "stream": True}
        reader = AnswerReader(asked, unopened=self._unopened)
        try:
            async with await self._begun(asked) as begun:
                if on_headers is not None:
                    on_headers(begun.response.headers)
                async with aclosing(_chunks(begun.response, reader)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                # A service whose template begins its thoughts does so always, and others never.
                self._unopened = reader.was_unopened
        except openai.APIError as error:
            raise _explain(error) from error
        except TimeoutError:
            raise TextEngineTimeout(_LATE) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            # The SDK explains what goes wrong before the stream begins, and nothing after.
            late = isinstance(error, httpx2.TimeoutException)
            kind = TextEngineTimeout if late else TextEngineError
            raise kind(BROKEN_OFF) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise TextEngineError(NO_PART, code="text_engine_error") from error
        except (ConfigurationError, UpstreamRefused) as error:
            # There was no token to sign in with.
            raise TextEngineError(error.message, code="text_engine_refused") from error

    async def _begun(self, asked: JsonObject) -> openai.AsyncStream[ChatCompletionChunk]:
        """Return the service's answer, which has begun; ask again without what it refuses by name."""
        for tried in count(1):
            sent = self._options.fitted(asked)
            try:
                # Not by the typed method: the body is the client's own, and to walk through all of its
                # messages would take a millisecond.
                async with asyncio.timeout(_CONNECT_TIMEOUT_S + _TIMEOUT_S):
                    return await self._client.post(
                        "/chat/completions",
                        cast_to=ChatCompletionChunk,
                        body=sent,
                        stream=True,
                        stream_cls=openai.AsyncStream[ChatCompletionChunk],
                    )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                learnt = self._options.learn(error.body, sent)
                if not learnt:
                    raise
                logger.warning("The chat endpoint of %r refuses %s: it goes without", self.model, learnt)
                if tried == MAX_TRIES:
                    raise
        raise AssertionError

    async def aclose(self) -> None:
        """See ``Completions``."""
        await self._client.close()


def client_options() -> dict[str, Any]:
    """Return how this product uses the ``openai`` client."""
    return {
        "timeout": openai.Timeout(_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
        # A second try would come too late for somebody who waits for a spoken answer.
        "max_retries": 0,
    }


async def _chunks(response: httpx2.Response, reader: AnswerReader) -> AsyncGenerator[JsonObject]:
    """Yield the chunks of an answer; raise ``TextEngineError`` where it has no end."""
    done = False
    async with aclosing(_events(response)) as events:
        while (event := await _next(events, reader)) is not None:
            if isinstance(event, sse.Received) and event.data.startswith(_DONE):
                done = True
                await _drain(events)
                break
            # A document is over with its last sign.
            done = isinstance(event, bytes)
            for chunk in await _read(reader, event):
                yield chunk
    for chunk in reader.finish(done=done):
        yield chunk


async def _read(reader: AnswerReader, event: sse.Received | bytes) -> list[JsonObject]:
    """Return the chunks that an event or a document makes, in a thread where that takes its time.

    Raises ``TextEngineError``, ``ValueError``, ``RecursionError``.
    """

    def read() -> list[JsonObject]:
        if isinstance(event, bytes):
            return reader.whole(json.loads(event))
        return reader.feed(json.loads(event.data), event.name)

    size = len(event) if isinstance(event, bytes) else len(event.data)
    return await asyncio.to_thread(read) if size > _AT_ONCE else read()


async def _next(
    events: AsyncGenerator[sse.Received | bytes], reader: AnswerReader
) -> sse.Received | bytes | None:
    """Return the next event, ``None`` after the last; comments, which a service may send for ever, are none.

    Raises ``TimeoutError``. Where the answer has ended, what is lost behind its end does not matter.
    """
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await anext(events, None)
    except (httpx2.HTTPError, httpx2.StreamError):
        if reader.ended:
            return None
        raise


async def _drain(events: AsyncGenerator[sse.Received | bytes]) -> None:
    """Read to the end of a stream that is over, so that its connection can be used again; not for long."""
    with suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError, ValueError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in events:
                pass


async def _events(response: httpx2.Response) -> AsyncGenerator[sse.Received | bytes]:
    """Yield the events of a stream, or one JSON document where that is what the service answers.

    What it is its first sign says: services, and what stands before them, call either by wrong types. Raises
    ``ValueError`` for a page of HTML and for what has no end.
    """
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        raise ValueError("a page of HTML")
    pieces = response.aiter_bytes()
    begin = await _beginning(pieces)
    if begin.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
        yield await _document(begin, pieces)
        return
    reader = sse.StreamReader()
    for event in reader.feed(begin):
        yield event
    async for data in pieces:
        for event in reader.feed(data):
            yield event
    for event in reader.finish():
        # A connection that is lost cuts where it will: the rest of an event is none.
        if event.data.startswith(_DONE) or _is_json(event.data):
            yield event


async def _beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """Return what an answer begins with, as much as shows its first sign."""
    begin = bytearray()
    async for data in pieces:
        begin += data
        if begin.removeprefix(_BOM).strip() or len(begin) > _SNIFFED:
            break
    return bytes(begin)


async def _document(begin: bytes, pieces: AsyncIterator[bytes]) -> bytes:
    document = bytearray(begin)
    async for data in pieces:
        document += data
        if len(document) > sse.MAX_EVENT_BYTES:
            raise ValueError("a document without end")
    return bytes(document)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _explain(error: openai.APIError) -> TextEngineError:
    """Return our error for the SDK's, with nothing of the payload in it."""
    match error:
        case openai.APITimeoutError():
            return TextEngineTimeout(_LATE)
        case openai.APIConnectionError():
            return TextEngineError("The chat endpoint cannot be reached.", code="text_engine_unreachable")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return TextEngineError("The chat endpoint refused the key.", code="text_engine_refused")
        case openai.NotFoundError():
            return TextModelNotFound("The chat endpoint does not know this address or model.")
        case openai.RateLimitError():
            return TextEngineLimited("The chat endpoint is at its limit; try again soon.")
        case _ if error.code == "content_filter":
            sentence = "The chat endpoint's content filter blocked the request."
            return TextRequestError(sentence, code="content_filter")
        case openai.BadRequestError() | openai.UnprocessableEntityError():
            return TextRequestError("The chat endpoint did not accept the request.")
    return TextEngineError("The chat endpoint failed.")
