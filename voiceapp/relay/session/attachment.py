"""Which of the page's sockets a session talks to, if any."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

STALL_S: Final = 10.0
"""How long an attached page may leave a full window unacknowledged."""


class Browser(Protocol):
    """One socket of the page, as the session sees it."""

    def release(self, close_code: int, reason: str) -> None:
        """Close the socket once the page has read what is due."""


class Attachment:
    """The page's socket at the moment; ``alone`` is set while there is none."""

    def __init__(self) -> None:
        self._time = asyncio.get_running_loop().time
        self.browser: Browser | None = None
        self.alone = asyncio.Event()
        self._detached_at = self._flowing_at = self._time()
        self._acknowledged_seq = 0

    def attach(self, browser: Browser) -> None:
        """Take a socket."""
        self.browser = browser
        self.alone.clear()
        self._flowing_at = self._time()

    def detach(self, browser: Browser) -> None:
        """A socket is gone; if it was the one, the page is away from now on."""
        if self.browser is browser:
            self.browser = None
            self.alone.set()
            self._detached_at = self._time()

    @property
    def away_s(self) -> float:
        """How long no socket has been there; 0 while there is one."""
        return 0.0 if self.browser is not None else self._time() - self._detached_at

    def stalled(self, *, blocked: bool, acknowledged_seq: int) -> bool:
        """Whether the page has read nothing for too long; ``blocked``: a full window waits at the moment."""
        if not blocked or acknowledged_seq != self._acknowledged_seq:
            self._flowing_at = self._time()
        self._acknowledged_seq = acknowledged_seq
        return self._time() - self._flowing_at > STALL_S
