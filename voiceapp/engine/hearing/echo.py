"""Telling the user's voice from the assistant's own, come back through the microphone. Pure.

A loudspeaker's echo is well below what was played; somebody who speaks into the microphone is not. While the
assistant is heard, a window that stays far below the loudest recent sound of the assistant is no speech.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs, to_float

# An echo arrives at -20 dB or less; people who interrupt are louder than this.
_MARGIN_DB: Final = 14.0
# Network, buffers and the room delay an echo, and detection lags behind the microphone.
_LINGERS_S: Final = 1.0
_EARLY_S: Final = 0.2
_FRAME_MS: Final = 32
_SILENT_DBFS: Final = -120.0


class EchoGate:
    """What the assistant says and when it is heard, if the client plays it as it comes; times in seconds."""

    def __init__(self) -> None:
        self._heard: deque[tuple[float, float, float]] = deque()
        self._until_s = 0.0

    @property
    def until_s(self) -> float:
        """When the last of what was sent will have been heard."""
        return self._until_s

    def spoken(self, audio: bytes, audio_format: AudioFormat, now_s: float) -> None:
        """The assistant's next piece of audio was sent."""
        start_s = max(self._until_s, now_s)
        self._until_s = start_s + audio_format.duration_ms(len(audio)) / 1000
        self._heard.append((start_s, self._until_s, _loudest(audio, audio_format)))

    def interrupted(self) -> None:
        """The client plays no more of what was sent."""
        self._heard.clear()
        self._until_s = 0.0

    def is_echo(self, level: float, now_s: float) -> bool:
        """Whether a window of ``level`` dBFS is no more than an echo can be."""
        while self._heard and self._heard[0][1] < now_s - _LINGERS_S:
            self._heard.popleft()
        recent = [loudest for start_s, _, loudest in self._heard if start_s <= now_s + _EARLY_S]
        return bool(recent) and level < max(recent) - _MARGIN_DB


def _loudest(audio: bytes, audio_format: AudioFormat) -> float:
    """Return the level of the loudest frame in dBFS."""
    samples = to_float(audio if audio_format is AudioFormat.PCM16 else g711.decode(audio, audio_format))
    size = audio_format.rate_hz * _FRAME_MS // 1000
    if samples.size < size:
        return max(level_dbfs(audio), _SILENT_DBFS) if audio_format is AudioFormat.PCM16 else _SILENT_DBFS
    frames = samples[: samples.size // size * size].reshape(-1, size)
    power = float(np.mean(frames**2, axis=1).max())
    return 10 * float(np.log10(power)) if power else _SILENT_DBFS
