"""Tools whose calls a test holds up and lets go."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from voiceapp.tools.registry import Registry


def gated_tools() -> tuple[Registry, dict[str, Any]]:
    """Return tools, and what tests need of them: gates that open when told, and what each was called with."""
    seen: dict[str, Any] = {"calls": [], "gates": {n: asyncio.Event() for n in (1, 2, 3)}}
    tools = Registry()

    async def wait(number: int) -> str:
        """Wait until the test opens a gate."""
        seen["calls"].append(number)
        await seen["gates"][number].wait()
        return f"gate {number}"

    def block(seconds: float) -> str:
        """Block a thread."""
        seen["calls"].append(seconds)
        time.sleep(seconds)
        return "blocked"

    tools.add(wait)
    tools.add(block, timeout_s=0.3)
    return tools, seen
