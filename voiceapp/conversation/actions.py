"""What a ``Conversation`` asks its session to do."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from voiceapp.audio.formats import AudioFormat
from voiceapp.protocol import codec
from voiceapp.types import JsonObject


class SendUpstream(msgspec.Struct, frozen=True):
    """Send a client event (GA shape) to the Realtime service."""

    fields: JsonObject


class SendBrowser(msgspec.Struct, frozen=True):
    """Send JSON text to the page; the session adds ``seq``."""

    text: str


class SendAudio(msgspec.Struct, frozen=True):
    """Send samples of a track to the page, in the service's output format."""

    index: int
    item_id: str
    samples: bytes


class EndAudio(msgspec.Struct, frozen=True):
    """A track's audio is complete; a resampler on the way gives what it still holds."""

    index: int
    item_id: str


class CutAudio(msgspec.Struct, frozen=True):
    """Everything of an item after ``played_ms`` was never heard; the recording drops it."""

    item_id: str
    played_ms: int


class FormatsAgreed(msgspec.Struct, frozen=True):
    """The service echoed its audio formats; samples to and from it are in these from now on."""

    input: AudioFormat
    output: AudioFormat


class CallTool(msgspec.Struct, frozen=True):
    """Run a tool; its output comes back through ``Conversation.tool_returned``."""

    call_id: str
    name: str
    arguments: str


class HostServers(msgspec.Struct, frozen=True):
    """Ask the assistant's MCP servers for their tools from here: this service calls none.

    What they have comes back through ``Conversation.tools_listed``.
    """


class SaveItem(msgspec.Struct, frozen=True):
    """Keep an item as it is now; a later save of the same id replaces it."""

    item: KeptItem


class FinishedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Keep a response that is over. ``latency_ms``: from the end of speech to the first audio sent."""

    response_id: str
    status: str
    status_details: JsonObject | None = None
    usage: JsonObject | None = None
    metadata: JsonObject | None = None
    latency_ms: int | None = None


class FinishedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Keep a tool call that is over; ``arguments`` is the model's raw text, valid JSON or not."""

    call_id: str
    item_id: str = ""
    name: str
    arguments: str = ""
    output: str = ""
    status: str = ""
    started_ms: int = 0
    ended_ms: int = 0


class KeptItem(msgspec.Struct, kw_only=True):
    """One conversation item as this side knows it.

    Times are milliseconds on the session's clock. ``generated_text`` is all that was said, typed or
    generated; ``heard_text`` what was heard of it where playback was cut at ``cut_ms``, else ``None``.
    ``transcript_status`` of spoken input is ``pending``, ``completed``, ``failed``, or ``doubtful`` where the
    user committed what holds no speech.
    """

    item_id: str
    previous_item_id: str | None = None
    type: str = "message"
    role: str = ""
    status: str = "in_progress"
    response_id: str = ""
    modality: str = "text"
    generated_text: str = ""
    heard_text: str | None = None
    cut_ms: int | None = None
    transcript_status: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    name: str = ""
    call_id: str = ""
    arguments: str = ""
    raw: dict[str, Any] = msgspec.field(default_factory=dict)


Action: TypeAlias = (
    SendUpstream
    | SendBrowser
    | SendAudio
    | EndAudio
    | CutAudio
    | FormatsAgreed
    | CallTool
    | HostServers
    | SaveItem
    | FinishedResponse
    | FinishedCall
)


def to_browser(fields: JsonObject) -> SendBrowser:
    """Return a message for the page."""
    return SendBrowser(codec.encode_fields(fields).decode())


def notice(code: str, message: str, level: str = "info", **more: str) -> SendBrowser:
    """Return a sentence for the person at the page, with a stable code, and what it is about."""
    return to_browser({"type": "notice", "code": code, "message": message, "level": level, **more})
