"""The page's own protocol: every message of ``/ws/voice/``, both ways, and the codes that close it; pure.

A class is named after its message's ``type``: ``session.ready`` is ``SessionReady``. Beside these messages
the socket carries the tool-call events (``voiceapp.protocol.tool_calls``), those Realtime events that are
listed here (``voiceapp.protocol.events``), and audio as binary messages. ``docs/page-protocol.md``, the types
of the page's scripts and the examples in ``tests/fixtures/page`` are written from this module.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Annotated, Final, Literal, TypeAlias, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from voiceapp.audio.formats import AudioFormat
from voiceapp.protocol import codec, events
from voiceapp.protocol.events import CLIENT_EVENTS, SERVER_EVENTS, Event, UnknownEvent
from voiceapp.protocol.tool_calls import ToolCallEvent
from voiceapp.types import JsonObject


def about(description: str) -> msgspec.Meta:
    """Return what a member means; it stands in the documents and in the page's types."""
    return msgspec.Meta(description=description)


ItemId: TypeAlias = Annotated[str, about("the conversation's item")]
ResponseId: TypeAlias = Annotated[str, about("the response that the item belongs to")]
CallId: TypeAlias = Annotated[str, about("the call, as `response.tool_call.started` named it")]
ApprovalId: TypeAlias = Annotated[str, about("names the question; the answer repeats it")]
Seq: TypeAlias = Annotated[
    int, about("number of the last message that the page has: the server forgets it and those before it")
]
Format: TypeAlias = str | JsonObject | None
"""An audio format in any spelling that ``AudioFormat.parse`` reads."""


# -- from the page --------------------------------------------------------------------------------------


class ClientMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of what the page sends; members that are not declared are passed over."""

    @classmethod
    def type_name(cls) -> str:
        """Return the wire's ``type``."""
        return str(cls.__struct_config__.tag)


class Resume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a page that comes back has of its session."""

    session_id: Annotated[UUID, about("the session, as `session.ready` named it")]
    seq: Annotated[int, about("number of the last message that the page has")]
    frames: Annotated[int, about("audio messages that the page has sent in this session")] = 0


class WantedFormats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Audio formats that the page asks for: ``audio/pcm``, ``audio/pcmu``, ``audio/pcma``, or GA's object."""

    input: Annotated[Format, about("of the microphone; null or nothing: the assistant's")] = None
    output: Annotated[Format, about("of the speaker; null or nothing: the assistant's")] = None


class SessionStart(ClientMessage, frozen=True, kw_only=True, tag="session.start"):
    """Begins a session, goes on from an earlier one, or comes back to a live one; the first message."""

    assistant: Annotated[str | None, about("slug of the assistant; nothing: the first one")] = None
    voice: Annotated[str | None, about("one of the voices that the assistant offers")] = None
    continues: Annotated[UUID | None, about("an earlier session whose conversation goes on in a new one")] = (
        msgspec.field(default=None, name="continue")
    )
    resume: Annotated[Resume | None, about("the live session that the page comes back to")] = None
    audio: Annotated[WantedFormats | None, about("audio formats that the page asks for")] = None


class PlaybackReport(ClientMessage, frozen=True, kw_only=True, tag="playback.report"):
    """How much of an item the page's speaker has played; sent while it plays, and at its end."""

    item_id: ItemId
    content_index: Annotated[int, about("the item's part that plays")] = 0
    played_ms: Annotated[float, about("milliseconds of the item's audio that were played")]
    final: Annotated[bool, about("whether nothing more of it will be played")] = False
    seq: Seq = 0


class Ping(ClientMessage, frozen=True, kw_only=True, tag="ping"):
    """Asks for ``pong``, so that the page notices a connection that is dead."""

    seq: Seq = 0


class SessionEnd(ClientMessage, frozen=True, kw_only=True, tag="session.end"):
    """Ends the session: the server answers with ``session.ended`` and closes the socket."""


AfterStart: TypeAlias = PlaybackReport | Ping | SessionEnd
"""What may come once the session has begun, beside Realtime events."""

_AFTER_START: Final = frozenset(cls.type_name() for cls in get_args(AfterStart))
CLIENT_MESSAGES: Final[dict[str, type[ClientMessage]]] = {
    cls.type_name(): cls for cls in ClientMessage.__subclasses__()
}
REALTIME_CLIENT_EVENTS: Final[dict[str, type[Event]]] = {
    name: CLIENT_EVENTS[name]
    for name in (
        "input_audio_buffer.append", "input_audio_buffer.commit", "input_audio_buffer.clear",
        "output_audio_buffer.clear", "conversation.item.create", "conversation.item.delete",
        "conversation.item.retrieve", "conversation.item.truncate", "response.create", "response.cancel",
    )
}  # fmt: skip
"""Realtime client events that a page may send; ``conversation/page_policy.py`` says what may be in them."""


# -- to the page ----------------------------------------------------------------------------------------


class ServerMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of what the server sends of its own; the session's outbox puts ``seq`` in front of the members."""

    @classmethod
    def type_name(cls) -> str:
        """Return the wire's ``type``."""
        return str(cls.__struct_config__.tag)


class PageAssistant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who speaks."""

    slug: Annotated[str, about("the assistant's short name in addresses")]
    name: Annotated[str, about("the assistant's name for people")]


class AgreedFormats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Audio formats of the binary messages, as GA's objects."""

    input: Annotated[JsonObject, about("of the microphone's messages")]
    output: Annotated[JsonObject, about("of the answers' messages")]


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a session may use."""

    max_session_ms: Annotated[int, about("longest duration of the session in milliseconds")]


TurnDetection: TypeAlias = Annotated[
    JsonObject | None, about("GA's `turn_detection`; null: push-to-talk, the page commits each turn")
]
Transcribes: TypeAlias = Annotated[bool, about("whether what the user says is transcribed")]


class SessionReady(ServerMessage, frozen=True, kw_only=True, tag="session.ready"):
    """The session is there and the voice service listens; sent once in a session."""

    session_id: Annotated[UUID, about("names the session")]
    assistant: Annotated[PageAssistant, about("who speaks")]
    audio: Annotated[AgreedFormats, about("audio formats of the binary messages")]
    transcription: Transcribes
    grace_ms: Annotated[int, about("milliseconds for which the session waits for a page whose socket broke")]
    limits: Annotated[SessionLimits, about("what the session may use")]
    turn_detection: TurnDetection
    upstream: Annotated[str, about("kind of voice service: `embedded`, `azure-ga` or `azure-preview`")]


class SessionResumed(ServerMessage, frozen=True, kw_only=True, tag="session.resumed"):
    """The page has come back: the messages after ``seq`` follow. It has no number of its own."""

    seq: Annotated[int, about("number after which the messages go on")]
    session_id: Annotated[UUID, about("names the session")]
    lost: Annotated[bool, about("whether messages before that are missing")]
    frames: Annotated[int, about("audio messages that the server got: the page sends those after them again")]
    moved: Annotated[bool, about("whether another server process goes on with the session")]


class SessionRenewed(ServerMessage, frozen=True, kw_only=True, tag="session.renewed"):
    """The session has moved to a new connection to its voice service, which counts audio from 0 again."""


class SessionAssistant(ServerMessage, frozen=True, kw_only=True, tag="session.assistant"):
    """Another assistant goes on with the conversation."""

    assistant: Annotated[PageAssistant, about("who speaks from now on")]
    turn_detection: TurnDetection
    transcription: Transcribes


class EarlierItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the user or of an assistant that was said before."""

    item_id: ItemId
    previous_item_id: Annotated[str | None, about("the item before it; null: it is the first")]
    role: Annotated[str, about("`user` or `assistant`")]
    generated_text: Annotated[str, about("the same as `text`")]
    heard_text: Annotated[str | None, about("the part of it that was heard; null: it was not cut")]
    cut_ms: Annotated[int | None, about("milliseconds of it that were heard; null: it was not cut")]
    transcript_status: Annotated[
        str, about("of spoken input: `pending`, `completed`, `failed` or `doubtful`; else empty")
    ]
    modality: Annotated[str, about("`audio` or `text`")]
    text: Annotated[str, about("all that was said, typed or generated")]
    speaker: Annotated[str, about("name of the session's assistant")]


class SessionHistory(ServerMessage, frozen=True, kw_only=True, tag="session.history"):
    """What was said before, oldest first; of a long conversation the newest part."""

    same_session: Annotated[bool, about("whether it was said in this session, in another server process")]
    items: Annotated[list[EarlierItem], about("messages of both sides in the conversation's order")]


class SessionEnded(ServerMessage, frozen=True, kw_only=True, tag="session.ended"):
    """The session has ended and is kept; the last message before the socket closes."""

    reason: Annotated[str, about("why, as a stable word; it is the close frame's reason as well")]
    code: Annotated[str, about("the error behind it, as a stable word; without one the reason")]
    message: Annotated[str, about("a sentence for people")]


class AudioItem(ServerMessage, frozen=True, kw_only=True, tag="audio.item"):
    """Audio of an item follows, in binary messages that begin with its ``index``."""

    index: Annotated[int, about("the first four bytes of its binary messages, big-endian")]
    item_id: ItemId
    content_index: Annotated[int, about("the item's part that is spoken")]
    response_id: ResponseId
    format: Annotated[AudioFormat, about("audio format of the voice service")]


class AudioCut(ServerMessage, frozen=True, kw_only=True, tag="audio.cut"):
    """The page stops an item's audio at once, drops what waits, and reports what was played as ``final``."""

    item_id: ItemId
    response_id: ResponseId


class CaptionHeard(ServerMessage, frozen=True, kw_only=True, tag="caption.heard"):
    """How much of an answer that was cut was heard."""

    item_id: ItemId
    heard_text: Annotated[str, about("the words that were heard")]
    cut_ms: Annotated[int, about("milliseconds of its audio that were heard")]


class CaptionFailed(ServerMessage, frozen=True, kw_only=True, tag="caption.failed"):
    """No transcript of what the user said will come."""

    item_id: ItemId


class CaptionDoubtful(ServerMessage, frozen=True, kw_only=True, tag="caption.doubtful"):
    """The transcript is of audio without speech: the words may be invented."""

    item_id: ItemId


class Outcome(Enum):
    """How a question ended."""

    ALLOWED = "allowed"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    WITHDRAWN = "withdrawn"


class ApprovalRequested(ServerMessage, frozen=True, kw_only=True, tag="approval.requested"):
    """A tool's call waits for the user; the answer is a Realtime item ``mcp_approval_response``."""

    approval_request_id: ApprovalId
    server_label: Annotated[
        str, about("the MCP server or HTTP service that the tool is of; empty: of neither")
    ]
    name: Annotated[str, about("the tool's name there")]
    arguments: Annotated[str, about("the call's arguments, JSON text")]
    call_id: Annotated[str, about("the call that waits; empty where the service asks before there is one")]
    timeout_ms: Annotated[int, about("milliseconds after which the call is refused")]


class ApprovalSettled(ServerMessage, frozen=True, kw_only=True, tag="approval.settled"):
    """A question needs no answer any more."""

    approval_request_id: ApprovalId
    outcome: Annotated[Outcome, about("how it ended")]


class ToolProgress(ServerMessage, frozen=True, kw_only=True, tag="tool.progress"):
    """What a running tool says of itself."""

    call_id: CallId
    message: Annotated[str, about("a sentence for people; it replaces the one before")]


Level: TypeAlias = Literal["info", "warning", "error"]


class Notice(ServerMessage, frozen=True, kw_only=True, tag="notice"):
    """A sentence for the person at the page; a later one of the same ``code`` replaces it."""

    code: Annotated[str, about("what it is about, as a stable word")]
    message: Annotated[str, about("the sentence")]
    level: Annotated[Level, about("how serious it is")]
    server_label: Annotated[str | UnsetType, about("the MCP server that it is about, if it is about one")] = (
        UNSET
    )
    reason: Annotated[str | UnsetType, about("why that server's tools cannot be had, in its words")] = UNSET


class Pong(ServerMessage, frozen=True, kw_only=True, tag="pong"):
    """Answers ``ping``."""


SERVER_MESSAGES: Final[dict[str, type[ServerMessage | ToolCallEvent]]] = {
    **{cls.type_name(): cls for cls in ServerMessage.__subclasses__()},
    **{cls.type_name(): cls for cls in ToolCallEvent.__subclasses__()},
}
REALTIME_SERVER_EVENTS: Final[dict[str, type[Event]]] = {
    name: cls for name, cls in SERVER_EVENTS.items() if cls is not events.ResponseOutputAudioDelta
}
"""Realtime server events that a page may get: all but those whose audio goes as binary messages."""


# -- how the socket closes ------------------------------------------------------------------------------


class CloseCode(IntEnum):
    """Why the server closes the page's socket, as the WebSocket close code; ``words`` say it to people.

    After one that is ``resumable`` the session still waits for its page.
    """

    words: str
    resumable: bool

    def __new__(cls, code: int, words: str, resumable: bool = False) -> CloseCode:
        """Return the member with its words."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.words, member.resumable = words, resumable
        return member

    FAULT = 1011, "Something went wrong on the server. Your conversation is kept."
    ENDED = 4000, "The conversation has ended."
    NOT_SIGNED_IN = 4001, "Sign in first."
    FOREIGN_ORIGIN = 4003, "The page is of another site."
    NOT_FOUND = 4004, "There is no such assistant or conversation."
    IDLE = 4008, "Nothing was said for a long time, so the conversation has ended."
    TOO_MANY = 4009, "Too many conversations or checks are open."
    BAD_START = 4010, "The session cannot begin as the page asked for it."
    UPSTREAM_REFUSED = 4011, "The voice service refused the connection."
    UPSTREAM_LOST = 4012, "The voice service was lost."
    MAX_DURATION = 4013, "The conversation reached its longest duration."
    SLOW_PAGE = 4014, "The page does not read what is sent to it.", True
    STOPPING = 4015, "The server is being restarted. Your conversation is kept."
    SIGNED_OUT = 4016, "You were signed out."
    ELSEWHERE = 4017, "The conversation goes on elsewhere."
    TOO_FAST = 4019, "The page sends more than a conversation needs."
    NOT_KEPT = 4020, "Conversations cannot be kept at the moment."


# -- reading and writing --------------------------------------------------------------------------------

AnyServerMessage: TypeAlias = ServerMessage | ToolCallEvent | Event


def read(fields: JsonObject) -> AfterStart | Event | UnknownEvent:
    """Return a later message of the page from its JSON object; raise ``DecodeError`` where it is malformed.

    A second ``session.start`` is an event that nobody knows.
    """
    if fields["type"] not in _AFTER_START:
        return codec.client_event(fields)
    try:
        message: AfterStart = msgspec.convert(fields, AfterStart)
    except msgspec.ValidationError as error:
        raise codec.explain(str(error)) from None
    return message


def read_start(text: str) -> SessionStart | None:
    """Return the page's first message, ``None`` where it is no valid ``session.start``."""
    try:
        message = msgspec.json.decode(text, type=SessionStart | AfterStart)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if isinstance(message, SessionStart) else None


def write(message: AnyServerMessage) -> str:
    """Return a message for the page as JSON, ``type`` first and without a number."""
    if isinstance(message, Event):
        return codec.encode(message).decode()
    return codec.as_json(message).decode()
