"""The tasks of one session, and the one way in which they end."""

from __future__ import annotations

import asyncio

from tests.parts.clock import pass_time
from voiceapp.errors import UpstreamError
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.life import Life


async def waiting(stopped: list[str], name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        stopped.append(name)


async def test_the_first_cause_ends_all_tasks_and_counts() -> None:
    life, stopped = Life(), list[str]()
    running = asyncio.create_task(life.run(waiting(stopped, "a"), waiting(stopped, "b")))
    await asyncio.sleep(0)
    assert not running.done()
    lost = UpstreamError("It is gone.")
    life.end(EndReason.UPSTREAM_LOST, lost)
    life.end(EndReason.HUNG_UP)
    assert await running == []
    assert (life.end_reason, life.goodbye) == (EndReason.UPSTREAM_LOST, EndReason.UPSTREAM_LOST.message(lost))
    assert sorted(stopped) == ["a", "b"]


async def test_a_session_that_goes_on_has_no_reason_to_end() -> None:
    async def over() -> None:
        """Return at once: that a task has done its work ends no session."""

    life, stopped = Life(), list[str]()
    running = asyncio.create_task(life.run(waiting(stopped, "a")))
    await pass_time(0)
    life.start(over())
    await pass_time(3600)
    assert (life.end_reason, running.done(), stopped) == (None, False, [])
    life.end(EndReason.IDLE)
    assert await running == []


async def test_what_a_task_raises_ends_the_others() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    life, stopped = Life(), list[str]()
    running = asyncio.create_task(life.run(broken(), waiting(stopped, "a")))
    [fault] = await running
    assert isinstance(fault, RuntimeError)
    assert life.end_reason is EndReason.FAULT
    assert stopped == ["a"]


async def test_a_task_that_is_begun_later_ends_with_the_others() -> None:
    life, stopped = Life(), list[str]()
    running = asyncio.create_task(life.run())
    await asyncio.sleep(0)
    life.start(waiting(stopped, "late"))
    await asyncio.sleep(0)
    life.end(EndReason.IDLE)
    assert await running == []
    assert stopped == ["late"]


async def test_nothing_is_begun_in_a_session_that_ends_or_has_not_begun() -> None:
    life, begun = Life(), list[str]()

    async def work() -> None:
        begun.append("work")

    life.start(work())
    running = asyncio.create_task(life.run())
    await asyncio.sleep(0)
    life.end(EndReason.IDLE)
    life.start(work())
    assert await running == []
    assert begun == []


async def test_a_listing_for_the_assistant_before_is_given_up() -> None:
    life, stopped = Life(), list[str]()
    life.stop_hosting()
    running = asyncio.create_task(life.run())
    await asyncio.sleep(0)
    life.host([waiting(stopped, "one"), waiting(stopped, "another")])
    await asyncio.sleep(0)
    life.stop_hosting()
    await pass_time(0)
    assert sorted(stopped) == ["another", "one"]
    assert not running.done(), "the session goes on"
    life.end(EndReason.IDLE)
    assert await running == []


async def test_whoever_stops_the_session_itself_stops_its_tasks_and_can_still_say_why() -> None:
    life, stopped = Life(), list[str]()
    running = asyncio.create_task(life.run(waiting(stopped, "a")))
    await pass_time(0)
    running.cancel()
    await asyncio.wait({running})
    assert (running.cancelled(), stopped, life.end_reason) == (True, ["a"], None)
    life.end(EndReason.DRAIN)
    assert life.end_reason is EndReason.DRAIN
