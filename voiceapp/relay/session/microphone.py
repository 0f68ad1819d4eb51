"""The page's microphone: its frames are checked, counted, and kept while there is no service to hear them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError

EARLY_AUDIO_MS: Final = 10_000
"""Speech kept while the service is being dialled."""
MAX_FRAME_BYTES: Final = 96_000
"""Longest message of a microphone: two seconds of PCM16."""


class Microphone:
    """See the module. ``frames`` counts all that came, those that were refused among them."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.frames = 0
        self._format = audio_format
        self._kept: deque[bytes] = deque()
        self._kept_ms = 0.0

    def count(self, frame: bytes) -> None:
        """Take note of a frame; raise ``AudioFormatError`` where it cannot be heard."""
        self.frames += 1
        if len(frame) > MAX_FRAME_BYTES:
            raise AudioFormatError(
                f"An audio message may have {MAX_FRAME_BYTES} bytes at most.", code="message_too_large"
            )
        if len(frame) % self._format.sample_bytes:
            raise AudioFormatError("16-bit audio must have an even number of bytes.", code="invalid_value")

    def keep(self, frame: bytes) -> None:
        """Keep a frame until a service listens; of too many the oldest goes."""
        self._kept.append(frame)
        self._kept_ms += self._format.duration_ms(len(frame))
        while self._kept_ms > EARLY_AUDIO_MS:
            self._kept_ms -= self._format.duration_ms(len(self._kept.popleft()))

    def kept(self) -> Iterator[bytes]:
        """Give away what was kept, the oldest first."""
        self._kept_ms = 0.0
        while self._kept:
            yield self._kept.popleft()
