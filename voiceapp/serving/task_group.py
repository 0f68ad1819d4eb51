"""Tasks that end together, and leave nothing behind."""

from __future__ import annotations

import asyncio
import traceback
from types import TracebackType


class TaskGroup(asyncio.TaskGroup):
    """An ``asyncio.TaskGroup`` that is freed with its last reference, also where it is left by an exception.

    Python's own keeps, in Python 3.11 and 3.12, the exception that it raises in the very call that raises it;
    so the exception, the group and all that was at hand stay until a full collection.
    """

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the tasks; see ``asyncio.TaskGroup``."""
        try:
            await super().__aexit__(kind, error, trace)
        except BaseException as raised:
            # Those that have returned: of the others nothing is taken.
            traceback.clear_frames(raised.__traceback__)
            raise
        finally:
            del error, trace
            # It holds the task that waited for it, and that task what it raised.
            vars(self).clear()
