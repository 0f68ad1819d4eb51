"""What a ``Conversation`` asks its session to do."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.records import Record
from voiceapp.protocol import page
from voiceapp.protocol.page import AnyServerMessage, Level, Notice
from voiceapp.types import JsonObject


class SendUpstream(msgspec.Struct, frozen=True):
    """Send a client event (GA shape) to the Realtime service."""

    fields: JsonObject


class SendBrowser(msgspec.Struct, frozen=True):
    """Send the page a message, or an event of the service as the JSON text that came; ``seq`` is added."""

    message: AnyServerMessage | str

    @property
    def text(self) -> str:
        """The message as JSON text."""
        return self.message if isinstance(self.message, str) else page.write(self.message)


class SendSpeech(msgspec.Struct, frozen=True):
    """Send the service a frame of the microphone, in the page's format, that waited for it."""

    frame: bytes


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


class PreviewCall(msgspec.Struct, frozen=True):
    """Find out what a call of a tool would do; that comes back through ``Conversation.tool_previewed``."""

    call_id: str
    name: str
    arguments: str


class HostServers(msgspec.Struct, frozen=True):
    """Ask the assistant's MCP servers for their tools from here: this service calls none.

    What they have comes back through ``Conversation.tools_listed``.
    """


class Save(msgspec.Struct, frozen=True):
    """Keep an item, a response or a call as it is now; a later record of the same id replaces this one."""

    record: Record


Action: TypeAlias = (
    SendUpstream
    | SendBrowser
    | SendSpeech
    | SendAudio
    | EndAudio
    | CutAudio
    | FormatsAgreed
    | CallTool
    | PreviewCall
    | HostServers
    | Save
)


def notice(code: str, message: str, level: Level = "info") -> SendBrowser:
    """Return a sentence for the person at the page, with a stable code."""
    return SendBrowser(Notice(code=code, message=message, level=level))
