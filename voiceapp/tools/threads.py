"""Threads in which synchronous tools run: one for each call, and never more than a bound.

A thread cannot be stopped from outside, so a tool that is over its time limit keeps its thread until it
returns. Such threads count: once ``MAX_THREADS`` are taken, further calls fail at once instead of waiting
behind tools that may never end. They are daemons, so that none of them keeps the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.db import close_old_connections

from voiceapp.errors import ToolFailed
from voiceapp.types import Part

MAX_THREADS = 32
"""Synchronous tools that may run at once in one process; each may hold a database connection."""


class ToolThreads:
    """Counts the threads of one process's tools."""

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._running = 0

    @property
    def running(self) -> int:
        """How many threads are taken, those of tools that were given up among them."""
        return self._running

    async def run(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """Call a function in a thread of its own and return what it returns, or raise what it raises.

        Raises ``ToolFailed`` with the code ``tools_busy`` where no thread is free.
        """
        with self._guard:
            if self._running >= self._most:
                raise ToolFailed("Too many tools are running. Try again in a moment.", code="tools_busy")
            self._running += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = partial(contextvars.copy_context().run, function, **given)
        threading.Thread(
            target=self._work, args=(call, future), name=f"tool {function.__name__}", daemon=True
        ).start()
        try:
            return await future
        finally:
            # What it raises has this call in its traceback, and would be held by it in turn.
            del future

    def _work(self, call: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = call()
        except BaseException as raised:
            # Whoever called raises it; what would end the process shall end the call.
            error = raised if isinstance(raised, Exception) else RuntimeError(type(raised).__name__)
        finally:
            close_old_connections()
            with self._guard:
                self._running -= 1
        try:
            future.get_loop().call_soon_threadsafe(_settle, future, result, error)
        except RuntimeError:
            # The loop is gone, and with it whoever waited.
            return
        finally:
            # Likewise.
            del error, future


tool_threads: Final = Part[ToolThreads]("threads of tools")


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        # A future does not take this one.
        future.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)
