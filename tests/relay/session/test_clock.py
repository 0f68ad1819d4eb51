"""The clock of one session."""

from __future__ import annotations

import pytest

from tests.parts.clock import pass_time, still_time
from voiceapp.relay.session.clock import SessionClock


async def test_it_counts_milliseconds_from_the_beginning_of_the_session() -> None:
    with still_time():
        clock = SessionClock()
        assert clock.now() == 0
        await pass_time(2.5)
        assert clock.now() == pytest.approx(2500)


async def test_a_session_that_was_taken_over_goes_on_counting() -> None:
    with still_time():
        clock = SessionClock(begins_ms=60_000)
        assert clock.now() == pytest.approx(60_000)
        await pass_time(1)
        assert clock.now() == pytest.approx(61_000)


async def test_a_session_is_idle_from_what_was_said_last() -> None:
    with still_time():
        clock = SessionClock()
        await pass_time(5)
        assert clock.idle_s == pytest.approx(5)
        clock.touch()
        assert clock.idle_s == 0
