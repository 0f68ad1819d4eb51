"""Timers in a live session, and as they are said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, heard, news, used
from voiceapp.relay.session.timers import MAX_TIMERS, SessionTimers
from voiceapp.tools.shipped.session import spoken_duration

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_timer_speaks_once_when_it_is_due_and_nobody_is_speaking(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "set_timer", seconds=1) == "The timer for 1 second is set."
        await heard(page, upstream, "It is set.", 1)
        # The user speaks when it is due, and is not interrupted.
        speech = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "u"}
        await upstream.send(speech)
        await page.until("input_audio_buffer.speech_started")
        await upstream.expect_none("conversation.item.create", within_s=1.5)
        await upstream.user_turn("so that was that", "u")
        # For a while an answer to the turn may still come.
        await pass_time(3)
        assert await news(upstream) == "The timer for 1 second is over. Tell the user so now."
        await heard(page, upstream, "Your timer is over.", 2)
        await upstream.expect_none("response.create", within_s=0.6)
        assert len(upstream.sent_to_me("response.create")) == 2


async def test_a_timer_survives_the_loss_of_the_service(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "set_timer", seconds=1, label="tea")
        await heard(page, upstream, "It is set.", 1)
        await upstream.drop()
        await pass_time(1)
        await page.until("session.updated")
        assert "for tea is over" in await news(upstream)
        await upstream.expect("response.create")
        # The connection is lost again before anything was said of it: it is said on the next one, once.
        await upstream.drop()
        await pass_time(0.5)
        assert "for tea is over" in await news(upstream)
        await heard(page, upstream, "Tea is ready.", 2)
        await upstream.expect_none("response.create", within_s=0.6)


async def test_timers_are_listed_and_cancelled(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "list_timers") == "No timer is running."
        await used(upstream, "set_timer", 2, seconds=600, label="tea")
        await used(upstream, "set_timer", 3, seconds=60)
        listed = await used(upstream, "list_timers", 4)
        assert listed == "2 timers run: 1 minute left; 10 minutes left for tea."
        assert await used(upstream, "cancel_timer", 5, label="Tea") == "The timer was cancelled."
        assert await used(upstream, "cancel_timer", 6, label="tea") == "There is no such timer."
        assert "1 timer runs" in await used(upstream, "list_timers", 7)
        assert page.closed is None


async def test_timers_have_bounds(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able, max_session_s=600.0) as (_, upstream):
        late = json.loads(await used(upstream, "set_timer", seconds=700))
        assert late["error"]["code"] == "timer_too_long"
        for number in range(2, MAX_TIMERS + 2):
            # So many are set in several turns: one has only some rounds of tools.
            await upstream.user_turn("Set a timer.", f"item_u{number}")
            await used(upstream, "set_timer", number, seconds=300)
        many = json.loads(await used(upstream, "set_timer", MAX_TIMERS + 2, seconds=300))
        assert many["error"]["code"] == "too_many_timers"
        wrong = json.loads(await used(upstream, "set_timer", MAX_TIMERS + 3, seconds=0))
        assert wrong["error"]["code"] == "invalid_arguments"


async def test_a_session_with_a_timer_is_not_idle_and_tells_which_will_not_be_heard(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able, idle_s=30.0) as (page, upstream):
        await used(upstream, "set_timer", seconds=600, label="tea")
        await heard(page, upstream, "It is set.", 1)
        await pass_time(31)
        await page.send({"type": "session.end"})
        told = await page.until("notice", code="timers_dropped")
        assert "10 minutes for tea" in told["message"]
        await page.until("close")


async def test_timers_go_along_into_a_session_that_continues(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    async with talking(start=able) as (page, upstream):
        session_id = next(e["session_id"] for e in page.seen if e["type"] == "session.ready")
        await used(upstream, "set_timer", seconds=1, label="tea")
        await heard(page, upstream, "It is set.", 1)
        other = Page(signed_in)
        await other.connect(**{"continue": session_id})
        await other.until("session.ready")
        assert "timers_dropped" not in str(page.seen)
        await pass_time(1)
        assert "for tea is over" in await news(upstream)
        await page.until("close")
        await other.hang_up()


def test_durations_are_said_as_people_say_them() -> None:
    said = [spoken_duration(seconds) for seconds in (0, 1, 59.6, 90, 3600, 3661, 86_400)]
    assert said == [
        "less than a second", "1 second", "1 minute", "1 minute and 30 seconds", "1 hour",
        "1 hour, 1 minute and 1 second", "24 hours",
    ]  # fmt: skip


def test_timers_are_taken_once_and_in_order() -> None:
    clock = 0.0
    timers = SessionTimers(lambda: clock, 1e9)
    timers.start("b", 2)
    timers.start("a", 1)
    clock = 1500.0
    assert [timer.label for timer in timers.take_due()] == ["a"]
    assert timers.take_due() == []
    moved = SessionTimers(lambda: 100.0, 1e9)
    moved.adopt(timers.hand_on())
    # Nobody is told twice: they are with one session only.
    assert timers.hand_on() == []
    assert [(timer.label, timer.due_ms) for timer in moved.pending] == [("b", 600.0)]
