"""Arithmetic on signed 16-bit little-endian mono samples; bytes in, bytes out."""

from __future__ import annotations

import math

import numpy as np

FULL_SCALE = 32768.0


def to_float(samples: bytes) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return samples as float32 in [-1, 1), shape (samples,)."""
    return np.frombuffer(samples, "<i2").astype(np.float32) / np.float32(FULL_SCALE)


def from_float(samples: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bytes:
    """Return float samples of shape (samples,) as 16-bit bytes, clipped to full scale."""
    return bytes(np.clip(np.rint(samples * FULL_SCALE), -32768, 32767).astype("<i2"))


def level_dbfs(samples: bytes) -> float:
    """Return the RMS level in dBFS (a full-scale sine is -3.01); ``-inf`` for silence or nothing."""
    chunk = np.frombuffer(samples, "<i2").astype(np.float64)
    power = float(np.mean(chunk**2)) if chunk.size else 0.0
    return 10 * math.log10(power / FULL_SCALE**2) if power else -math.inf
