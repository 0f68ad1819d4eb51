"""What is read of a chat-completions stream; pure.

Everything may be missing: Azure's first chunk and the last one's count have no choices, a choice of its
asynchronous filter has no ``delta``, and local servers leave out indexes and ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from voiceapp.errors import RemoteProtocolError
from voiceapp.types import JsonObject


class CallFunction(msgspec.Struct):
    """The name, or more of the arguments, of a call."""

    name: str | None = None
    arguments: str | None = None


class CallFragment(msgspec.Struct):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: CallFunction | None = None


class Delta(msgspec.Struct):
    """What a chunk adds to a choice."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallFragment] | None = None


class Choice(msgspec.Struct):
    """One of the answers that a stream may bring side by side."""

    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None


class ChatChunk(msgspec.Struct):
    """One ``chat.completion.chunk``."""

    choices: list[Choice] | None = None
    usage: JsonObject | None = None


def read(chunk: JsonObject) -> ChatChunk:
    """Return what a chunk says; raise ``RemoteProtocolError`` (``invalid_chunk``) where it is none."""
    try:
        return msgspec.convert(chunk, ChatChunk)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"Not a chat chunk: {error}", code="invalid_chunk") from None


TAKEN_BACK: Final[JsonObject] = {"choices": [], "taken_back": True}
"""Stands in a stream of ours where what was said before it turns out to be no words for the person."""


def is_taken_back(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk takes back what was said before it."""
    return chunk.get("taken_back") is True and not chunk.get("choices")


class CallSlots:
    """Gives each call of a stream a number of its own; ``ids`` has its id, one of ours where it has none.

    Fragments name their call by its index, or are told apart by their place. Some local servers number every
    call 0; a new id with a name then is a new call.
    """

    def __init__(self) -> None:
        self.ids: dict[int, str] = {}
        self._current: dict[int, int] = {}

    def of(self, fragment: Mapping[str, Any], position: int) -> int:
        """Return the number of the call that a fragment is of."""
        index = fragment.get("index")
        index = position if index is None else index
        name, call_id = (fragment.get("function") or {}).get("name"), fragment.get("id")
        number = self._current.get(index)
        if number is None or (name and call_id and call_id != self.ids[number]):
            number = index if index not in self.ids else max(self.ids) + 1
            self._current[index], self.ids[number] = number, call_id or f"call_{number}"
        return number
