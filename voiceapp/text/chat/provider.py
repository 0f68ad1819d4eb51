"""Thinking by chat completions, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

from voiceapp.errors import TextEngineError
from voiceapp.protocol.chat_chunks import CallSlots, is_taken_back
from voiceapp.text.history import paired
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Completions,
    Delta,
    Finished,
    ReplyRequest,
    Returned,
    Said,
    TakenBack,
    TextDelta,
)

_SPOKEN: Final = (
    "Your reply is read aloud by a voice. Answer in plain, short spoken sentences without markup, lists or "
    "emoji."
)


class ChatProvider:
    """A ``TextProvider`` that asks for chat completions."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """Stream the endpoint's answer; raise ``TextEngineError`` with a stable code where it fails."""
        reader = ChunkReader()
        chunks = self._completions.stream({"model": self._completions.model, **chat_body(request)})
        async with aclosing(chunks):
            async for chunk in chunks:
                for delta in reader.feed(chunk):
                    yield delta
        for delta in reader.finish():
            yield delta

    async def aclose(self) -> None:
        """Close the connections."""
        await self._completions.aclose()


def chat_body(request: ReplyRequest) -> dict[str, Any]:
    """Return what is asked, as the body of a chat request without its model."""
    body: dict[str, Any] = {"messages": messages(request), "stream_options": {"include_usage": True}}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            }
            for tool in request.tools
        ]
        if not request.several_calls:
            body["parallel_tool_calls"] = False
        choice = request.tool_choice
        named = choice not in ("auto", "none", "required")
        body["tool_choice"] = {"type": "function", "function": {"name": choice}} if named else choice
    return body


def messages(request: ReplyRequest) -> list[dict[str, Any]]:
    """Return the conversation as chat messages, each call with its output.

    Calls made in a row share one assistant message, and so do remarks that a user makes in a row.
    """
    system = "\n\n".join(part for part in (request.instructions, _SPOKEN if request.spoken else "") if part)
    result: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for item in paired(request.history):
        match item:
            case Said(role="user", text=text) if result and result[-1]["role"] == "user":
                result[-1]["content"] = "\n".join(filter(None, (result[-1]["content"], text)))
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

    Azure begins with a chunk without choices, its asynchronous filter sends choices without ``delta``, and
    the usage comes in a chunk of its own.
    """

    def __init__(self) -> None:
        self._slots = CallSlots()
        self._started: dict[int, None] = {}
        self._reason = ""
        self._usage: Mapping[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Take one chunk as a mapping."""
        self._usage = chunk.get("usage") or self._usage
        found: list[Delta] = [TakenBack()] if is_taken_back(chunk) else []
        for choice in chunk.get("choices") or []:
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta") or {}
            if text := delta.get("content") or delta.get("refusal"):
                found.append(TextDelta(text))
            for position, call in enumerate(delta.get("tool_calls") or []):
                found += self._call(call, position)
        return found

    def finish(self) -> list[Delta]:
        """Return what ends the reply; raise ``TextEngineError`` where the stream did not say that it ends."""
        if not self._reason:
            raise TextEngineError("The chat endpoint broke off its answer.", code="text_engine_error")
        reason: Any = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(
            self._reason, "stop"
        )
        finished = Finished(reason, self._usage.get("prompt_tokens"), self._usage.get("completion_tokens"))
        return [*(CallFinished(index) for index in self._started), finished]

    def _call(self, call: Mapping[str, Any], position: int) -> list[Delta]:
        number = self._slots.of(call, position)
        function = call.get("function") or {}
        found: list[Delta] = []
        if number not in self._started:
            if not function.get("name"):
                return []
            self._started[number] = None
            found.append(CallStarted(number, self._slots.ids[number], function["name"]))
        if arguments := function.get("arguments"):
            found.append(CallArguments(number, arguments))
        return found
