"""What the engine's session asks its host to do, and what the host tells it of replies. Plain data, pure."""

from __future__ import annotations

from dataclasses import dataclass

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.items import TimedWord
from voiceapp.engine.turns.detector import TurnSettings
from voiceapp.protocol.events import Event
from voiceapp.text.provider import (
    CallArguments,
    CallFinished,
    CallStarted,
    Finished,
    ReplyRequest,
    TakenBack,
    TextDelta,
)
from voiceapp.tools.mcp.messages import CallMcpTool, ListMcpTools


@dataclass(frozen=True, slots=True)
class SendEvent:
    """Send an event to the client."""

    event: Event


@dataclass(frozen=True, slots=True)
class Hear:
    """Take microphone audio, in the input format last asked for by ``Listen``."""

    audio: bytes


@dataclass(frozen=True, slots=True)
class Listen:
    """Hear in this format from now on, and find turns by these settings (``None``: push to talk)."""

    audio_format: AudioFormat
    turns: TurnSettings | None


@dataclass(frozen=True, slots=True)
class ForgetTurn:
    """The buffer was emptied at ``at_ms``: an open turn is none any more."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Transcribe:
    """Find the words of what was heard between two times; answer with the ``transcript`` facts."""

    item_id: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class TranscribeAudio:
    """Find the words of audio that came inside an item."""

    item_id: str
    audio: bytes
    audio_format: AudioFormat


@dataclass(frozen=True, slots=True)
class Speaking:
    """How a reply is to be spoken."""

    audio_format: AudioFormat
    voice: str
    speed: float


@dataclass(frozen=True, slots=True)
class StartReply:
    """Produce a reply; answer with the ``reply`` facts. ``speaking`` is ``None`` for text alone."""

    response_id: str
    request: ReplyRequest
    speaking: Speaking | None


@dataclass(frozen=True, slots=True)
class CancelReply:
    """Stop producing; what still comes is dropped."""

    response_id: str


@dataclass(frozen=True, slots=True)
class AwaitIdle:
    """Report ``idle`` once the user has heard everything and then been silent for ``idle_ms``."""

    idle_ms: int


@dataclass(frozen=True, slots=True)
class EndIdle:
    """Somebody speaks again: report nothing."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection after everything sent so far."""

    code: int
    reason: str


Action = (
    SendEvent
    | Hear
    | Listen
    | ForgetTurn
    | Transcribe
    | TranscribeAudio
    | StartReply
    | CancelReply
    | ListMcpTools
    | CallMcpTool
    | AwaitIdle
    | EndIdle
    | Close
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A reply will have a message, of which nothing was said yet."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """More of a spoken reply: audio in its format, and the words that begin in it."""

    audio: bytes
    words: tuple[TimedWord, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A reply cannot be made."""

    code: str
    message: str


ReplyFact = (
    Opened | TextDelta | TakenBack | Spoken | CallStarted | CallArguments | CallFinished | Finished | Failed
)
