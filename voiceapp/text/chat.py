"""Thinking by any OpenAI-compatible chat endpoint, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import openai

from voiceapp.errors import TextEngineError
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
)

# Without a key the client refuses to start; local servers want none.
_NO_KEY: Final = "none"
_CONNECT_TIMEOUT_S: Final = 10.0
_TIMEOUT_S: Final = 60.0
_SPOKEN: Final = (
    "Your reply is read aloud by a voice. Answer in plain, short spoken sentences without markup, lists or "
    "emoji."
)


class ChatProvider:
    """A ``TextProvider`` over ``POST {base_url}/chat/completions`` with ``stream: true``."""

    def __init__(self, base_url: str, api_key: str, model: str) -> None:
        self._model = model
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or _NO_KEY,
            timeout=openai.Timeout(_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            # A second try would come too late for somebody who waits for a spoken answer.
            max_retries=0,
        )

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """Stream the endpoint's answer; raise ``TextEngineError`` with a stable code where it fails."""
        try:
            stream = await self._client.chat.completions.create(**self._arguments(request))
            reader = ChunkReader()
            async with stream:
                async for chunk in stream:
                    for delta in reader.feed(chunk.model_dump()):
                        yield delta
            for delta in reader.finish():
                yield delta
        except openai.APIError as error:
            raise _explain(error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _arguments(self, request: ReplyRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.max_tokens is not None:
            arguments["max_tokens"] = request.max_tokens
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters or {"type": "object", "properties": {}},
                    },
                }
                for tool in request.tools
            ]
            if not request.several_calls:
                arguments["parallel_tool_calls"] = False
            choice = request.tool_choice
            arguments["tool_choice"] = (
                choice
                if choice in ("auto", "none", "required")
                else {"type": "function", "function": {"name": choice}}
            )
        return arguments


def messages(request: ReplyRequest) -> list[dict[str, Any]]:
    """Return the conversation as chat messages; calls made in a row share one assistant message."""
    system = "\n\n".join(part for part in (request.instructions, _SPOKEN if request.spoken else "") if part)
    result: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for item in request.history:
        match item:
            case Said(role=role, text=text):
                result.append({"role": role, "content": text})
            case Called(call_id=call_id, name=name, arguments=arguments):
                call = {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                if result and "tool_calls" in result[-1]:
                    result[-1]["tool_calls"].append(call)
                else:
                    result.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case Returned(call_id=call_id, output=output):
                result.append({"role": "tool", "tool_call_id": call_id, "content": output})
    return result


class ChunkReader:
    """Chat chunks to deltas, whatever a service leaves out.

    Azure begins with a chunk without choices, its asynchronous filter sends choices without ``delta``, the
    usage comes in a chunk of its own, and tool calls are told apart by their index alone.
    """

    def __init__(self) -> None:
        self._open: list[int] = []
        self._reason: str = "stop"
        self._usage: Mapping[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Take one chunk as a mapping."""
        self._usage = chunk.get("usage") or self._usage
        found: list[Delta] = []
        for choice in chunk.get("choices") or []:
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta") or {}
            if text := delta.get("content") or delta.get("refusal"):
                found.append(TextDelta(text))
            for position, call in enumerate(delta.get("tool_calls") or []):
                found += self._call(call, position)
        return found

    def finish(self) -> list[Delta]:
        """Return what ends the reply; a stream may end without saying why."""
        reason: Any = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(
            self._reason, "stop"
        )
        finished = Finished(reason, self._usage.get("prompt_tokens"), self._usage.get("completion_tokens"))
        return [*(CallFinished(index) for index in self._open), finished]

    def _call(self, call: Mapping[str, Any], position: int) -> list[Delta]:
        index = call.get("index")
        index = position if index is None else index
        function = call.get("function") or {}
        found: list[Delta] = []
        if index not in self._open:
            if not function.get("name"):
                return []
            self._open.append(index)
            found.append(CallStarted(index, call.get("id") or f"call_{index}", function["name"]))
        if arguments := function.get("arguments"):
            found.append(CallArguments(index, arguments))
        return found


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
    return TextEngineError(message, code=code)
