"""Checks of an assistant's fields before they reach a service that would refuse the session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from django.conf import settings
from django.core.exceptions import ValidationError

from voiceapp.assistants.http_tools import MAX_OPERATIONS
from voiceapp.assistants.mcp_servers import read_servers
from voiceapp.tools.registry import registry

MAX_VOICES = 32
MAX_VOICE_CHARS = 100


class _ServerVad(msgspec.Struct, forbid_unknown_fields=True, tag_field="type", tag="server_vad"):
    threshold: float | None = None
    prefix_padding_ms: int | None = None
    silence_duration_ms: int | None = None
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True

    def faults(self) -> list[str]:
        limits = (
            ("threshold", self.threshold, 0, 1),
            ("prefix_padding_ms", self.prefix_padding_ms, 0, 5_000),
            ("silence_duration_ms", self.silence_duration_ms, 0, 10_000),
            ("idle_timeout_ms", self.idle_timeout_ms, 5_000, 30_000),
        )
        return [
            f"{name} must be from {low} to {high}."
            for name, value, low, high in limits
            if value is not None and not low <= value <= high
        ]


class _SemanticVad(msgspec.Struct, forbid_unknown_fields=True, tag_field="type", tag="semantic_vad"):
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True

    def faults(self) -> list[str]:
        return []


class _Transcription(msgspec.Struct, forbid_unknown_fields=True):
    model: str | None = None
    language: str | None = None
    prompt: str | None = None


def default_turn_detection() -> dict[str, Any]:
    """Return the turn detection of a new assistant."""
    return {"type": "server_vad"}


def validate_turn_detection(value: object) -> None:
    """Refuse what is not ``null`` or a turn detection of the Realtime API; raises ``ValidationError``."""
    if value is None:
        return
    detection = _converted(value, _ServerVad | _SemanticVad)
    if faults := detection.faults():
        raise ValidationError(faults)


def validate_transcription(value: object) -> None:
    """Refuse what is not ``null`` or ``{model?, language?, prompt?}``; raises ``ValidationError``."""
    if value is not None:
        _converted(value, _Transcription)


def validate_voices(value: object) -> None:
    """Refuse what is not a list of up to 32 different names of voices; raises ``ValidationError``."""
    names = _names(value, "voice")
    if len(names) > MAX_VOICES or not all(0 < len(name.strip()) <= MAX_VOICE_CHARS for name in names):
        raise ValidationError(f"Give up to {MAX_VOICES} names of up to {MAX_VOICE_CHARS} characters.")


def validate_tools(value: object) -> None:
    """Refuse what is not a list of different tools that exist; raises ``ValidationError``."""
    names = _names(value, "tool")
    if unknown := set(names) - set(registry.names()):
        known = ", ".join(registry.names())
        raise ValidationError(f"There is no tool {min(unknown)!r}. There are: {known}.")


def validate_mcp_servers(value: object) -> None:
    """Refuse what is not a list of MCP servers that may be reached; raises ``ValidationError``."""
    try:
        read_servers(value, private_allowed=settings.VOICE.private_addresses)
    except ValueError as error:
        raise ValidationError(str(error)) from None


def _names(value: object, what: str) -> list[str]:
    names: list[str] = _converted(value, list[str])
    if len(set(names)) < len(names):
        raise ValidationError(f"Name each {what} once.")
    return names


def _converted(value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValidationError(f"{error}.") from None


def validate_operations(value: object) -> None:
    """Refuse what is not a list of different operations' names; raises ``ValidationError``."""
    names = _names(value, "operation")
    if len(names) > MAX_OPERATIONS or not all(name and name.isprintable() for name in names):
        raise ValidationError(f"Name up to {MAX_OPERATIONS} operations.")
