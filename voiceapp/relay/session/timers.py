"""A session's timers. They live in the session: a new connection to the service changes nothing for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from voiceapp.errors import ToolFailed
from voiceapp.tools.capabilities import RunningTimer
from voiceapp.tools.shipped.session import spoken_duration

MAX_TIMERS = 10
"""Timers that may run in one session; a person keeps track of fewer."""


@dataclass(frozen=True)
class Timer:
    """A timer on the session's clock, in milliseconds."""

    label: str
    seconds: float
    due_ms: float

    @property
    def name(self) -> str:
        """The timer in words."""
        about = f" for {self.label}" if self.label else ""
        return f"The timer for {spoken_duration(self.seconds)}{about}"


class MovingTimer(NamedTuple):
    """A timer on its way to the session that goes on with it, whose clock is another."""

    label: str
    seconds: float
    left_s: float


class SessionTimers:
    """See the module. ``now`` is the session's clock, ``ends_ms`` when the session ends at the latest."""

    def __init__(self, now: Callable[[], float], ends_ms: float) -> None:
        self._now = now
        self._ends_ms = ends_ms
        self._timers: list[Timer] = []

    @property
    def pending(self) -> list[Timer]:
        """The timers of which the user was not told yet, the next one first."""
        return list(self._timers)

    def start(self, label: str, seconds: float) -> None:
        """Start a timer. Raises ``ToolFailed`` with the code ``too_many_timers`` or ``timer_too_long``."""
        if len(self._timers) >= MAX_TIMERS:
            raise ToolFailed(f"{MAX_TIMERS} timers run already.", code="too_many_timers")
        due_ms = self._now() + seconds * 1000
        if due_ms >= self._ends_ms:
            left = spoken_duration(max(0.0, self._ends_ms - self._now()) / 1000)
            raise ToolFailed(f"This conversation ends in {left}, before that.", code="timer_too_long")
        self._timers.append(Timer(label, seconds, due_ms))
        self._timers.sort(key=lambda timer: timer.due_ms)

    def hand_on(self) -> list[MovingTimer]:
        """Give the timers away to the one session that goes on with them."""
        now = self._now()
        timers, self._timers = self._timers, []
        return [MovingTimer(one.label, one.seconds, (one.due_ms - now) / 1000) for one in timers]

    def adopt(self, timers: Iterable[MovingTimer]) -> None:
        """Go on with another session's timers."""
        now = self._now()
        self._timers += [Timer(one.label, one.seconds, now + one.left_s * 1000) for one in timers]
        self._timers.sort(key=lambda timer: timer.due_ms)

    def running(self) -> list[RunningTimer]:
        """Return the timers that are not over, the next one first."""
        now = self._now()
        return [RunningTimer(one.label, max(0.0, one.due_ms - now) / 1000) for one in self._timers]

    def cancel(self, label: str) -> list[RunningTimer]:
        """Stop the timers whose label has these words, all of them where none is given; return those."""
        wanted = label.casefold()
        stopped = [n for n, one in enumerate(self._timers) if wanted in one.label.casefold()]
        running = self.running()
        self._timers = [one for n, one in enumerate(self._timers) if n not in stopped]
        return [running[n] for n in stopped]

    def take_due(self) -> list[Timer]:
        """Return the timers that are over, once."""
        now = self._now()
        due = [one for one in self._timers if one.due_ms <= now]
        self._timers = [one for one in self._timers if one.due_ms > now]
        return due
