"""What a session wants of its service, and what the service agreed to; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from voiceapp import session_config
from voiceapp.actions import FormatsAgreed
from voiceapp.config import AssistantConfig
from voiceapp.protocol.events import Object


@dataclass
class Agreement:
    """The configuration of one session, as asked for and as echoed.

    ``expires_at`` is when the service ends the connection, in seconds since the epoch, where it says so.
    """

    assistant: AssistantConfig
    transcription_model: str = ""
    tools: list[Object] = field(default_factory=list)
    ready: bool = False
    expires_at: float | None = None

    def __post_init__(self) -> None:
        self.input_format = self.assistant.input_format
        self.output_format = self.assistant.output_format
        self.turn_detection = self.assistant.turn_detection

    def wish(self) -> Object:
        """Return the ``session.update`` that asks for it."""
        session = session_config.session_update(self.assistant, self.tools, self.transcription_model)
        return {"type": "session.update", "session": session}

    def opened(self, session: Object) -> None:
        """Take the service's first word, ``session.created``."""
        expires_at = session.get("expires_at")
        self.expires_at = float(expires_at) if isinstance(expires_at, int | float) and expires_at else None

    def updated(self, session: Object) -> FormatsAgreed:
        """Take what the service echoes, whatever was asked for."""
        audio: Any = session.get("audio")
        sides = audio if isinstance(audio, dict) else {}
        self.input_format = session_config.echoed_format(sides.get("input"), self.input_format)
        self.output_format = session_config.echoed_format(sides.get("output"), self.output_format)
        heard = sides.get("input")
        if isinstance(heard, dict) and "turn_detection" in heard:
            self.turn_detection = heard["turn_detection"]
        self.ready = True
        return FormatsAgreed(self.input_format, self.output_format)

    def fall_back(self, code: object) -> tuple[str, str] | None:
        """Give up what a service refuses with ``code``.

        Returns a notice's code and words where there is something else to ask for, else ``None``.
        """
        if code == "cannot_update_voice" and self.assistant.voice:
            self.assistant = msgspec.structs.replace(self.assistant, voice="")
            return "voice_kept", "The service keeps its voice: it cannot change once it was heard."
        if (self.assistant.turn_detection or {}).get("type") != "semantic_vad":
            return None
        self.assistant = session_config.with_server_vad(self.assistant)
        told = "This service has no semantic turn detection; silence ends a turn instead."
        return "semantic_vad_refused", told

    def lost(self) -> None:
        """The connection is gone; the next one is asked anew."""
        self.ready = False
        self.expires_at = None
