"""Chat completions, whoever makes them: the currency between the text engine and its clients.

A request is the body of ``POST …/chat/completions``, an answer a stream of ``chat.completion.chunk`` objects,
just as a chat service has them. The embedded brain, chat endpoints and model hosts all stand behind this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, Protocol

import httpx
import msgspec
import openai
from openai.types.chat import ChatCompletionChunk

from voiceapp.errors import ConfigurationError, TextEngineError, UpstreamRefused

Object = dict[str, Any]

_CONNECT_TIMEOUT_S: Final = 10.0
_TIMEOUT_S: Final = 60.0


class Completions(Protocol):
    """Whoever answers chat requests. ``provider`` and ``model`` name it in what clients are told."""

    @property
    def provider(self) -> str:
        """``embedded``, ``azure``, ``compatible`` or ``model-host``."""

    @property
    def model(self) -> str:
        """The model that answers where a request names none."""

    def stream(self, body: Object) -> AsyncGenerator[Object]:
        """Stream ``chat.completion.chunk`` objects; the last brings ``usage`` where the request asks for it.

        ``body["stream"]`` does not matter. Raises ``TextEngineError`` with a stable code, before the first
        chunk or between two. Closing the iterator ends the work behind it.
        """

    async def aclose(self) -> None:
        """Let go of connections."""


class RemoteCompletions:
    """A chat service, reached by the ``openai`` package; requests and chunks pass through unchanged."""

    def __init__(self, client: openai.AsyncOpenAI, model: str, provider: str) -> None:
        self._client = client
        self._model = model
        self._provider = provider

    @property
    def provider(self) -> str:
        """See ``Completions``."""
        return self._provider

    @property
    def model(self) -> str:
        """See ``Completions``."""
        return self._model

    async def stream(self, body: Object) -> AsyncGenerator[Object]:
        """See ``Completions``."""
        asked = {**body, "model": body.get("model") or self._model, "stream": True}
        try:
            # Not by the typed method: the body is the client's own, and to walk through all of its messages
            # would take a millisecond.
            stream = await self._client.post(
                "/chat/completions",
                cast_to=ChatCompletionChunk,
                body=asked,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
            )
            async with stream:
                async for chunk in stream:
                    yield _plain(chunk)
        except openai.APIError as error:
            raise _explain(error) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            # The SDK explains what goes wrong before the stream begins, and nothing after.
            code = "text_engine_timeout" if isinstance(error, httpx.TimeoutException) else "text_engine_error"
            raise TextEngineError("The chat endpoint broke off its answer.", code=code) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            told = "The chat endpoint sent something that is no part of an answer."
            raise TextEngineError(told, code="text_engine_error") from error
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


def _plain(chunk: ChatCompletionChunk) -> Object:
    """Return the chunk with all that the service sent and nothing that it did not.

    Raises ``TextEngineError`` where it is no chunk: the SDK takes whatever JSON there is.
    """
    plain: Any = (
        chunk.to_dict(mode="json", warnings=False) if isinstance(chunk, ChatCompletionChunk) else None
    )
    try:
        msgspec.convert(plain, _Chunk)
    except msgspec.ValidationError:
        told = "The chat endpoint sent something that is no part of an answer."
        raise TextEngineError(told, code="text_engine_error") from None
    found: Object = plain
    return found


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    """What is read of a chunk, where it is there at all."""

    choices: list[_Choice] | None = None
    usage: Object | None = None


def _explain(error: openai.APIError) -> TextEngineError:
    """Return our error for the SDK's, with nothing of the payload in it."""
    code, message = "text_engine_error", "The chat endpoint failed."
    match error:
        case openai.APITimeoutError():
            code, message = "text_engine_timeout", "The chat endpoint did not answer in time."
        case openai.APIConnectionError():
            code, message = "text_engine_unreachable", "The chat endpoint cannot be reached."
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            code, message = "text_engine_refused", "The chat endpoint refused the key."
        case openai.NotFoundError():
            code, message = "text_engine_not_found", "The chat endpoint does not know this address or model."
        case openai.RateLimitError():
            code, message = "rate_limit_exceeded", "The chat endpoint is at its limit; try again soon."
        case _ if error.code == "content_filter":
            code, message = "content_filter", "The chat endpoint's content filter blocked the request."
        case openai.BadRequestError():
            code, message = "invalid_request", "The chat endpoint did not accept the request."
    return TextEngineError(message, code=code)
