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
from voiceapp.config import UpstreamKind, VoiceConfig
from voiceapp.language.zones import zone_note, zone_of
from voiceapp.protocol.page import (
    AgreedFormats,
    PageAssistant,
    SessionEnded,
    SessionLimits,
    SessionReady,
)
from voiceapp.records.store.entries import OpenedSession
from voiceapp.relay.upstream.target import Target
from voiceapp.types import JsonObject

DEFAULT_INSTRUCTIONS: Final = (
    "You are a voice assistant. You are heard, not read: answer in short spoken sentences, in the language "
    "that the user speaks."
)
"""Stands before the user's time where an assistant has none: without any, services have their own."""


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    """See the module.

    ``target_of`` gives the service that runs an assistant. ``input_format`` and ``output_format`` are those
    of the page's microphone and loudspeaker; ``None`` stands for the assistant's. ``staff``: whether the user
    may use the admin.
    """

    opened: OpenedSession
    user_id: int
    config: VoiceConfig
    target_of: Callable[[AssistantConfig], Target]
    input_format: AudioFormat | None = None
    output_format: AudioFormat | None = None
    staff: bool = False

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

    def ready(
        self,
        assistant: AssistantConfig,
        formats: tuple[AudioFormat, AudioFormat],
        turn_detection: JsonObject | None,
        kind: UpstreamKind,
    ) -> SessionReady:
        """Return what the page is told once the service listens; ``formats``: of input and output."""
        config = self.config
        return SessionReady(
            session_id=self.opened.session_id,
            assistant=PageAssistant(slug=assistant.slug, name=assistant.name),
            audio=AgreedFormats(input=formats[0].to_ga(), output=formats[1].to_ga()),
            transcription=assistant.transcription is not None,
            grace_ms=int(config.grace_s * 1000),
            limits=SessionLimits(max_session_ms=int(config.max_session_s * 1000)),
            turn_detection=turn_detection,
            upstream=kind.value,
        )

    def ended(self, message: SessionEnded, target: Target) -> SessionEnded:
        """Return what the page is told of an end that the service caused; staff, which host that is, as well.

        Never kept: others read the records.
        """
        if not self.staff:
            return message
        return msgspec.structs.replace(message, message=f"{message.message} {target.whereabouts}")

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
