"""Chat completions made by one of the product's own providers."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from typing import Final

from voiceapp.errors import TextEngineError
from voiceapp.protocol.chat_chunks import TAKEN_BACK
from voiceapp.text.chat import request as chat_request
from voiceapp.text.chat.request import ChatRequest
from voiceapp.text.provider import (
    CHARACTERS_PER_TOKEN,
    CallArguments,
    Called,
    CallStarted,
    Delta,
    Finished,
    ReplyRequest,
    Returned,
    Said,
    TakenBack,
    TextDelta,
    TextProvider,
    text_tokens,
)
from voiceapp.types import JsonObject

_REASONS: Final = {"stop": "stop", "max_output_tokens": "length", "content_filter": "content_filter"}


class LocalCompletions:
    """Makes ``chat.completion.chunk`` objects of what a ``TextProvider`` says; see ``Completions``."""

    def __init__(self, source: TextProvider, model: str, provider: str) -> None:
        self._source = source
        self.model = model
        self.provider = provider

    async def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        """See ``Completions``."""
        asked = chat_request.read(body)
        chunks = _Chunks(asked, asked.model or self.model)
        yield chunks.chunk({"role": "assistant", "content": None if asked.structured else ""})
        deltas = self._source.reply(asked.reply)
        try:
            async for delta in deltas:
                for chunk in chunks.feed(delta):
                    yield chunk
                if chunks.full:
                    break
        finally:
            if isinstance(deltas, AsyncGenerator):
                await deltas.aclose()
        for chunk in chunks.finish():
            yield chunk

    async def aclose(self) -> None:
        """See ``Completions``."""
        await self._source.aclose()


class _Chunks:
    """One answer, chunk by chunk; cut where the limit of tokens is reached."""

    def __init__(self, asked: ChatRequest, model: str) -> None:
        self._asked = asked
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        limit = asked.reply.max_tokens
        self._room = None if limit is None else limit * CHARACTERS_PER_TOKEN
        self._called = False
        self._said: list[str] = []
        self._end: Finished | None = None

    @property
    def full(self) -> bool:
        """Whether the limit of tokens is reached."""
        return self._room == 0

    def chunk(self, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        """Return a chunk of one choice."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "choices": [choice], **({"usage": None} if self._asked.include_usage else {})}

    def feed(self, delta: Delta) -> list[JsonObject]:
        """Take what the provider brings."""
        match delta:
            case TextDelta(text=text):
                return self._content(text)
            case TakenBack():
                return [dict(TAKEN_BACK)]
            case CallStarted(index=index, call_id=call_id, name=name) if not self._asked.structured:
                self._called = True
                function = {"name": name, "arguments": ""}
                call = {"index": index, "id": call_id, "type": "function", "function": function}
                return [self.chunk({"tool_calls": [call]})]
            case CallArguments(delta=text) if self._asked.structured:
                return self._content(text)
            case CallArguments(index=index, delta=text):
                text = self._taken(text)
                return [self.chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})]
            case Finished():
                self._end = delta
        return []

    def finish(self) -> list[JsonObject]:
        """Return the chunk that says why it ended, and the one that counts.

        Raises ``TextEngineError`` where there was no end.
        """
        end = self._end or Finished()
        if self._end is None and not self.full:
            raise TextEngineError("The model broke off its reply.", code="text_engine_error")
        reason = "length" if self.full else _REASONS[end.reason]
        if self._called and reason == "stop":
            reason = "tool_calls"
        last = [self.chunk({}, reason)]
        if self._asked.include_usage:
            last.append({**self._head, "choices": [], "usage": self._usage(end)})
        return last

    def _content(self, text: str) -> list[JsonObject]:
        text = self._taken(text)
        return [self.chunk({"content": text})] if text else []

    def _taken(self, text: str) -> str:
        if self._room is not None:
            text = text[: self._room]
            self._room -= len(text)
        self._said.append(text)
        return text

    def _usage(self, end: Finished) -> JsonObject:
        counted = end.input_tokens
        asked = _input_tokens(self._asked.reply) if counted is None else counted
        counted = end.output_tokens
        said = text_tokens("".join(self._said)) if counted is None else counted
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _input_tokens(request: ReplyRequest) -> int:
    texts = [request.instructions]
    for item in request.history:
        match item:
            case Said(text=text):
                texts.append(text)
            case Called(name=name, arguments=arguments):
                texts += [name, arguments]
            case Returned(output=output):
                texts.append(output)
    return sum(text_tokens(text) for text in texts)
