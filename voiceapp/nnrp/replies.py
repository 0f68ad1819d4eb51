"""Chat-completion chunks to the profile's partial events, and to the one body that they make together."""

from __future__ import annotations

from typing import Final

from voiceapp.errors import RemoteProtocolError
from voiceapp.nnrp import profile
from voiceapp.nnrp.wire import MAX_BODY_BYTES
from voiceapp.protocol import chat_chunks, tool_calls
from voiceapp.protocol.chat_chunks import Delta
from voiceapp.protocol.tool_call_assembler import ToolCallAssembler
from voiceapp.protocol.tool_calls import AnyToolCallEvent, ToolCallCompleted, ToolCallFault
from voiceapp.text.chat.result import Collector
from voiceapp.types import JsonObject

MAX_REPLY_CHARS: Final = MAX_BODY_BYTES // 8
"""Longest text of a reply: its last event holds all of it, and JSON may take six bytes for a character."""


class ReplyEvents:
    """One reply as it comes in.

    Events of tool calls bring the chunk that they came from; of text only where ``with_chunks``.
    """

    def __init__(self, scope: str, *, with_usage: bool, with_chunks: bool = False) -> None:
        self._collector = Collector(with_calls=False)
        self._with_usage = with_usage
        self._with_chunks = with_chunks
        self._assembler = ToolCallAssembler(scope)
        self._chars = 0
        self._calls: list[JsonObject] = []
        self._begun = False

    @property
    def usage(self) -> JsonObject | None:
        """What the service counted, ``None`` so far; of one that counts in every chunk the last count."""
        return self._collector.usage

    def feed(self, chunk: JsonObject) -> list[JsonObject]:
        """Return the events that a chunk makes; raise ``RemoteProtocolError`` where it breaks the rules."""
        if chat_chunks.is_taken_back(chunk):
            # What is with the client cannot be.
            return []
        read = chat_chunks.read(chunk)
        self._begun |= bool(read.choices)
        events = [
            event
            for choice in read.choices or []
            if choice.delta is not None
            for event in self._texts(choice.delta, chunk)
        ]
        events += self._tool_calls(self._assembler.feed(chunk, read))
        self._collector.feed(chunk)
        return events

    def finish(self) -> list[JsonObject]:
        """The stream is over: return the last partial events, the count of tokens among them.

        Raises ``RemoteProtocolError`` for a stream that did not say why it ended, or in which the name of a
        tool call never came.
        """
        if self._collector.finish_reason is None:
            raise RemoteProtocolError(
                "The service's stream ended before its reply did.", code="missing_terminal_event"
            )
        events = self._tool_calls(self._assembler.finish())
        if self._assembler.faults:
            raise self._assembler.faults[0]
        if self._with_usage and self.usage is not None:
            events.append(profile.usage_event(self.usage))
        return events

    def body(self) -> JsonObject:
        """Return the whole reply as a ``chat.completion``."""
        return self._collector.result(self._calls)

    def counted(self, body: JsonObject) -> tuple[int, int]:
        """Return (tokens in, tokens out), see ``Collector.counted``; 0 where nothing came back."""
        return self._collector.counted(body) if self._begun or self.usage else (0, 0)

    def abort(self, fault: ToolCallFault) -> list[JsonObject]:
        """The stream failed or was given up: return an error for each tool call that had started."""
        return self._tool_calls(self._assembler.abort(fault))

    def _texts(self, delta: Delta, chunk: JsonObject) -> list[JsonObject]:
        events = []
        for text in filter(None, (delta.content, delta.refusal)):
            self._grow(len(text))
            event = profile.text_event(self._assembler.text_index(), text)
            events.append({**event, "openai_chunk": chunk} if self._with_chunks else event)
        return events

    def _tool_calls(self, found: list[AnyToolCallEvent]) -> list[JsonObject]:
        for event in found:
            if isinstance(event, ToolCallCompleted):
                self._grow(len(event.arguments))
                function = {"name": event.name, "arguments": event.arguments}
                self._calls.append({"id": event.call_id, "type": "function", "function": function})
        return [tool_calls.write(event) for event in found]

    def _grow(self, chars: int) -> None:
        self._chars += chars
        if self._chars > MAX_REPLY_CHARS:
            raise RemoteProtocolError(
                f"A reply may have {MAX_REPLY_CHARS} characters at most.", code="reply_too_long"
            )
