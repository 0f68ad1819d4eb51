"""The tones of a telephone's keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

KEYS = "123A456B789C*0#D"
RATE = 48_000


def press(key: str, ms: int, *, db: float = -12, twist_db: float = 0, shift: float = 0) -> NDArray[np.int16]:
    """Return a key's tones; ``shift`` is how much too high they are, as a share."""
    row, column = divmod(KEYS.index(key), 4)
    times = np.arange(RATE * ms // 1000) / RATE
    low = np.sin(2 * np.pi * (697, 770, 852, 941)[row] * (1 + shift) * times)
    high = np.sin(2 * np.pi * (1209, 1336, 1477, 1633)[column] * (1 + shift) * times) * 10 ** (twist_db / 20)
    return ((low + high) * 16_383 * 10 ** (db / 20)).astype(np.int16)
