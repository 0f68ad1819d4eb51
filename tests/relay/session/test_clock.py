"""The clock of one session."""

from __future__ import annotations

import pytest

from tests.parts.clock import pass_time
from voiceapp.relay.session.clock import SessionClock


async def test_it_counts_milliseconds_from_the_beginning_of_the_session() -> None:
    clock = SessionClock()
    before = clock.now()
    await pass_time(2.5)
    assert clock.now() - before == pytest.approx(2500, abs=500)


async def test_a_session_that_was_taken_over_goes_on_counting() -> None:
    first = SessionClock(begins_ms=60_000)
    assert first.now() == pytest.approx(60_000, abs=1000)


async def test_a_session_is_idle_from_what_was_said_last() -> None:
    clock = SessionClock()
    await pass_time(5)
    assert clock.idle_s >= 5
    clock.touch()
    assert clock.idle_s < 5
