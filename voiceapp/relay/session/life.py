"""The tasks of one session, and the one way in which they end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from voiceapp.errors import VoiceAppError
from voiceapp.relay.session.ending import EndReason


class Life:
    """See the module. ``finished`` is set when all is settled and kept.

    ``announced``: the page was told that the session is ready. ``goodbye`` is what it is told at the end, and
    ``last_seq`` the number of the last message before that.

    The tasks stand in no ``asyncio.TaskGroup``: one that is left by an exception keeps, in that exception's
    traceback, itself and whoever waits for it until a full collection.
    """

    def __init__(self) -> None:
        self._end: asyncio.Future[EndReason] = asyncio.get_running_loop().create_future()
        self._running = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._hosting: set[asyncio.Task[None]] = set()
        self._faults: list[BaseException] = []
        self.goodbye = EndReason.DRAIN.message(None)
        self.finished = asyncio.Event()
        self.announced = False
        self.last_seq = 0

    async def run(self, *work: Coroutine[Any, Any, None]) -> list[BaseException]:
        """Run the work until the session is to end, and end all its tasks; return what they have raised.

        What one raises ends the session, with ``EndReason.FAULT``.
        """
        self._running = True
        try:
            for one in work:
                self._begin(one)
            # To be cancelled would end the future as well.
            await asyncio.wait({self._end})
        finally:
            self._running = False
            for task in self._tasks:
                task.cancel()
            while self._tasks:
                await asyncio.wait(self._tasks)
            faults, self._faults = self._faults, []
        return faults

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run one task more, which ends with the session; nothing is begun any more in one that ends."""
        if self._running and not self._end.done():
            self._begin(work)
        else:
            work.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._hosting.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._faults.append(fault)
            self.end(EndReason.FAULT)

    def host(self, listings: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Ask servers for their tools, each in a task of its own."""
        for listing in listings:
            if self._running and not self._end.done():
                self._hosting.add(self._begin(listing))
            else:
                listing.close()

    def stop_hosting(self) -> None:
        """What is still listed for the assistant before is not for the next one."""
        for task in self._hosting:
            task.cancel()

    def end(self, reason: EndReason, error: VoiceAppError | None = None) -> None:
        """Ask the session to end; the first cause counts. ``error`` says more of it.

        The error itself is not kept: its traceback would hold what it was raised in.
        """
        if not self._end.done():
            self.goodbye = reason.message(error)
            self._end.set_result(reason)

    @property
    def end_reason(self) -> EndReason | None:
        """Why the session ended or is ending, if it is."""
        return self._end.result() if self._end.done() else None
