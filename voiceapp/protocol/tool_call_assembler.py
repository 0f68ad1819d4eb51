"""Tool call events out of the chunks of a chat-completions stream."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol import chat_chunks
from voiceapp.protocol.chat_chunks import CallFragment, CallFunction, ChatChunk, Delta
from voiceapp.protocol.tool_calls import (
    MAX_ARGUMENTS_CHARS,
    MAX_CALLS,
    AnyToolCallEvent,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallError,
    ToolCallFault,
    ToolCallOrder,
    ToolCallStarted,
)
from voiceapp.types import JsonObject


class _PartialCall:
    """A call as far as the stream has told of it."""

    __slots__ = ("call_id", "choice", "name", "number", "slot", "started", "waiting")

    def __init__(self, choice: int, slot: int, number: int) -> None:
        self.choice = choice
        self.slot = slot
        self.number = number
        self.call_id = ""
        self.name = ""
        self.started: ToolCallStarted | None = None
        self.waiting: list[tuple[str, JsonObject]] = []
        """Arguments that came before the call could start, and their chunks."""


_CUT_SHORT: Final = {
    "length": ("max_output_tokens", "The reply reached its longest length before the call was complete."),
    "content_filter": ("content_filter", "The content filter ended the reply before the call was complete."),
}


_NO_END: Final = ("missing_terminal_event", "The service's stream ended before the reply did.")


class ToolCallAssembler:
    """Chunks of one chat-completions stream to tool call events, whatever a service leaves out.

    A call starts as soon as its name and id are known. One whose id never comes is given ``call_{scope}_{n}``
    at the end; one whose name never comes gets no event but is one of the ``faults``. Events bring the chunk
    that they came from.
    """

    def __init__(self, scope: str) -> None:
        self.faults: list[RemoteProtocolError] = []
        self._scope = scope
        self._order = ToolCallOrder(RemoteProtocolError)
        self._calls: list[_PartialCall] = []
        self._slots: dict[tuple[int, int], _PartialCall] = {}
        self._recent: dict[int, int] = {}
        self._ended: set[int] = set()
        self._texts: dict[int, int] = {}
        self._items = 0
        self._chars = 0

    def text_index(self, choice: int = 0) -> int:
        """Return the number of the output item that a choice's text is, which begins one if need be."""
        if choice not in self._texts:
            self._texts[choice] = self._next_item()
        return self._texts[choice]

    def feed(self, chunk: JsonObject, read: ChatChunk | None = None) -> list[AnyToolCallEvent]:
        """Take a ``chat.completion.chunk``, and what it says where that was read already.

        Raises ``RemoteProtocolError`` where it cannot be read.
        """
        found: list[AnyToolCallEvent] = []
        for choice in (read or chat_chunks.read(chunk)).choices or []:
            number = choice.index or 0
            delta = choice.delta or Delta()
            if delta.content or delta.refusal:
                self.text_index(number)
            fragments = delta.tool_calls or []
            for position, fragment in enumerate(fragments):
                found += self._take(number, fragment, position if len(fragments) > 1 else None, chunk)
            if choice.finish_reason:
                found += self._end(number, choice.finish_reason, chunk)
        return found

    def finish(self) -> list[AnyToolCallEvent]:
        """The stream is over: the calls of choices that never said why they ended come to nothing."""
        found: list[AnyToolCallEvent] = []
        for choice in {call.choice: None for call in self._calls}:
            found += self._end(choice, "", None)
        return found

    def abort(self, fault: ToolCallFault) -> list[AnyToolCallEvent]:
        """The stream failed or was given up: every call that had started ends in an error."""
        failed: list[AnyToolCallEvent] = [
            ToolCallError(index=call.index, item_id=call.item_id, call_id=call.call_id, error=fault)
            for call in self._order.open_calls()
        ]
        for event in failed:
            self._order.take(event)
        self._ended |= {call.choice for call in self._calls}
        return failed

    def _next_item(self) -> int:
        self._items += 1
        return self._items - 1

    def _take(
        self, choice: int, fragment: CallFragment, position: int | None, chunk: JsonObject
    ) -> list[AnyToolCallEvent]:
        if choice in self._ended:
            raise RemoteProtocolError(
                "A tool call went on after its choice had ended.", code="tool_call_after_end"
            )
        function = fragment.function or CallFunction()
        call = self._call_of(choice, fragment, function, position)
        call.call_id = call.call_id or fragment.id or ""
        call.name = call.name or function.name or ""
        found: list[AnyToolCallEvent] = []
        if call.name and call.call_id:
            found += self._start(call, chunk)
        if function.arguments:
            self._chars += len(function.arguments)
            if self._chars > MAX_ARGUMENTS_CHARS:
                raise RemoteProtocolError(
                    f"The arguments of a reply's calls may have {MAX_ARGUMENTS_CHARS} characters at most.",
                    code="tool_call_too_large",
                )
            found += self._arguments(call, function.arguments, chunk)
        return found

    def _call_of(
        self, choice: int, fragment: CallFragment, function: CallFunction, position: int | None
    ) -> _PartialCall:
        """Return the call that a fragment belongs to: by its index, else its id, else its place."""
        index = fragment.index
        if index is None:
            known = self._known(choice, fragment.id)
            if known is not None:
                index = known.slot
            else:
                index = self._recent.get(choice, 0) if position is None else position
        self._recent[choice] = index
        call = self._slots.get((choice, index))
        if call is not None and call.call_id and fragment.id and call.call_id != fragment.id:
            # Some services count every call 0; others make up an id for each fragment, but name a call once.
            call = self._known(choice, fragment.id) or (None if function.name else call)
        if call is None:
            if len(self._calls) >= MAX_CALLS:
                raise RemoteProtocolError(
                    f"A reply may have {MAX_CALLS} tool calls at most.", code="too_many_tool_calls"
                )
            call = self._slots[choice, index] = _PartialCall(choice, index, len(self._calls))
            self._calls.append(call)
        return call

    def _known(self, choice: int, call_id: str | None) -> _PartialCall | None:
        for call in self._calls:
            if call_id and (call.choice, call.call_id) == (choice, call_id):
                return call
        return None

    def _start(self, call: _PartialCall, chunk: JsonObject | None) -> list[AnyToolCallEvent]:
        if call.started is not None:
            return []
        call.started = ToolCallStarted(
            index=self._next_item(),
            item_id=f"item_{call.call_id}",
            call_id=call.call_id,
            name=call.name,
            openai_chunk=self._source(chunk),
        )
        self._order.take(call.started)
        found: list[AnyToolCallEvent] = [call.started]
        for text, source in call.waiting:
            found += self._arguments(call, text, source)
        call.waiting = []
        return found

    def _arguments(self, call: _PartialCall, text: str, chunk: JsonObject) -> list[AnyToolCallEvent]:
        if call.started is None:
            call.waiting.append((text, chunk))
            return []
        delta = ToolCallDelta(
            index=call.started.index,
            item_id=call.started.item_id,
            call_id=call.call_id,
            arguments_delta=text,
            openai_chunk=self._source(chunk),
        )
        self._order.take(delta)
        return [delta]

    def _end(self, choice: int, reason: str, chunk: JsonObject | None) -> list[AnyToolCallEvent]:
        if choice in self._ended:
            return []
        self._ended.add(choice)
        found: list[AnyToolCallEvent] = []
        for call in [call for call in self._calls if call.choice == choice]:
            if not call.name:
                self.faults.append(
                    RemoteProtocolError(
                        "The service sent a tool call without a name.", code="tool_call_without_name"
                    )
                )
                continue
            call.call_id = call.call_id or f"call_{self._scope}_{call.number}"
            found += self._start(call, chunk)
            found.append(self._ending(call, reason, chunk))
        return found

    def _ending(self, call: _PartialCall, reason: str, chunk: JsonObject | None) -> AnyToolCallEvent:
        assert call.started is not None
        arguments = self._order.arguments(call.call_id)
        event: AnyToolCallEvent
        if not reason or (reason in _CUT_SHORT and not _is_json(arguments)):
            code, message = _CUT_SHORT.get(reason, _NO_END)
            event = ToolCallError(
                index=call.started.index,
                item_id=call.started.item_id,
                call_id=call.call_id,
                error=ToolCallFault(type="incomplete", code=code, message=message),
                openai_chunk=self._source(chunk),
            )
        else:
            event = ToolCallCompleted(
                index=call.started.index,
                item_id=call.started.item_id,
                call_id=call.call_id,
                name=call.name,
                arguments=arguments,
                openai_chunk=self._source(chunk),
            )
        self._order.take(event)
        return event

    def _source(self, chunk: JsonObject | None) -> JsonObject | UnsetType:
        return UNSET if chunk is None else chunk


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
