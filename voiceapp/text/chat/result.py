"""A stream of chat chunks: what it took, and the one answer that it makes; pure."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any, Final

from voiceapp.errors import TextEngineError
from voiceapp.protocol.chat_chunks import CallSlots, is_taken_back
from voiceapp.text.provider import text_tokens, tokens_of
from voiceapp.types import JsonObject

MAX_CHARS: Final = 4_000_000
"""Longest answer; a service that never ends would take all memory, or all of somebody's money."""


class Meter:
    """What there is to know of a stream of ``chat.completion.chunk`` objects but for its content.

    It keeps nothing that grows with the answer: many streams at once take no more memory as they go on.
    """

    def __init__(self) -> None:
        self.usage: JsonObject | None = None
        self.finish_reason: str | None = None
        self._head: JsonObject = {}
        self._characters = 0
        self._pieces = 0

    @property
    def begun(self) -> bool:
        """Whether anything of an answer came."""
        return bool(self._head or self._characters or self.usage)

    @property
    def model(self) -> str:
        """The model that the service says it used."""
        return str(self._head.get("model") or "")

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """Take a chunk; return the text that it brings.

        Raises ``TextEngineError`` (``text_engine_error``) where there is no end to an answer.
        """
        self.usage = chunk.get("usage") or self.usage
        if not self.model:
            # Azure's first chunk names nothing; of the others each names all.
            for name in ("id", "created", "model", "system_fingerprint", "service_tier"):
                if chunk.get(name):
                    self._head[name] = chunk[name]
        came = ""
        for choice in chunk.get("choices") or []:
            if not choice.get("index"):
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
                came += self._take(choice.get("delta") or {})
        return came

    def counted(self, body: JsonObject) -> tuple[int, int]:
        """Return (tokens in, tokens out): the service's count, or about as many where it gave none."""
        if self.usage:
            return _count(self.usage, "prompt_tokens"), _count(self.usage, "completion_tokens")
        messages = body.get("messages")
        asked = sum(
            text_tokens(str(message.get("content")))
            for message in (messages if isinstance(messages, list) else [])
            if isinstance(message, dict)
        )
        return asked, tokens_of(self._characters)

    def _take(self, delta: Mapping[str, Any]) -> str:
        """Count what a delta brings; return its text."""
        text: str = delta.get("content") or ""
        calls = delta.get("tool_calls") or []
        arguments = sum(len((call.get("function") or {}).get("arguments") or "") for call in calls)
        self._characters += len(text) + len(delta.get("refusal") or "") + arguments
        # Calls without arguments have no end either.
        self._pieces += len(calls)
        if self._characters + self._pieces > MAX_CHARS:
            sentence = f"The answer is longer than {MAX_CHARS} characters."
            raise TextEngineError(sentence, code="text_engine_error")
        return text


class Collector(Meter):
    """Makes one ``chat.completion`` of the chunks, whatever a service leaves out.

    ``with_calls`` is off where somebody else puts the tool calls together.
    """

    def __init__(self, *, with_calls: bool = True) -> None:
        super().__init__()
        self._with_calls = with_calls
        # Buffers: a list of pieces takes twenty times their text, and adding to a text copies it each time.
        self._said = StringIO()
        self._refusal = StringIO()
        # By index: the call, and its arguments so far.
        self._calls: dict[int, JsonObject] = {}
        self._arguments: dict[int, StringIO] = {}
        self._slots = CallSlots()

    @property
    def text(self) -> str:
        """What was said so far."""
        return self._said.getvalue()

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """See ``Meter``."""
        if is_taken_back(chunk):
            self._said = StringIO()
        return super().feed(chunk)

    def _take(self, delta: Mapping[str, Any]) -> str:
        text = super()._take(delta)
        self._said.write(text)
        self._refusal.write(delta.get("refusal") or "")
        calls = delta.get("tool_calls") if self._with_calls else None
        for position, call in enumerate(calls or []):
            self._call(call, position)
        return text

    def result(self, calls: list[JsonObject] | None = None) -> JsonObject:
        """Return the whole answer, a ``chat.completion`` object.

        ``calls`` are its tool calls where they are not collected here.
        """
        calls = self._tool_calls() if calls is None else calls
        text, refusal = self.text, self._refusal.getvalue()
        message: JsonObject = {
            "role": "assistant",
            "content": text if text or not (calls or refusal) else None,
            "refusal": refusal or None,
        }
        if calls:
            message["tool_calls"] = calls
        reason = self.finish_reason or ("tool_calls" if calls else "stop")
        return {
            "id": "",
            "created": 0,
            "model": "",
            **self._head,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            **({"usage": self.usage} if self.usage else {}),
        }

    def _tool_calls(self) -> list[JsonObject]:
        for index, call in self._calls.items():
            call["function"]["arguments"] = self._arguments[index].getvalue()
        return [self._calls[index] for index in sorted(self._calls)]

    def _call(self, call: Mapping[str, Any], position: int) -> None:
        number = self._slots.of(call, position)
        function = call.get("function") or {}
        if number not in self._calls:
            empty = {"name": "", "arguments": ""}
            self._calls[number] = {"id": self._slots.ids[number], "type": "function", "function": empty}
            self._arguments[number] = StringIO()
        kept = self._calls[number]["function"]
        kept["name"] = kept["name"] or function.get("name") or ""
        self._arguments[number].write(function.get("arguments") or "")


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return max(0, value) if isinstance(value, int) else 0
