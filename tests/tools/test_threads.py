"""Threads of synchronous tools: bounded, and none of them ends the process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest

from tests.parts.waits import PATIENCE_S
from voiceapp.errors import ToolFailed
from voiceapp.tools.registry import ToolContext, ToolRegistry
from voiceapp.tools.threads import ToolThreads

CONTEXT = ToolContext(uuid4(), 7, "call_1")


async def run(function: Any, arguments: str, **limits: Any) -> str:
    tools = ToolRegistry()
    made = tools.add(function, **limits)
    return await tools.run(made.name, arguments, CONTEXT, [made.name])


async def test_a_synchronous_tool_does_not_hold_up_the_loop() -> None:
    seen = []

    def blocking() -> str:
        """Block."""
        seen.append(threading.current_thread())
        return "done"

    assert await run(blocking, "") == "done"
    assert seen != [threading.main_thread()]


async def test_a_tool_that_never_returns_keeps_one_thread_of_a_bounded_number() -> None:
    threads, gate = ToolThreads(most=2), threading.Event()
    tools = ToolRegistry(threads)

    def stuck() -> str:
        """Hang."""
        gate.wait(10)
        return "at last"

    tools.add(stuck, timeout_s=0.05)
    for _ in range(2):
        with pytest.raises(ToolFailed) as caught:
            await tools.run("stuck", "", CONTEXT, ["stuck"])
        assert caught.value.code == "timeout"
    assert threads.running == 2
    with pytest.raises(ToolFailed) as caught:
        await tools.run("stuck", "", CONTEXT, ["stuck"])
    assert caught.value.code == "tools_busy"
    gate.set()
    async with asyncio.timeout(PATIENCE_S):
        while threads.running:
            await asyncio.sleep(0.005)
    assert await tools.run("stuck", "", CONTEXT, ["stuck"]) == "at last"


async def test_a_thread_that_would_end_the_process_ends_its_call() -> None:
    def leave() -> str:
        """Leave."""
        raise SystemExit(1)

    def stop() -> str:
        """Stop."""
        raise StopIteration

    for function in (leave, stop):
        with pytest.raises(ToolFailed):
            await run(function, "")
