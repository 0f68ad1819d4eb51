"""What is read of a chat-completions stream; pure.

Everything may be missing: Azure's first chunk and the last one's count have no choices, a choice of its
asynchronous filter has no ``delta``, and local servers leave out indexes and ids.
"""

from __future__ import annotations

import msgspec

from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol.events import Object


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
    usage: Object | None = None


def read(chunk: Object) -> ChatChunk:
    """Return what a chunk says; raise ``RemoteProtocolError`` (``invalid_chunk``) where it is none."""
    try:
        return msgspec.convert(chunk, ChatChunk)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"Not a chat chunk: {error}", code="invalid_chunk") from None
