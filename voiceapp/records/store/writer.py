"""The one thread that writes what sessions leave behind.

Saving costs the caller a dictionary entry. The thread commits everything saved within 250 ms in one
transaction, over a database connection of its own, so that neither the event loop nor audio waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import Error as DatabaseTrouble
from django.db import InterfaceError, OperationalError, connection

from voiceapp.conversation.records import ItemRecord, Record, ResponseRecord, ToolCallRecord
from voiceapp.errors import VoiceAppError
from voiceapp.protocol.page import CloseCode
from voiceapp.records.store.rows import Key, write_rows
from voiceapp.records.threads import yield_to_audio
from voiceapp.types import Part

logger = logging.getLogger(__name__)

BATCH_S: Final = 0.25
MAX_PENDING: Final = 50_000
"""Most records that wait for the database, about 100 MB of them: a process at its limit of 500 sessions
makes some 250 a second, so the database may be away for three minutes before sessions are refused."""
_MAX_PAUSE_S: Final = 5.0
_TRIES_AT_STOP: Final = 4
_T = TypeVar("_T")
_Job = tuple[Callable[[], Any], "Future[Any]"]


class StoreFull(VoiceAppError):
    """The database has been away for so long that nothing more can be kept."""

    default_code = "store_full"
    status = 503
    close_code = CloseCode.NOT_KEPT


class StoreUnavailable(VoiceAppError):
    """The database did not answer in time."""

    default_code = "store_unavailable"
    status = 503
    close_code = CloseCode.NOT_KEPT


class Writer:
    """Keeps records of sessions; every method but ``stop`` is safe on an event loop, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[Key, Record] = {}
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="records-writer", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether the writer takes nothing more."""
        return self._stopping

    def save_item(self, session_id: UUID, record: ItemRecord) -> None:
        """Keep an item; never blocks. Raises ``StoreFull`` instead of dropping anything."""
        self._save((ItemRecord, session_id, record.item_id), record)

    def save_response(self, session_id: UUID, record: ResponseRecord) -> None:
        """Keep a response; never blocks. Raises ``StoreFull`` instead of dropping anything."""
        self._save((ResponseRecord, session_id, record.response_id), record)

    def save_tool_call(self, session_id: UUID, record: ToolCallRecord) -> None:
        """Keep a tool call; never blocks. Raises ``StoreFull`` instead of dropping anything."""
        self._save((ToolCallRecord, session_id, record.call_id), record)

    async def flush(self, *, timeout_s: float = 10.0) -> None:
        """Return when everything saved so far is committed; raises ``StoreUnavailable``."""
        await self.call(_nothing, timeout_s=timeout_s)

    async def call(self, job: Callable[[], _T], *, timeout_s: float = 10.0) -> _T:
        """Run ``job`` in the writing thread, after everything saved so far is committed.

        ``job`` may run twice where the database connection breaks, so it has to be one transaction. It runs
        even if the caller is cancelled. Raises ``StoreUnavailable``, or what ``job`` raises.
        """
        waiter = asyncio.wrap_future(self.post(job))
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(waiter)
        except TimeoutError:
            waiter.add_done_callback(_collected)
            raise StoreUnavailable("The database does not answer.") from None

    def post(self, job: Callable[[], _T]) -> Future[_T]:
        """Do what ``call`` does without waiting for it; never blocks."""
        result: Future[_T] = Future()
        with self._lock:
            self._refuse_when_stopping()
            self._jobs.append((job, result))
        self._hurry.set()
        self._wake.set()
        return result

    async def aclose(self) -> None:
        """Commit what is left, close the database connection and end the thread."""
        await asyncio.to_thread(self.stop)

    def stop(self, timeout_s: float = 20.0) -> None:
        """Do what ``aclose`` does, for callers without an event loop."""
        with self._lock:
            self._stopping = True
        self._hurry.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _save(self, key: Key, record: Record) -> None:
        with self._lock:
            self._refuse_when_stopping()
            if len(self._pending) >= MAX_PENDING and key not in self._pending:
                raise StoreFull("The database is away; nothing more can be kept.")
            # An entry that is replaced keeps its place, so rows are made in the order of first sight.
            self._pending[key] = record
        if not self._wake.is_set():
            self._wake.set()

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise StoreUnavailable("The store is closed.")

    def _run(self) -> None:
        yield_to_audio()
        failures = 0
        while True:
            self._wake.wait()
            self._hurry.wait(BATCH_S)
            stopping = self._stopping
            # What was taken is given back there, before this waits again.
            if self._work_off(*self._take()):
                failures = 0
                if stopping:
                    break
                continue
            failures += 1
            if stopping and failures >= _TRIES_AT_STOP:
                logger.error("%d records were lost: the database is away", len(self._pending))
                break
            self._hurry.wait(min(BATCH_S * 2**failures, _MAX_PAUSE_S))
        connection.close()

    def _take(self) -> tuple[dict[Key, Record], deque[_Job]]:
        with self._lock:
            self._wake.clear()
            self._hurry.clear()
            batch, self._pending = self._pending, {}
            jobs, self._jobs = self._jobs, deque()
        return batch, jobs

    def _work_off(self, batch: dict[Key, Record], jobs: deque[_Job]) -> bool:
        """Write and run what was taken; put back what could not be done and return ``False``."""
        try:
            if batch:
                write_rows(batch)
                batch = {}
            while jobs:
                _perform(*jobs[0])
                jobs.popleft()
        except DatabaseTrouble as error:
            logger.warning("the database is away (%s); %d records wait", type(error).__name__, len(batch))
            connection.close()
            with self._lock:
                self._pending = {**batch, **self._pending}
                jobs.extend(self._jobs)
                self._jobs = jobs
            self._wake.set()
            return False
        return True


writer: Final = Part[Writer]("writer of the records")


def _perform(job: Callable[[], Any], result: Future[Any]) -> None:
    try:
        value = job()
    except (OperationalError, InterfaceError):
        raise
    except BaseException as error:
        result.set_exception(error)
    else:
        result.set_result(value)


def _collected(waiter: asyncio.Future[Any]) -> None:
    """Take a late result, which asyncio would otherwise report as never retrieved."""
    if not waiter.cancelled():
        waiter.exception()


def _nothing() -> None:
    return None
