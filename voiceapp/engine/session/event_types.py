"""Which events the engine takes and which it sends, under their GA names; pure.

``docs/engine.md`` lists them by dialect, as ``voiceapp.protocol.dialects`` translates them. The session
refuses what it does not take. The tests hold what it sends to ``EMITTED``: each event comes, and no other.
"""

from __future__ import annotations

from typing import Final

from voiceapp.protocol import events as ev

CLIENT_TYPES: Final = tuple(name for name in ev.CLIENT_EVENTS if name != "output_audio_buffer.clear")
"""Taken by a conversation."""
TRANSCRIPTION_TYPES: Final = (
    "session.update", "input_audio_buffer.append", "input_audio_buffer.commit", "input_audio_buffer.clear",
    "conversation.item.retrieve", "conversation.item.delete",
)  # fmt: skip
"""Taken by a session that only transcribes."""
EMITTED: Final[tuple[type[ev.Event], ...]] = (
    ev.Error,
    ev.SessionCreated,
    ev.SessionUpdated,
    ev.RateLimitsUpdated,
    ev.ConversationCreated,
    ev.ConversationItemAdded,
    ev.ConversationItemDone,
    ev.ConversationItemRetrieved,
    ev.ConversationItemTruncated,
    ev.ConversationItemDeleted,
    ev.ConversationItemInputAudioTranscriptionDelta,
    ev.ConversationItemInputAudioTranscriptionSegment,
    ev.ConversationItemInputAudioTranscriptionCompleted,
    ev.ConversationItemInputAudioTranscriptionFailed,
    ev.InputAudioBufferCommitted,
    ev.InputAudioBufferCleared,
    ev.InputAudioBufferSpeechStarted,
    ev.InputAudioBufferSpeechStopped,
    ev.InputAudioBufferTimeoutTriggered,
    ev.InputAudioBufferDtmfEventReceived,
    ev.ResponseCreated,
    ev.ResponseDone,
    ev.ResponseOutputItemAdded,
    ev.ResponseOutputItemDone,
    ev.ResponseContentPartAdded,
    ev.ResponseContentPartDone,
    ev.ResponseOutputTextDelta,
    ev.ResponseOutputTextDone,
    ev.ResponseOutputAudioDelta,
    ev.ResponseOutputAudioDone,
    ev.ResponseOutputAudioTranscriptDelta,
    ev.ResponseOutputAudioTranscriptDone,
    ev.ResponseFunctionCallArgumentsDelta,
    ev.ResponseFunctionCallArgumentsDone,
    ev.ResponseMcpCallArgumentsDelta,
    ev.ResponseMcpCallArgumentsDone,
    ev.ResponseMcpCallInProgress,
    ev.ResponseMcpCallCompleted,
    ev.ResponseMcpCallFailed,
    ev.McpListToolsInProgress,
    ev.McpListToolsCompleted,
    ev.McpListToolsFailed,
)
