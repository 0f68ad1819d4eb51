"""The messages of the Azure OpenAI Realtime API and of chat-completions streaming, one struct each.

A class is named after its event type: ``response.output_audio.delta`` is ``ResponseOutputAudioDelta``.
Names and shapes are GA's; ``voiceapp.protocol.dialects`` turns the preview dialects into them and back.
``session``, ``item``, ``response`` and ``part`` stay plain mappings: services add fields to them at will,
and a relay must not lose one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from voiceapp.types import JsonObject

EventId = Annotated[str, msgspec.Meta(max_length=512)]

EXTRA = "~extra"
"""Where the codec keeps top-level fields that an event's struct does not know."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of every event; ``extra`` holds top-level fields unknown here, kept for re-encoding."""

    extra: JsonObject = msgspec.field(default_factory=dict, name=EXTRA)

    @classmethod
    def type_name(cls) -> str:
        """Return the wire's ``type``, such as ``session.update``."""
        return str(cls.__struct_config__.tag)


class ClientEvent(Event, frozen=True, kw_only=True):
    """What an application sends to the service."""

    event_id: EventId | UnsetType = UNSET


class ServerEvent(Event, frozen=True, kw_only=True):
    """What the service sends to an application."""

    event_id: str


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event whose type this version does not know; ``fields`` is the whole of it."""

    type: str
    fields: JsonObject


# -- client events --------------------------------------------------------------------------------------


class SessionUpdate(ClientEvent, frozen=True, kw_only=True, tag="session.update"):
    session: JsonObject


class TranscriptionSessionUpdate(ClientEvent, frozen=True, kw_only=True, tag="transcription_session.update"):
    session: JsonObject


class InputAudioBufferAppend(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    """``audio``: samples in the session's input format, base64 on the wire, at most 15 MiB."""

    audio: bytes


class InputAudioBufferCommit(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    pass


class InputAudioBufferClear(ClientEvent, frozen=True, kw_only=True, tag="input_audio_buffer.clear"):
    pass


class OutputAudioBufferClear(ClientEvent, frozen=True, kw_only=True, tag="output_audio_buffer.clear"):
    pass


class ConversationItemCreate(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.create"):
    """``previous_item_id``: ``"root"`` puts the item first, ``None`` or nothing last."""

    item: JsonObject
    previous_item_id: str | UnsetType | None = UNSET


class ConversationItemRetrieve(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.retrieve"):
    item_id: str


class ConversationItemTruncate(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.truncate"):
    """``audio_end_ms``: how much of the item's audio was heard, in milliseconds."""

    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDelete(ClientEvent, frozen=True, kw_only=True, tag="conversation.item.delete"):
    item_id: str


class ResponseCreate(ClientEvent, frozen=True, kw_only=True, tag="response.create"):
    response: JsonObject | UnsetType | None = UNSET


class ResponseCancel(ClientEvent, frozen=True, kw_only=True, tag="response.cancel"):
    response_id: str | UnsetType | None = UNSET


# -- server events: session and errors ------------------------------------------------------------------


class Error(ServerEvent, frozen=True, kw_only=True, tag="error"):
    """``error``: ``{type, code, message, param, event_id}``; most errors leave the session alive."""

    error: JsonObject


class SessionCreated(ServerEvent, frozen=True, kw_only=True, tag="session.created"):
    session: JsonObject


class SessionUpdated(ServerEvent, frozen=True, kw_only=True, tag="session.updated"):
    session: JsonObject


class TranscriptionSessionUpdated(
    ServerEvent, frozen=True, kw_only=True, tag="transcription_session.updated"
):
    session: JsonObject


class RateLimitsUpdated(ServerEvent, frozen=True, kw_only=True, tag="rate_limits.updated"):
    rate_limits: list[JsonObject]


# -- server events: conversation ------------------------------------------------------------------------


class ConversationCreated(ServerEvent, frozen=True, kw_only=True, tag="conversation.created"):
    conversation: JsonObject


class ConversationItemAdded(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.added"):
    item: JsonObject
    previous_item_id: str | UnsetType | None = UNSET


class ConversationItemCreated(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.created"):
    item: JsonObject
    previous_item_id: str | UnsetType | None = UNSET


class ConversationItemDone(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.done"):
    item: JsonObject
    previous_item_id: str | UnsetType | None = UNSET


class ConversationItemRetrieved(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.retrieved"):
    item: JsonObject


class ConversationItemTruncated(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.truncated"):
    item_id: str
    content_index: int
    audio_end_ms: int


class ConversationItemDeleted(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.deleted"):
    item_id: str


class ConversationItemInputAudioTranscriptionDelta(
    ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.delta"
):
    item_id: str
    delta: str
    content_index: int | UnsetType = UNSET


class ConversationItemInputAudioTranscriptionSegment(
    ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.segment"
):
    """``start`` and ``end`` are seconds."""

    item_id: str
    id: str
    text: str
    start: float
    end: float
    speaker: str
    content_index: int | UnsetType = UNSET


class ConversationItemInputAudioTranscriptionCompleted(
    ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.completed"
):
    item_id: str
    content_index: int
    transcript: str
    usage: JsonObject | UnsetType = UNSET


class ConversationItemInputAudioTranscriptionFailed(
    ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.failed"
):
    item_id: str
    content_index: int
    error: JsonObject


# -- server events: audio buffers -----------------------------------------------------------------------


class InputAudioBufferCommitted(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | UnsetType | None = UNSET


class InputAudioBufferCleared(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.cleared"):
    pass


class InputAudioBufferSpeechStarted(
    ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_started"
):
    audio_start_ms: int
    item_id: str


class InputAudioBufferSpeechStopped(
    ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_stopped"
):
    audio_end_ms: int
    item_id: str


class InputAudioBufferTimeoutTriggered(
    ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.timeout_triggered"
):
    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class InputAudioBufferDtmfEventReceived(
    Event, frozen=True, kw_only=True, tag="input_audio_buffer.dtmf_event_received"
):
    """GA sends ``event`` and ``received_at`` (seconds) and no ``event_id``; the contract file ``digit``."""

    event_id: str | UnsetType = UNSET
    event: str | UnsetType = UNSET
    received_at: int | UnsetType = UNSET
    digit: str | UnsetType = UNSET


class OutputAudioBufferStarted(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.started"):
    response_id: str


class OutputAudioBufferStopped(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.stopped"):
    response_id: str


class OutputAudioBufferCleared(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.cleared"):
    response_id: str


# -- server events: responses ---------------------------------------------------------------------------


class ResponseCreated(ServerEvent, frozen=True, kw_only=True, tag="response.created"):
    response: JsonObject


class ResponseDone(ServerEvent, frozen=True, kw_only=True, tag="response.done"):
    response: JsonObject


class OutputItemEvent(ServerEvent, frozen=True, kw_only=True):
    response_id: str
    output_index: int


class ResponseOutputItemAdded(OutputItemEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    item: JsonObject


class ResponseOutputItemDone(OutputItemEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    item: JsonObject


class ContentEvent(OutputItemEvent, frozen=True, kw_only=True):
    item_id: str
    content_index: int


class ResponseContentPartAdded(ContentEvent, frozen=True, kw_only=True, tag="response.content_part.added"):
    part: JsonObject


class ResponseContentPartDone(ContentEvent, frozen=True, kw_only=True, tag="response.content_part.done"):
    part: JsonObject


class ResponseOutputTextDelta(ContentEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    delta: str


class ResponseOutputTextDone(ContentEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    text: str


class ResponseOutputAudioDelta(ContentEvent, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    """``delta``: samples in the session's output format, base64 on the wire."""

    delta: bytes


class ResponseOutputAudioDone(ContentEvent, frozen=True, kw_only=True, tag="response.output_audio.done"):
    pass


class ResponseOutputAudioTranscriptDelta(
    ContentEvent, frozen=True, kw_only=True, tag="response.output_audio_transcript.delta"
):
    delta: str


class ResponseOutputAudioTranscriptDone(
    ContentEvent, frozen=True, kw_only=True, tag="response.output_audio_transcript.done"
):
    transcript: str


class ResponseFunctionCallArgumentsDelta(
    OutputItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    item_id: str
    call_id: str
    delta: str


class ResponseFunctionCallArgumentsDone(
    OutputItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    item_id: str
    call_id: str
    arguments: str
    name: str | UnsetType = UNSET


# -- server events: MCP ---------------------------------------------------------------------------------


class ResponseMcpCallArgumentsDelta(
    OutputItemEvent, frozen=True, kw_only=True, tag="response.mcp_call_arguments.delta"
):
    item_id: str
    delta: str


class ResponseMcpCallArgumentsDone(
    OutputItemEvent, frozen=True, kw_only=True, tag="response.mcp_call_arguments.done"
):
    item_id: str
    arguments: str


class McpCallEvent(ServerEvent, frozen=True, kw_only=True):
    item_id: str
    output_index: int


class ResponseMcpCallInProgress(McpCallEvent, frozen=True, kw_only=True, tag="response.mcp_call.in_progress"):
    pass


class ResponseMcpCallCompleted(McpCallEvent, frozen=True, kw_only=True, tag="response.mcp_call.completed"):
    pass


class ResponseMcpCallFailed(McpCallEvent, frozen=True, kw_only=True, tag="response.mcp_call.failed"):
    pass


class McpListToolsInProgress(ServerEvent, frozen=True, kw_only=True, tag="mcp_list_tools.in_progress"):
    item_id: str


class McpListToolsCompleted(ServerEvent, frozen=True, kw_only=True, tag="mcp_list_tools.completed"):
    item_id: str


class McpListToolsFailed(ServerEvent, frozen=True, kw_only=True, tag="mcp_list_tools.failed"):
    item_id: str


def _leaves(base: type[Event]) -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {}
    for cls in base.__subclasses__():
        if cls.__struct_config__.tag is not None:
            found[cls.type_name()] = cls
        found |= _leaves(cls)
    return found


CLIENT_EVENTS: dict[str, type[Event]] = _leaves(ClientEvent)
SERVER_EVENTS: dict[str, type[Event]] = {
    **_leaves(ServerEvent),
    InputAudioBufferDtmfEventReceived.type_name(): InputAudioBufferDtmfEventReceived,
}
