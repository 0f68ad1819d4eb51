"""Waiting for what another task or thread does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def wait_until(done: Callable[[], bool]) -> None:
    """Return once ``done`` says so; raise ``TimeoutError`` after 5 s."""
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.005)
