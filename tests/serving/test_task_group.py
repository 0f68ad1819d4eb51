"""A task group that is left by an exception, and what is left of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from voiceapp.serving.task_group import TaskGroup


class Held:
    """Something that whoever uses the group has at hand."""


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def fail() -> None:
    raise ValueError("no")


async def use(held: Held, how: str) -> None:
    async with TaskGroup() as tasks:
        tasks.create_task(asyncio.Event().wait())
        if how == "a task fails":
            tasks.create_task(fail())
        if how == "it fails itself":
            raise ValueError("no")
        await asyncio.Event().wait()


@pytest.mark.parametrize("how", ["a task fails", "it fails itself", "cancelled"])
async def test_nothing_is_left_of_a_group_that_is_left_by_an_exception(how: str) -> None:
    held = Held()
    left = weakref.ref(held)
    using = asyncio.create_task(use(held, how))
    await asyncio.sleep(0)
    if how == "cancelled":
        using.cancel()
    await asyncio.wait({using})
    if how == "cancelled":
        assert using.cancelled()
    else:
        error = using.exception()
        assert isinstance(error, ExceptionGroup)
        assert [str(one) for one in error.exceptions] == ["no"]
        del error
    del held, using
    assert left() is None


async def test_all_tasks_are_waited_for() -> None:
    done = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    async with TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(work(number))
    assert done == [0, 1, 2]
