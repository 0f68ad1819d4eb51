"""The clock of one session."""

from __future__ import annotations

import asyncio


class SessionClock:
    """Tells the time since a session began, and how long ago something was last said or heard in it.

    ``time`` is the event loop's, in seconds; ``heard_at`` is on it.
    """

    def __init__(self, begins_ms: float = 0.0) -> None:
        self.time = asyncio.get_running_loop().time
        self.started_at = self.time() - begins_ms / 1000
        self.heard_at = self.time()

    def now(self) -> float:
        """Return the milliseconds since the session began."""
        return (self.time() - self.started_at) * 1000

    def touch(self) -> None:
        """Take note that something is said or heard now: the session is not idle."""
        self.heard_at = self.time()

    @property
    def idle_s(self) -> float:
        """The seconds since something was said or heard."""
        return self.time() - self.heard_at
