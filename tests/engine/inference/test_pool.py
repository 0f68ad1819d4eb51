"""The inference threads: order, cancellation, errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.parts.waits import PATIENCE_S
from voiceapp.engine.inference.pool import InferencePool, Priority


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(workers=1)
    yield pool
    pool.close()


async def test_what_is_waited_for_most_runs_first(pool: InferencePool) -> None:
    go, begun, order = threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        begun.set()
        go.wait(PATIENCE_S)

    first = asyncio.create_task(pool.run(Priority.PARTIAL, hold))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    rest = [
        asyncio.create_task(pool.run(priority, order.append, name))
        for priority, name in (
            (Priority.PARTIAL, "partial"),
            (Priority.SENTENCE, "sentence"),
            (Priority.FINAL, "final"),
            (Priority.FINAL, "later final"),
        )
    ]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *rest)
    assert order == ["final", "later final", "sentence", "partial"]


async def test_detection_never_waits_behind_recognition(pool: InferencePool) -> None:
    go = threading.Event()
    held = asyncio.create_task(pool.run(Priority.FINAL, go.wait, PATIENCE_S))
    await asyncio.sleep(0)
    assert await asyncio.wait_for(pool.detect(lambda: "heard"), PATIENCE_S) == "heard"
    assert not held.done()
    go.set()
    await held


async def test_a_job_cancelled_in_the_queue_never_runs(pool: InferencePool) -> None:
    go, ran = threading.Event(), list[int]()
    held = asyncio.create_task(pool.run(Priority.FINAL, go.wait, PATIENCE_S))
    await asyncio.sleep(0)
    unwanted = asyncio.create_task(pool.run(Priority.PARTIAL, ran.append, 1))
    await asyncio.sleep(0)
    unwanted.cancel()
    await asyncio.gather(unwanted, return_exceptions=True)
    go.set()
    await held
    await pool.run(Priority.PARTIAL, lambda: None)
    assert ran == []


async def test_errors_reach_whoever_waits_and_the_thread_lives_on(pool: InferencePool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.run(Priority.FINAL, lambda: 1 // 0)
    assert await pool.run(Priority.FINAL, lambda: 7) == 7


async def test_a_closed_pool_takes_nothing() -> None:
    pool = InferencePool(workers=2)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        await pool.run(Priority.FINAL, lambda: 1)
    with pytest.raises(RuntimeError, match="closed"):
        await pool.detect(lambda: 1)
