"""How much a peer may send: so much at once, and so much a second for good. Pure: times are passed in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pace:
    """What one peer may send: for good in a second, and at once after it was quiet."""

    messages_a_s: float
    messages_at_once: int
    bytes_a_s: float
    bytes_at_once: int


IDLE_PACE: Final = Pace(messages_a_s=40, messages_at_once=400, bytes_a_s=64 * 1024, bytes_at_once=256 * 1024)
"""Pings, pongs, empty messages and small fragments of one WebSocket. Keep-alives are one in many seconds."""

SMALL_FRAGMENT_BYTES: Final = 512
"""A piece of a message that is shorter counts as idle: who cuts messages cuts at some kilobytes."""


class Budget:
    """What is left to one peer of its pace."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._messages: float = pace.messages_at_once
        self._bytes: float = pace.bytes_at_once
        self._at_s = math.inf

    def spend(self, now_s: float, messages: int, size: int) -> float:
        """Take messages of ``size`` bytes in all; return the seconds by which the budget is overdrawn.

        ``now_s`` is of any clock that never goes back.
        """
        pace, passed_s = self._pace, max(0.0, now_s - self._at_s)
        self._at_s = now_s
        self._messages = min(pace.messages_at_once, self._messages + passed_s * pace.messages_a_s) - messages
        self._bytes = min(pace.bytes_at_once, self._bytes + passed_s * pace.bytes_a_s) - size
        return max(0.0, -self._messages / pace.messages_a_s, -self._bytes / pace.bytes_a_s)
