"""The turn that the user speaks, until its answer begins; pure."""

from __future__ import annotations

from dataclasses import dataclass

ANSWER_DUE_MS = 3_000.0
"""How long after the user stopped speaking the service may begin an answer of its own accord."""


@dataclass(slots=True)
class SpokenTurn:
    """Times are milliseconds on the session's clock."""

    speaking: bool = False
    _stopped_ms: float | None = None
    _answer_by_ms: float = 0.0

    def began(self) -> None:
        """The user speaks."""
        self.speaking = True

    def stopped(self, now: float) -> None:
        """The user spoke."""
        self.speaking = False
        self._stopped_ms, self._answer_by_ms = now, now + ANSWER_DUE_MS

    def answered(self) -> None:
        """A response began."""
        self._answer_by_ms = 0.0

    def latency(self, now: float) -> int | None:
        """Return how long the user waited for the first sound that comes now; once in a turn."""
        stopped_ms, self._stopped_ms = self._stopped_ms, None
        return None if stopped_ms is None else int(now - stopped_ms)

    def lost(self) -> None:
        """The service is gone, and with it what it had heard of the turn."""
        self.speaking, self._answer_by_ms = False, 0.0

    def open(self, now: float) -> bool:
        """Whether the user speaks, or may be answered any moment."""
        return self.speaking or now < self._answer_by_ms
