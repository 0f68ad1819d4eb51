"""Which events the engine sends; pure.

``docs/engine.md`` lists them by dialect. Each is here by its class, so under its GA name; what a client of
another dialect gets instead is told by ``voiceapp.protocol.dialects``. The tests let every one of them come,
and let no other pass.
"""

from __future__ import annotations

from typing import Final

from voiceapp.protocol import events as ev

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
