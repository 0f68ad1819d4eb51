"""The three audio formats of the Realtime API and their names in each dialect."""

from __future__ import annotations

from enum import Enum
from typing import Any

from voiceapp.errors import AudioFormatError


class AudioFormat(Enum):
    """One mono audio format. The value is its GA media type."""

    PCM16 = "audio/pcm"
    """Signed 16-bit little-endian samples at 24 kHz."""
    PCMU = "audio/pcmu"
    """G.711 μ-law at 8 kHz."""
    PCMA = "audio/pcma"
    """G.711 A-law at 8 kHz."""

    rate_hz: int
    """Samples per second."""
    sample_bytes: int
    """Bytes per sample."""
    bytes_per_ms: int
    """Bytes per millisecond: 48 for PCM16, 8 for G.711."""

    def __init__(self, media_type: str) -> None:
        # Plain attributes, as they are read for every frame.
        self.rate_hz, self.sample_bytes = (24_000, 2) if media_type == "audio/pcm" else (8_000, 1)
        self.bytes_per_ms = self.rate_hz * self.sample_bytes // 1000

    @property
    def silence(self) -> bytes:
        """One sample of silence."""
        return {AudioFormat.PCM16: b"\0\0", AudioFormat.PCMU: b"\xff", AudioFormat.PCMA: b"\xd5"}[self]

    @property
    def beta_name(self) -> str:
        """The name in the preview dialect: ``pcm16``, ``g711_ulaw`` or ``g711_alaw``."""
        return _BETA[self]

    def to_ga(self) -> dict[str, Any]:
        """Return the GA object, such as ``{"type": "audio/pcm", "rate": 24000}``."""
        if self is AudioFormat.PCM16:
            return {"type": self.value, "rate": self.rate_hz}
        return {"type": self.value}

    @classmethod
    def parse(cls, value: object) -> AudioFormat:
        """Read a format in any dialect's spelling (a name, or a GA object with ``type``).

        Raises ``AudioFormatError`` (``invalid_value``) for anything else.
        """
        name = value.get("type") if isinstance(value, dict) else value
        found = _NAMES.get(name) if isinstance(name, str) else None
        rate = value.get("rate") if isinstance(value, dict) else None
        if found is not None and rate not in (None, found.rate_hz):
            raise AudioFormatError(
                f"Invalid value: {rate!r}. The rate of {found.value} is {found.rate_hz}.",
                code="invalid_value",
            )
        if found is None:
            raise AudioFormatError(
                f"Invalid value: {name!r}. Supported audio formats are: {', '.join(_BETA.values())}.",
                code="invalid_value",
            )
        return found

    def duration_ms(self, size_bytes: int) -> float:
        """Return how long ``size_bytes`` of this format last, in milliseconds."""
        return size_bytes / self.bytes_per_ms


_BETA = {
    AudioFormat.PCM16: "pcm16",
    AudioFormat.PCMU: "g711_ulaw",
    AudioFormat.PCMA: "g711_alaw",
}
_NAMES: dict[str, AudioFormat] = {
    **{name: audio_format for audio_format, name in _BETA.items()},
    **{audio_format.value: audio_format for audio_format in AudioFormat},
}
