"""Tones as samples."""

from __future__ import annotations

import numpy as np

from voiceapp.audio import pcm


def tone(hz: float, rate_hz: int, seconds: float = 1.0) -> bytes:
    """Return a sine of half the full scale, as PCM16."""
    time_s = np.arange(int(rate_hz * seconds)) / rate_hz
    return pcm.from_float((0.5 * np.sin(2 * np.pi * hz * time_s)).astype(np.float32))
