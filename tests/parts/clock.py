"""The clock of the tests' event loops: it goes as every clock does, and a test can put it forward or stop it.

What the product does in time (timers, grace, idle ends, the pace of an answer) it measures by its loop's
clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_TURNS = 30
"""How often the loop turns before time goes on: enough for what is due to be sent, received and answered."""
_STEP_S = 0.1


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward, and be stopped."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._stands_at: float | None = None
        self._in_threads = 0
        super().__init__()

    def time(self) -> float:
        """Return seconds since any moment."""
        return (super().time() if self._stands_at is None else self._stands_at) + self._ahead_s

    @property
    def stands(self) -> bool:
        """Whether time passes only where a test lets it."""
        return self._stands_at is not None

    def stop_clock(self) -> None:
        """Let time stand still."""
        self._stands_at = super().time()

    def start_clock(self) -> None:
        """Let time pass by itself again."""
        if self._stands_at is not None:
            self._ahead_s += self._stands_at - super().time()
            self._stands_at = None

    def watch(self, future: asyncio.Future[Any]) -> None:
        """While time stands still, let none pass before a thread's result is there."""
        self._in_threads += 1
        future.add_done_callback(self._thread_is_done)

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
        await self._turn()
        while self.stands and self._in_threads:
            while self._in_threads:
                time.sleep(0.0005)  # noqa: ASYNC251, a timer of the loop would never be due
                await asyncio.sleep(0)
            # What a thread brought has as many turns as all else, whenever it came.
            await self._turn()

    @staticmethod
    async def _turn() -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _thread_is_done(self, _: object) -> None:
        self._in_threads -= 1


def _loop() -> DrivenLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DrivenLoop)
    return loop


async def pass_time(seconds: float) -> None:
    """Let time pass at once: what is due in it happens, in its order."""
    await _loop().pass_time(seconds)


@contextmanager
def still_time() -> Iterator[None]:
    """Let time pass only where the test lets it; what threads do takes none, as on a very fast machine."""
    loop = _loop()
    wrap = asyncio.futures.wrap_future

    def watched(future: Future[Any], *, loop: Any = None) -> asyncio.Future[Any]:
        waiter = wrap(future, loop=loop)
        owner = waiter.get_loop()
        if isinstance(owner, DrivenLoop):
            owner.watch(waiter)
        return waiter

    # Through these every result of another thread comes back.
    asyncio.futures.wrap_future = asyncio.wrap_future = watched  # type: ignore[assignment]
    loop.stop_clock()
    try:
        yield
    finally:
        loop.start_clock()
        asyncio.futures.wrap_future = asyncio.wrap_future = wrap


async def in_its_time(awaitable: Awaitable[T]) -> T:
    """Return what an awaitable brings; where time stands still, let it pass until then."""
    loop = asyncio.get_running_loop()
    if not (isinstance(loop, DrivenLoop) and loop.stands):
        return await awaitable
    task = asyncio.ensure_future(awaitable)
    await loop.pass_time(0)
    while not task.done():
        await loop.pass_time(_STEP_S)
    return task.result()


async def pause(seconds: float) -> None:
    """Wait for so long by the loop's clock; where time stands still, let it pass."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, DrivenLoop) and loop.stands:
        await loop.pass_time(seconds)
    else:
        await asyncio.sleep(seconds)


async def until_still(count: Callable[[], int]) -> None:
    """Wait until what counts upwards counts no more, however often the loop turns."""
    before = -1
    while (now := count()) != before:
        before = now
        for _ in range(10 * _TURNS):
            await asyncio.sleep(0)
