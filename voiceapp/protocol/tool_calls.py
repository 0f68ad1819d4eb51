"""The four ``response.tool_call.*`` events of the contract ``openai-compatible/1``, and their order.

Whoever sends or receives them passes each through a ``ToolCallOrder``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from voiceapp.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from voiceapp.types import JsonObject

CONTRACT: Final = "openai-compatible/1"

MAX_CALLS: Final = 128
"""Calls in one reply: as many as there may be tools."""
MAX_ARGUMENTS_CHARS: Final = 4 * 1024 * 1024
"""Longest arguments of one call; they are kept until the call ends."""

Filled = Annotated[str, msgspec.Meta(min_length=1)]
Name = Annotated[Filled, msgspec.Meta(description="the tool's name")]


class ToolCallEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What the four have in common.

    ``openai_chunk`` is the chunk that the event came from, where there is one.
    """

    index: Annotated[int, msgspec.Meta(ge=0, description="place among the reply's output items, from 0")]
    item_id: Annotated[Filled, msgspec.Meta(description="the item of the call")]
    call_id: Annotated[Filled, msgspec.Meta(description="says which events belong together")]
    openai_chunk: JsonObject | UnsetType = UNSET

    @classmethod
    def type_name(cls) -> str:
        """Return the wire's ``type``."""
        return str(cls.__struct_config__.tag)


class ToolCallStarted(ToolCallEvent, frozen=True, kw_only=True, tag="response.tool_call.started"):
    """A call begins; always its first event."""

    name: Name


class ToolCallDelta(ToolCallEvent, frozen=True, kw_only=True, tag="response.tool_call.delta"):
    """More of a call's arguments."""

    arguments_delta: Annotated[str, msgspec.Meta(description="what follows in the arguments' JSON text")]


class ToolCallCompleted(ToolCallEvent, frozen=True, kw_only=True, tag="response.tool_call.completed"):
    """A call's arguments are complete: all its deltas put together."""

    name: Name
    arguments: Annotated[str, msgspec.Meta(description="the arguments' JSON text")]


class ToolCallFault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call came to nothing."""

    type: Annotated[Filled, msgspec.Meta(description="the kind of error, such as `tool_error`")]
    code: Annotated[Filled, msgspec.Meta(description="the error, as a stable word")]
    message: Annotated[Filled, msgspec.Meta(description="a sentence for people")]


class ToolCallError(ToolCallEvent, frozen=True, kw_only=True, tag="response.tool_call.error"):
    """A call that had started will not be completed."""

    error: Annotated[ToolCallFault, msgspec.Meta(description="why there is no result")]


AnyToolCallEvent = ToolCallStarted | ToolCallDelta | ToolCallCompleted | ToolCallError

_EVENT_TYPES: Final = (ToolCallStarted, ToolCallDelta, ToolCallCompleted, ToolCallError)
_NAMES: Final = {cls.type_name() for cls in _EVENT_TYPES}


def is_tool_call(fields: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one of the four events, by its type."""
    return fields.get("type") in _NAMES


def read(fields: JsonObject) -> AnyToolCallEvent:
    """Return a JSON object as an event; raise ``RemoteProtocolError`` where it breaks the contract."""
    try:
        event: AnyToolCallEvent = msgspec.convert(fields, AnyToolCallEvent)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"Not a tool call event: {error}", code="invalid_tool_call") from None
    return event


def write(event: AnyToolCallEvent) -> JsonObject:
    """Return an event as the JSON object that goes on the wire."""
    fields: JsonObject = msgspec.to_builtins(event)
    return fields


# -- order ------------------------------------------------------------------------------------------------


class CallState(Enum):
    """How far a call has come."""

    UNKNOWN = "unknown"
    STARTED = "started"
    ENDED = "ended"


TRANSITIONS: Final[Mapping[tuple[CallState, type[ToolCallEvent]], CallState]] = {
    (CallState.UNKNOWN, ToolCallStarted): CallState.STARTED,
    (CallState.STARTED, ToolCallDelta): CallState.STARTED,
    (CallState.STARTED, ToolCallCompleted): CallState.ENDED,
    (CallState.STARTED, ToolCallError): CallState.ENDED,
}
"""Every step that a call may take; any other breaks the contract."""


class _Progress:
    __slots__ = ("chars", "parts", "started", "state")

    def __init__(self, started: ToolCallStarted) -> None:
        self.started = started
        self.state = CallState.STARTED
        self.parts: list[str] = []
        self.chars = 0


class ToolCallOrder:
    """Checks the order of the events, call by call; calls may interleave.

    ``broken`` is what is raised: ``LocalProtocolError`` before sending, ``RemoteProtocolError`` after
    receiving. An event that was refused changes nothing.
    """

    def __init__(self, broken: type[LocalProtocolError] | type[RemoteProtocolError]) -> None:
        self._broken: type[ProtocolError] = broken
        self._calls: dict[str, _Progress] = {}

    def state(self, call_id: str) -> CallState:
        """Return how far a call has come."""
        progress = self._calls.get(call_id)
        return CallState.UNKNOWN if progress is None else progress.state

    def take(self, event: AnyToolCallEvent) -> None:
        """Let an event pass, or raise."""
        state = self.state(event.call_id)
        following = TRANSITIONS.get((state, type(event)))
        if following is None:
            raise self._broken(
                f"{event.type_name()} may not come for a call that is {state.value}.", code="tool_call_order"
            )
        if isinstance(event, ToolCallStarted):
            if len(self._calls) >= MAX_CALLS:
                raise self._broken(
                    f"A reply may have {MAX_CALLS} tool calls at most.", code="too_many_tool_calls"
                )
            self._calls[event.call_id] = _Progress(event)
            return
        progress = self._calls[event.call_id]
        self._agrees(progress, event)
        progress.state = following
        if isinstance(event, ToolCallDelta):
            progress.parts.append(event.arguments_delta)
            progress.chars += len(event.arguments_delta)
        else:
            # The call's id must stay known, its text need not.
            progress.parts = []

    def open_calls(self) -> list[ToolCallStarted]:
        """Return the calls that have started and not ended, oldest first."""
        return [call.started for call in self._calls.values() if call.state is CallState.STARTED]

    def arguments(self, call_id: str) -> str:
        """Return what the deltas of an open call make so far."""
        return "".join(self._calls[call_id].parts)

    def _agrees(self, progress: _Progress, event: AnyToolCallEvent) -> None:
        started = progress.started
        if (event.index, event.item_id) != (started.index, started.item_id):
            raise self._broken("A call's index and item_id may not change.", code="tool_call_mismatch")
        match event:
            case ToolCallDelta(arguments_delta=delta) if progress.chars + len(delta) > MAX_ARGUMENTS_CHARS:
                raise self._broken(
                    f"A call's arguments may have {MAX_ARGUMENTS_CHARS} characters at most.",
                    code="tool_call_too_large",
                )
            case ToolCallCompleted(name=name) if name != started.name:
                raise self._broken("A call's name may not change.", code="tool_call_mismatch")
            case ToolCallCompleted(arguments=arguments) if arguments != "".join(progress.parts):
                raise self._broken(
                    "A call's arguments must be its deltas put together.", code="tool_call_mismatch"
                )
            case _:
                pass
