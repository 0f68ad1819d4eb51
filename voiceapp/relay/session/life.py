"""The tasks of one session, and the one way in which they end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from voiceapp.errors import VoiceAppError
from voiceapp.relay.session.ending import EndReason


class Ended(Exception):
    """Leaves the task group once the session is to end."""


class Life:
    """See the module. ``finished`` is set when all is settled and kept.

    ``announced``: the page was told that the session is ready. ``last_seq`` is the number of the last message
    before those of the end.
    """

    def __init__(self) -> None:
        self._end: asyncio.Future[EndReason] = asyncio.get_running_loop().create_future()
        self._group: asyncio.TaskGroup | None = None
        self._hosting: asyncio.Task[None] | None = None
        self.cause: VoiceAppError | None = None
        self.finished = asyncio.Event()
        self.announced = False
        self.last_seq = 0

    async def run(self, *tasks: Coroutine[Any, Any, None]) -> None:
        """Run the tasks until the session is to end; raises ``Ended``, or what a task raised, in a group."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for task in tasks:
                group.create_task(task)
            await self._end
            raise Ended

    def start(self, task: Coroutine[Any, Any, None]) -> None:
        """Run one task more, which ends with the session; nothing is begun any more in one that ends."""
        if self._group is None or self._end.done():
            task.close()
            return
        self._group.create_task(task)

    def host(self, listing: Coroutine[Any, Any, None]) -> None:
        """Ask servers for their tools, in place of an earlier listing."""
        assert self._group is not None
        self._hosting = self._group.create_task(listing)

    def stop_hosting(self) -> None:
        """What is still listed for the assistant before is not for the next one."""
        if self._hosting is not None:
            self._hosting.cancel()

    def end(self, reason: EndReason, error: VoiceAppError | None = None) -> None:
        """Ask the session to end; the first cause counts. ``error`` says more of it."""
        if not self._end.done():
            self.cause = error
            self._end.set_result(reason)

    @property
    def end_reason(self) -> EndReason | None:
        """Why the session ended or is ending, if it is."""
        return self._end.result() if self._end.done() else None
