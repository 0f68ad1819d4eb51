"""Whether work holds others up: in turns, shares and growth, which are alike on every machine."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any


async def turns_during(work: Awaitable[Any]) -> int:
    """Return how often another task had its turn while ``work`` ran."""
    turns, running = 0, True

    async def count() -> None:
        nonlocal turns
        while running:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await work
    running = False
    await counting
    return turns


async def longest_hold(work: Awaitable[Any]) -> float:
    """Return the largest share of all computing time during ``work`` in which the loop had no turn.

    Counts the processor's time, of which other programs take nothing, in all threads of this process: whoever
    computes on the loop in one piece holds it up for the share 1, whoever does so in a thread for nearly 0.
    """
    worst, running = 0.0, True

    async def watch() -> None:
        nonlocal worst
        before = time.thread_time()
        while running:
            await asyncio.sleep(0)
            now = time.thread_time()
            worst = max(worst, now - before)
            before = now

    gc.collect()
    # A collection would walk all that pytest holds, in one piece.
    gc.disable()
    try:
        began = time.process_time()
        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        await work
        took = time.process_time() - began
        running = False
        await watching
    finally:
        gc.enable()
    return worst / took


def growth(work: Callable[[int], object], size: int) -> float:
    """Return how many times as long ``work`` takes with twice the size: 2 where it grows as it should.

    By the processor's time, the best of five each, between sizes that differ fourfold: what else the machine
    does while this is measured weighs half as much then.
    """

    def took(this: int) -> float:
        times = []
        for _ in range(5):
            began = time.process_time()
            work(this)
            times.append(time.process_time() - began)
        return min(times)

    gc.collect()
    gc.disable()
    try:
        return math.sqrt(took(4 * size) / max(took(size), 1e-4))
    finally:
        gc.enable()
