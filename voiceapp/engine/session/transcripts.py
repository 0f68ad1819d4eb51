"""What the client is told of the user's words: as they come, when they are all known, or that they are lost.

Pure. Items wait here for their words, whether or not the client wants to see them: a reply needs them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import SessionItem
from voiceapp.engine.session.response import audio_tokens
from voiceapp.engine.session.responses import Responder
from voiceapp.protocol import events as ev
from voiceapp.text.provider import text_tokens

# Nobody here tells voices apart.
_SPEAKER = "speaker_0"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech that was recognised as a whole; times are milliseconds of its item's audio."""

    text: str
    start_ms: int
    end_ms: int


class Transcripts:
    """The transcripts of one session."""

    def __init__(self, context: Context, responder: Responder) -> None:
        self._context = context
        self._responder = responder

    def delta(self, item_id: str, delta: str, *, in_the_making: bool) -> None:
        """More words are known; the item may still be in the making."""
        if self._context.config.transcribes and (in_the_making or self._context.items.find(item_id)):
            self._context.emit(
                ev.ConversationItemInputAudioTranscriptionDelta, item_id=item_id, content_index=0, delta=delta
            )

    def final(self, item_id: str, transcript: str, segments: Sequence[Segment]) -> None:
        """All words are known."""
        item = self._hear(item_id, transcript)
        if item is not None and self._context.config.transcribes:
            item.fields["content"][0]["transcript"] = transcript
            # Clients of conversations may know nothing of segments; those of transcription sessions do.
            if not self._context.config.converses:
                self._tell_segments(item_id, segments)
            self._context.emit(
                ev.ConversationItemInputAudioTranscriptionCompleted,
                item_id=item_id,
                content_index=0,
                transcript=transcript,
                usage=_usage(item.audio_ms, transcript),
            )
        self._responder.start_waiting()

    def failed(self, item_id: str, code: str, message: str) -> None:
        """The words cannot be found; a reply goes on without them."""
        if self._hear(item_id, "") and self._context.config.transcribes:
            self._context.emit(
                ev.ConversationItemInputAudioTranscriptionFailed,
                item_id=item_id,
                content_index=0,
                error={"type": "server_error", "code": code, "message": message, "param": None},
            )
        self._responder.start_waiting()

    def _tell_segments(self, item_id: str, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._context.emit(
                ev.ConversationItemInputAudioTranscriptionSegment,
                item_id=item_id,
                content_index=0,
                id=self._context.new_id("seg"),
                text=segment.text,
                speaker=_SPEAKER,
                start=segment.start_ms / 1000,
                end=segment.end_ms / 1000,
            )

    def _hear(self, item_id: str, transcript: str) -> SessionItem | None:
        # Items given only to one response are not in the conversation, yet wait for their words as well.
        waiting = [*self._context.items, *self._responder.private_items()]
        found = [item for item in waiting if item.id == item_id and item.heard_text is None]
        for item in found:
            item.heard_text = transcript
        return self._context.items.find(item_id) if found else None


def _usage(audio_ms: float, transcript: str) -> dict[str, Any]:
    heard, said = audio_tokens(audio_ms, spoken=False), text_tokens(transcript)
    return {
        "type": "tokens",
        "total_tokens": heard + said,
        "input_tokens": heard,
        "input_token_details": {"text_tokens": 0, "audio_tokens": heard},
        "output_tokens": said,
    }
