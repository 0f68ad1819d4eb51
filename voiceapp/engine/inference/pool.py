"""Threads for inference: as many as there are cores, with the work that somebody waits for first."""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, TypeVar

T = TypeVar("T")


class Priority(IntEnum):
    """Lower runs first."""

    FINAL = 0
    """The final words of a turn, and the first sentence of a reply: silence lasts until they are there."""
    SPECULATIVE = 1
    """The same before the turn is certainly over."""
    SENTENCE = 2
    """Further sentences of a reply that is already being heard."""
    PARTIAL = 3
    """Words shown while the user still speaks."""
    CLOSE = 9


class InferencePool:
    """A fixed set of threads that take jobs by priority, then by age.

    The queue needs no bound of its own: a session has at most one detection, one partial, one final
    recognition and one sentence per reply in it, and awaits each.
    """

    def __init__(self, workers: int | None = None) -> None:
        count = workers or os.cpu_count() or 1
        self._jobs: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"inference-{index}", daemon=True)
            for index in range(count)
        ]
        # Detection is far cheaper than the rest and must never wait behind a recognition.
        self._detections: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads.append(threading.Thread(target=self._detect, name="inference-detect", daemon=True))
        for thread in self._threads:
            thread.start()

    async def run(self, priority: Priority, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(*arguments)`` in a thread; a job cancelled before its turn never runs."""
        job, future = self._job(work, arguments)
        self._jobs.put((priority, next(self._order), job))
        return await asyncio.wrap_future(future)

    async def detect(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a short detection in the thread kept for that."""
        job, future = self._job(work, arguments)
        self._detections.put(job)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let queued jobs finish and end the threads."""
        self._closed = True
        for _ in self._threads[:-1]:
            self._jobs.put((Priority.CLOSE, next(self._order), _stop))
        self._detections.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()[2]
            if job is _stop:
                return
            job()
            # A waiting thread must not keep alive what the last job worked on.
            del job

    def _detect(self) -> None:
        while (job := self._detections.get()) is not None:
            job()
            del job

    def _job(
        self, work: Callable[..., T], arguments: tuple[Any, ...]
    ) -> tuple[Callable[[], None], Future[T]]:
        if self._closed:
            raise RuntimeError("the inference threads are closed")
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work(*arguments)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        return run, future


def _stop() -> None:
    """Mark the end of the queue."""
