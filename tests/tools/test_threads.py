"""Threads of synchronous tools: bounded, and none of them ends the process."""

from __future__ import annotations

import threading

import pytest

from tests.parts.tool_runs import CONTEXT, run
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.errors import ToolFailed
from voiceapp.tools.registry import ToolRegistry
from voiceapp.tools.threads import ToolThreads


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
        gate.wait(PATIENCE_S)
        return "at last"

    tools.add(stuck, timeout_s=0.05)
    # The same with the time that every tool has.
    tools.add(stuck, name="patient")
    for _ in range(2):
        with pytest.raises(ToolFailed) as caught:
            await tools.run("stuck", "", CONTEXT, ["stuck"])
        assert caught.value.code == "timeout"
    assert threads.running == 2
    with pytest.raises(ToolFailed) as caught:
        await tools.run("stuck", "", CONTEXT, ["stuck"])
    assert caught.value.code == "tools_busy"
    gate.set()
    await wait_until(lambda: not threads.running)
    assert await tools.run("patient", "", CONTEXT, ["patient"]) == "at last"


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
