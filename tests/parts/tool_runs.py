"""Functions that are run as tools."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from voiceapp.tools.registry import ToolContext, ToolRegistry

CONTEXT = ToolContext(uuid4(), 7, "call_1")


async def run(function: Any, arguments: str, **limits: Any) -> str:
    """Make a function a tool, with ``limits`` as ``ToolRegistry.add`` takes them; return its output."""
    tools = ToolRegistry()
    made = tools.add(function, **limits)
    return await tools.run(made.name, arguments, CONTEXT, [made.name])
