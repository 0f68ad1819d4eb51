"""What a live session begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from django.utils import timezone

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.audio.formats import AudioFormat
from voiceapp.config import VoiceConfig
from voiceapp.language.zones import zone_note, zone_of
from voiceapp.records.store.entries import OpenedSession
from voiceapp.relay.upstream.target import Target

DEFAULT_INSTRUCTIONS: Final = (
    "You are a voice assistant. You are heard, not read: answer in short spoken sentences, in the language "
    "that the user speaks."
)
"""Stands before the user's time where an assistant has none: without any, services have their own."""


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

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of the user; ``None`` where it is not known, and the server's counts."""
        return zone_of(self.opened.time_zone)

    def as_run(self, assistant: AssistantConfig, target: Target) -> AssistantConfig:
        """Return an assistant as a service is given it: with the user's time, if it is known."""
        if self.zone is not None:
            said = (assistant.instructions or DEFAULT_INSTRUCTIONS, zone_note(self.zone, timezone.now()))
            assistant = msgspec.structs.replace(assistant, instructions="\n\n".join(said))
        return with_captions_of(assistant, target)

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
