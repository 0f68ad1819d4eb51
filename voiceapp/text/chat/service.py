"""Chat services, Azure's and compatible ones, reached by the ``openai`` package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from voiceapp.config import VoiceConfig
from voiceapp.errors import (
    ConfigurationError,
    RemoteProtocolError,
    TextEngineError,
    TextEngineLimited,
    TextEngineTimeout,
    TextModelNotFound,
    TextRequestError,
    UpstreamRefused,
)
from voiceapp.outbound import entra
from voiceapp.outbound.addresses import service_base
from voiceapp.protocol import chat_chunks
from voiceapp.types import JsonObject

# Without a key the client refuses to start; local servers want none.
_NO_KEY: Final = "none"
_CONNECT_TIMEOUT_S: Final = 10.0
_TIMEOUT_S: Final = 60.0
"""How long a service may take to begin its answer, and between two pieces of it."""
_LATE: Final = "The chat endpoint did not answer in time."
# A service may send anything as a piece, ``null`` too.
_END: Final = object()


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
    """A chat service, reached by the ``openai`` package; requests and chunks pass through unchanged."""

    def __init__(self, client: openai.AsyncOpenAI, model: str, provider: str) -> None:
        self._client = client
        self.model = model
        self.provider = provider

    async def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        """See ``Completions``."""
        # The name that a client gives is this product's; whose tokens are spent is the operator's choice.
        asked = {**body, "model": self.model, "stream": True}
        try:
            # Not by the typed method: the body is the client's own, and to walk through all of its messages
            # would take a millisecond.
            async with asyncio.timeout(_CONNECT_TIMEOUT_S + _TIMEOUT_S):
                stream = await self._client.post(
                    "/chat/completions",
                    cast_to=ChatCompletionChunk,
                    body=asked,
                    stream=True,
                    stream_cls=openai.AsyncStream[ChatCompletionChunk],
                )
            async with stream:
                while (chunk := await _next(stream)) is not _END:
                    yield _plain(chunk)
        except openai.APIError as error:
            raise _explain(error) from error
        except TimeoutError:
            raise TextEngineTimeout(_LATE) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            # The SDK explains what goes wrong before the stream begins, and nothing after.
            late = isinstance(error, httpx2.TimeoutException)
            kind = TextEngineTimeout if late else TextEngineError
            raise kind("The chat endpoint broke off its answer.") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            sentence = "The chat endpoint sent something that is no part of an answer."
            raise TextEngineError(sentence, code="text_engine_error") from error
        except (ConfigurationError, UpstreamRefused) as error:
            # There was no token to sign in with.
            raise TextEngineError(error.message, code="text_engine_refused") from error

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


async def _next(stream: openai.AsyncStream[ChatCompletionChunk]) -> object:
    """Return the next chunk, ``_END`` after the last; comments, which a service may send for ever, are none.

    Raises ``TimeoutError``.
    """
    async with asyncio.timeout(_TIMEOUT_S):
        return await anext(stream, _END)


def _plain(chunk: object) -> JsonObject:
    """Return the chunk with all that the service sent and nothing that it did not.

    Raises ``TextEngineError`` where it is no chunk: the SDK takes whatever JSON there is.
    """
    plain: Any = (
        chunk.to_dict(mode="json", warnings=False) if isinstance(chunk, ChatCompletionChunk) else None
    )
    try:
        chat_chunks.read(plain)
    except RemoteProtocolError:
        sentence = "The chat endpoint sent something that is no part of an answer."
        raise TextEngineError(sentence, code="text_engine_error") from None
    found: JsonObject = plain
    return found


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
        case openai.BadRequestError():
            return TextRequestError("The chat endpoint did not accept the request.")
    return TextEngineError("The chat endpoint failed.")
