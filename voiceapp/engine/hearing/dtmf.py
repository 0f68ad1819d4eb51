"""Telephone keys in microphone audio: two tones at once, by Goertzel's sums over short frames. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

RATE_HZ: Final = 16_000
_ROWS_HZ: Final = (697, 770, 852, 941)
_COLUMNS_HZ: Final = (1209, 1336, 1477, 1633)
_KEYS: Final = ("123A", "456B", "789C", "*0#D")
_FRAME: Final = 384
_HOP: Final = 128
# Three frames are 40 ms, the shortest key that a telephone may send; a gap as long lets go of it.
_FRAMES: Final = 3
_MIN_POWER: Final = 10 ** (-42 / 10)
# Speech has energy everywhere, keys have all of it in two places.
_MIN_SHARE: Final = 0.6
_MAX_TWIST: Final = 10 ** (8 / 10)
_MIN_LEAD: Final = 10 ** (6 / 10)
# A voice that hits both tones by chance has overtones.
_MAX_OVERTONE: Final = 0.1


def _waves(frequencies: tuple[int, ...]) -> NDArray[np.complex64]:
    """Return waves such that the squared product with a frame is the power of each frequency in it."""
    times = np.arange(_FRAME)[:, None] / RATE_HZ
    turns = -2j * np.pi * times * np.array(frequencies)
    waves: NDArray[np.complex64] = (np.exp(turns) * np.sqrt(2) / _FRAME).astype(np.complex64)
    return waves


_ALL_HZ: Final = _ROWS_HZ + _COLUMNS_HZ
_TONES: Final = _waves(_ALL_HZ)
_OVERTONES: Final = _waves(tuple(2 * frequency for frequency in _ALL_HZ))


class KeyDetector:
    """The keys of one stream; each is reported once, when it has been heard for 40 ms."""

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.float32)
        self._before: str | None = None
        self._count = 0
        self._held: str | None = None

    def feed(self, samples: Samples) -> list[str]:
        """Take float32 samples at 16 kHz, shape (samples,); return the keys pressed in them."""
        audio = np.concatenate((self._rest, samples))
        count = (audio.size - _FRAME) // _HOP + 1
        if count <= 0:
            self._rest = audio
            return []
        frames = np.lib.stride_tricks.sliding_window_view(audio, _FRAME)[: count * _HOP : _HOP]
        self._rest = audio[count * _HOP :]
        return [key for found in _keys(frames) if (key := self._take(found)) is not None]

    def _take(self, found: str | None) -> str | None:
        self._count = self._count + 1 if found == self._before else 1
        self._before = found
        if self._count < _FRAMES or found == self._held:
            return None
        self._held = found
        return found


def _keys(frames: Samples) -> list[str | None]:
    """Return the key in each frame; ``frames`` has the shape (frames, samples)."""
    energy = np.mean(frames**2, axis=1)
    # Most of a call is silence or the pauses of speech, where there is nothing to look for.
    loud = np.flatnonzero(energy >= _MIN_POWER)
    found: list[str | None] = [None] * len(frames)
    if not loud.size:
        return found
    tones = np.abs(frames[loud] @ _TONES) ** 2
    overtones = np.abs(frames[loud] @ _OVERTONES) ** 2
    for place, frame in enumerate(loud):
        found[frame] = _key(tones[place], overtones[place], float(energy[frame]))
    return found


def _key(tones: Samples, overtones: Samples, energy: float) -> str | None:
    row, column = int(tones[:4].argmax()), int(tones[4:].argmax())
    low, high = float(tones[row]), float(tones[4 + column])
    if low + high < _MIN_SHARE * energy or not 1 / _MAX_TWIST <= low / max(high, 1e-12) <= _MAX_TWIST:
        return None
    for group, strongest in ((tones[:4], low), (tones[4:], high)):
        if np.sort(group)[-2] * _MIN_LEAD > strongest:
            return None
    if overtones[row] > _MAX_OVERTONE * low or overtones[4 + column] > _MAX_OVERTONE * high:
        return None
    return _KEYS[row][column]
