"""Tools whose calls a test holds up and lets go."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final

from tests.parts.waits import PATIENCE_S
from voiceapp.tools.registry import ToolRegistry

BLOCK_S: Final = 50.0
"""How long the tool that blocks may take: on no machine is this over before a test lets time pass."""


def gated_tools() -> tuple[ToolRegistry, dict[str, Any]]:
    """Return tools, and what tests need of them: gates that open when told, and what each was called with."""
    seen: dict[str, Any] = {
        "calls": [], "gates": {n: asyncio.Event() for n in (1, 2, 3)}, "unblock": threading.Event()
    }  # fmt: skip
    tools = ToolRegistry()

    async def wait(number: int) -> str:
        """Wait until the test opens a gate."""
        seen["calls"].append(number)
        await seen["gates"][number].wait()
        return f"gate {number}"

    def block(number: int) -> str:
        """Block a thread until the test unblocks it."""
        seen["calls"].append(number)
        seen["unblock"].wait(PATIENCE_S)
        return "blocked"

    tools.add(wait)
    tools.add(block, timeout_s=BLOCK_S)
    return tools, seen
