"""How long the event loop is held up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any


async def longest_stall(work: Awaitable[Any]) -> float:
    """Return how long the event loop was held up at most while ``work`` ran, in seconds."""
    worst, running = 0.0, True

    async def watch() -> None:
        nonlocal worst
        while running:
            before = time.perf_counter()
            await asyncio.sleep(0)
            worst = max(worst, time.perf_counter() - before)
            await asyncio.sleep(0.001)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await work
    running = False
    await watching
    return worst
