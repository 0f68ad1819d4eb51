"""Waiting for what another task or thread does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 60.0
"""How long a test waits for what must come. Only where something is wrong does one wait so long."""


async def wait_until(done: Callable[[], bool]) -> None:
    """Return once ``done`` says so; raise ``TimeoutError`` where it never does."""
    async with asyncio.timeout(PATIENCE_S):
        while not done():
            await asyncio.sleep(0.005)
