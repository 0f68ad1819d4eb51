"""The page's microphone: its frames are checked and counted."""

from __future__ import annotations

from typing import Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError

MAX_FRAME_BYTES: Final = 96_000
"""Longest message of a microphone: two seconds of PCM16."""


class Microphone:
    """See the module. ``frames`` counts all that came, those that were refused among them."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.frames = 0
        self._looked_at = 0
        self._format = audio_format

    def heard_since(self) -> bool:
        """Whether a frame has come since this was asked the last time."""
        before, self._looked_at = self._looked_at, self.frames
        return self.frames > before

    def count(self, frame: bytes) -> None:
        """Take note of a frame; raise ``AudioFormatError`` where it cannot be heard."""
        self.frames += 1
        if len(frame) > MAX_FRAME_BYTES:
            raise AudioFormatError(
                f"An audio message may have {MAX_FRAME_BYTES} bytes at most.", code="message_too_large"
            )
        if len(frame) % self._format.sample_bytes:
            raise AudioFormatError("16-bit audio must have an even number of bytes.", code="invalid_value")
