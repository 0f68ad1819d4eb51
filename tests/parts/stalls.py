"""How long the event loop is held up by what runs in it, and not by other programs on the machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

_TURN_S = 0.001


def _own_time_s() -> float:
    """Return a clock that stands still while the calling thread is ready and another one has its core.

    Only Linux tells how long that was; elsewhere this is the time that has passed.
    """
    try:
        waited_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        waited_ns = 0
    return time.perf_counter() - waited_ns / 1e9


async def longest_stall(work: Awaitable[Any]) -> float:
    """Return how long the event loop was held up at most while ``work`` ran, in seconds."""
    worst, running = 0.0, True

    async def watch() -> None:
        nonlocal worst
        before = _own_time_s()
        while running:
            await asyncio.sleep(_TURN_S)
            now = _own_time_s()
            worst = max(worst, now - before - _TURN_S)
            before = now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await work
    running = False
    await watching
    return worst
