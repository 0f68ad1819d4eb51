"""What a live session begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.audio.formats import AudioFormat
from voiceapp.config import VoiceConfig
from voiceapp.records.store.entries import OpenedSession
from voiceapp.relay.upstream.target import Target


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    """See the module.

    ``target_of`` gives the service that runs an assistant. ``input_format`` and ``output_format`` are those
    of the page's microphone and loudspeaker; ``None`` stands for the assistant's.
    """

    opened: OpenedSession
    user_id: int
    config: VoiceConfig
    target_of: Callable[[AssistantConfig], Target]
    input_format: AudioFormat | None = None
    output_format: AudioFormat | None = None

    def without_past(self) -> SessionPlan:
        """Return the plan without what was said before the session."""
        return replace(self, opened=msgspec.structs.replace(self.opened, earlier=()))

    @property
    def moved(self) -> bool:
        """Whether the session was begun, and held until now, by another process."""
        return self.opened.taken_over_ms is not None

    @property
    def begins_ms(self) -> int:
        """The session's clock at the beginning of this part of it."""
        return self.opened.taken_over_ms or 0


def with_captions_of(assistant: AssistantConfig, target: Target) -> AssistantConfig:
    """Return the assistant; where no deployment transcribes, the page shows speech without words."""
    return assistant if target.captions else msgspec.structs.replace(assistant, transcription=None)
