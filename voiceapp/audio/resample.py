"""Streams of samples from one format or rate to another.

A stream keeps its filter's state between chunks, so that seams make no clicks. Live streams use soxr's
``LQ`` recipe, which holds back 1.25 ms; files use ``HQ``.
"""

from __future__ import annotations

import numpy as np
import soxr

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat


class Resampler:
    """A mono 16-bit stream from ``from_hz`` to ``to_hz``; bytes in, bytes out."""

    def __init__(self, from_hz: int, to_hz: int, *, quality: str = "LQ") -> None:
        self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="int16", quality=quality)

    def feed(self, samples: bytes, *, last: bool = False) -> bytes:
        """Return what is ready at the new rate; ``last`` also returns what the filter still holds."""
        chunk = np.frombuffer(samples, "<i2")
        return bytes(self._stream.resample_chunk(chunk, last=last).tobytes())


class Transcoder:
    """A stream from one ``AudioFormat`` to another, passed through where both are the same."""

    def __init__(self, source: AudioFormat, target: AudioFormat) -> None:
        self.source = source
        self.target = target
        self._resampler = (
            None if source.rate_hz == target.rate_hz else Resampler(source.rate_hz, target.rate_hz)
        )

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Return ``data`` in the target format; may lag by the filter's 1.25 ms until ``last``."""
        if self.source is self.target:
            return data
        samples = data if self.source is AudioFormat.PCM16 else g711.decode(data, self.source)
        if self._resampler is not None:
            samples = self._resampler.feed(samples, last=last)
        return samples if self.target is AudioFormat.PCM16 else g711.encode(samples, self.target)
