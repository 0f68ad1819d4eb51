"""What the page is told of a session: who speaks, and how."""

from __future__ import annotations

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import SendBrowser, to_browser
from voiceapp.relay.session.transcoding import Transcoding
from voiceapp.types import JsonObject


def ready(
    session_id: str, assistant: AssistantConfig, transcoding: Transcoding, config: VoiceConfig
) -> JsonObject:
    """Return the part of ``session.ready`` that does not depend on the service."""
    return {
        "type": "session.ready",
        "session_id": session_id,
        "assistant": {"slug": assistant.slug, "name": assistant.name},
        "audio": {"input": transcoding.input.to_ga(), "output": transcoding.output.to_ga()},
        "transcription": assistant.transcription is not None,
        "grace_ms": int(config.grace_s * 1000),
        "limits": {"max_session_ms": int(config.max_session_s * 1000)},
    }


def resumed(session_id: str, seq: int, frames: int, *, lost: bool, moved: bool = False) -> JsonObject:
    """Return ``session.resumed``: messages go on after ``seq``; ``lost``: some before that are missing.

    A line that dies without a goodbye swallows what the microphone brings: the page sends again what follows
    the first ``frames``.
    """
    return {
        "type": "session.resumed",
        "seq": seq,
        "session_id": session_id,
        "lost": lost,
        "frames": frames,
        "moved": moved,
    }


def takes_over(assistant: AssistantConfig) -> SendBrowser:
    """Return ``session.assistant``: somebody else goes on."""
    return to_browser(
        {
            "type": "session.assistant",
            "assistant": {"slug": assistant.slug, "name": assistant.name},
            "turn_detection": assistant.turn_detection,
            "transcription": assistant.transcription is not None,
        }
    )
