"""One example of each message of the page's socket, for ``page-protocol.md`` and ``tests/fixtures/page``.

Of the Realtime events there are those that the page sends, shows or acts on.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from voiceapp.audio.formats import AudioFormat
from voiceapp.protocol import events, page, tool_calls
from voiceapp.protocol.events import Event
from voiceapp.protocol.page import ClientMessage, ServerMessage
from voiceapp.protocol.tool_calls import ToolCallEvent

_SESSION: Final = UUID("3f0c2d44-0000-4000-8000-000000000001")
_PCM: Final[dict[str, Any]] = {"type": "audio/pcm", "rate": 24000}
_VAD: Final[dict[str, Any]] = {"type": "server_vad", "silence_duration_ms": 500}
_CALL: Final[dict[str, Any]] = {"index": 1, "item_id": "item_f1", "call_id": "call_1"}
_PLACE: Final[dict[str, Any]] = {
    "event_id": "event_9",
    "response_id": "resp_1",
    "item_id": "item_a1",
    "output_index": 0,
    "content_index": 0,
}
_TYPED: Final[dict[str, Any]] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Good morning."}],
}
_ANSWER: Final[dict[str, Any]] = {"id": "item_a1", "type": "message", "role": "assistant"}
_WORDS: Final = "Good morning. How can I help?"

_FROM_THE_PAGE: Final[tuple[ClientMessage | Event, ...]] = (
    page.SessionStart(
        assistant="guide",
        voice="alloy",
        continues=UUID("3f0c2d44-0000-4000-8000-000000000002"),
        audio=page.WantedFormats(input="audio/pcm", output="audio/pcm"),
        time_zone="Asia/Tokyo",
    ),
    page.PlaybackReport(item_id="item_a1", content_index=0, played_ms=1480.5, final=True, seq=42),
    page.Ping(seq=42),
    page.SessionEnd(),
    page.SessionOutput(audio=False),
    events.InputAudioBufferCommit(),
    events.OutputAudioBufferClear(),
    events.ConversationItemCreate(item=_TYPED),
    events.ResponseCreate(),
)
_TO_THE_PAGE: Final[tuple[ServerMessage | ToolCallEvent, ...]] = (
    page.SessionReady(
        session_id=_SESSION,
        assistant=page.PageAssistant(slug="guide", name="Guide"),
        audio=page.AgreedFormats(input=_PCM, output=_PCM),
        transcription=True,
        grace_ms=30_000,
        limits=page.SessionLimits(max_session_ms=3_600_000),
        turn_detection=_VAD,
        upstream="embedded",
    ),
    page.SessionResumed(seq=42, session_id=_SESSION, lost=False, frames=512, moved=False),
    page.SessionRenewed(),
    page.SessionAssistant(
        assistant=page.PageAssistant(slug="clerk", name="Clerk"), turn_detection=None, transcription=True
    ),
    page.SessionOutputChanged(audio=False),
    page.SessionHistory(
        same_session=False,
        items=[
            page.EarlierItem(
                item_id="item_u1",
                previous_item_id=None,
                role="user",
                generated_text="Good morning.",
                heard_text=None,
                cut_ms=None,
                transcript_status="completed",
                modality="audio",
                text="Good morning.",
                speaker="Guide",
            ),
            page.EarlierItem(
                item_id="item_a1",
                previous_item_id="item_u1",
                role="assistant",
                generated_text=_WORDS,
                heard_text="Good morning.",
                cut_ms=820,
                transcript_status="",
                modality="audio",
                text=_WORDS,
                speaker="Guide",
            ),
        ],
    ),
    page.SessionEnded(reason="hung_up", code="hung_up", message="The conversation has ended."),
    page.AudioItem(
        index=0, item_id="item_a1", content_index=0, response_id="resp_1", format=AudioFormat.PCM16
    ),
    page.AudioCut(item_id="item_a1", response_id="resp_1"),
    page.CaptionHeard(item_id="item_a1", heard_text="Good morning.", cut_ms=820),
    page.CaptionFailed(item_id="item_u1"),
    page.CaptionDoubtful(item_id="item_u1"),
    page.ApprovalRequested(
        approval_request_id="approval_call_1",
        server_label="shop",
        name="order",
        arguments='{"item":"tea"}',
        call_id="call_1",
        timeout_ms=60_000,
        preview=page.CallPreview(title="Order this?", lines=["Tea, 500 g"]),
    ),
    page.ApprovalSettled(approval_request_id="approval_call_1", outcome=page.Outcome.ALLOWED),
    page.ToolProgress(call_id="call_1", message="Asking the shop…"),
    page.Notice(
        code="mcp_tools_unavailable",
        message="The tools of “shop” cannot be used. It does not answer.",
        level="warning",
        server_label="shop",
        reason="It does not answer.",
    ),
    page.Pong(),
    tool_calls.ToolCallStarted(**_CALL, name="order"),
    tool_calls.ToolCallDelta(**_CALL, arguments_delta='{"item":'),
    tool_calls.ToolCallCompleted(**_CALL, name="order", arguments='{"item":"tea"}'),
    tool_calls.ToolCallError(
        **_CALL,
        error=tool_calls.ToolCallFault(
            type="tool_error", code="not_approved", message="The user did not allow this call."
        ),
    ),
)
_FROM_THE_SERVICE: Final[tuple[Event, ...]] = (
    events.Error(
        event_id="event_9",
        error={
            "type": "invalid_request_error",
            "code": "event_not_allowed",
            "message": "This page may not send 'session.update'.",
            "param": None,
            "event_id": None,
        },
    ),
    events.RateLimitsUpdated(
        event_id="event_9",
        rate_limits=[{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60}],
    ),
    events.ConversationItemAdded(
        event_id="event_9",
        item={**_ANSWER, "status": "in_progress", "content": []},
        previous_item_id="item_u1",
    ),
    events.ConversationItemDone(
        event_id="event_9",
        item={
            **_ANSWER,
            "status": "completed",
            "content": [{"type": "output_audio", "transcript": _WORDS}],
        },
        previous_item_id="item_u1",
    ),
    events.ConversationItemDeleted(event_id="event_9", item_id="item_a1"),
    events.ConversationItemTruncated(
        event_id="event_9", item_id="item_a1", content_index=0, audio_end_ms=820
    ),
    events.ConversationItemInputAudioTranscriptionDelta(
        event_id="event_9", item_id="item_u1", delta="Good", content_index=0
    ),
    events.ConversationItemInputAudioTranscriptionCompleted(
        event_id="event_9", item_id="item_u1", content_index=0, transcript="Good morning."
    ),
    events.ConversationItemInputAudioTranscriptionFailed(
        event_id="event_9",
        item_id="item_u1",
        content_index=0,
        error={"type": "server_error", "code": "DeploymentNotFound", "message": "It failed."},
    ),
    events.InputAudioBufferSpeechStarted(event_id="event_9", audio_start_ms=320, item_id="item_u1"),
    events.InputAudioBufferSpeechStopped(event_id="event_9", audio_end_ms=1760, item_id="item_u1"),
    events.InputAudioBufferCommitted(event_id="event_9", item_id="item_u1", previous_item_id=None),
    events.ResponseCreated(
        event_id="event_9", response={"id": "resp_1", "status": "in_progress", "output": []}
    ),
    events.ResponseDone(event_id="event_9", response={"id": "resp_1", "status": "completed", "output": []}),
    events.ResponseOutputTextDelta(**_PLACE, delta="Good"),
    events.ResponseOutputTextDone(**_PLACE, text=_WORDS),
    events.ResponseOutputAudioTranscriptDelta(**_PLACE, delta="Good"),
    events.ResponseOutputAudioTranscriptDone(**_PLACE, transcript=_WORDS),
    events.ResponseOutputAudioDone(**_PLACE),
)
EXAMPLES: Final = {one.type_name(): one for one in (*_FROM_THE_PAGE, *_TO_THE_PAGE, *_FROM_THE_SERVICE)}
