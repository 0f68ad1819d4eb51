"""The clock of the tests' event loops: it goes as every clock does, and a test can put it forward.

What the product does in time (timers, grace, idle ends, the pace of an answer) it measures by its loop's
clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_TURNS = 30
"""How often the loop turns before time goes on: enough for what is due to be sent, received and answered."""


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        super().__init__()

    def time(self) -> float:
        """Return seconds since any moment."""
        return super().time() + self._ahead_s

    async def pass_time(self, seconds: float) -> None:
        """Put the clock forward, from each moment at which something is due to the next."""
        end = self.time() + seconds
        await self._settle()
        while (now := self.time()) < end:
            self._ahead_s += min(end, max(now, self._next_due())) - now
            await self._settle()

    def _next_due(self) -> float:
        # What asyncio keeps to itself; it has no name for others.
        timers: list[asyncio.TimerHandle] = vars(self)["_scheduled"]
        return min((timer.when() for timer in timers if not timer.cancelled()), default=float("inf"))

    async def _settle(self) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)


async def until_still(count: Callable[[], int]) -> None:
    """Wait until what counts upwards counts no more, however often the loop turns."""
    before = -1
    while (now := count()) != before:
        before = now
        for _ in range(10 * _TURNS):
            await asyncio.sleep(0)


async def pass_time(seconds: float) -> None:
    """Let time pass at once: what is due in it happens, in its order."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DrivenLoop)
    await loop.pass_time(seconds)
