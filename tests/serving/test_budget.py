"""How much a peer may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.serving.budget import Budget, Pace

PACE = Pace(messages_a_s=10, messages_at_once=20, bytes_a_s=1_000, bytes_at_once=5_000)


@pytest.mark.parametrize(
    ("messages", "size", "over_s"),
    [(20, 5_000, 0.0), (21, 0, 0.1), (0, 5_001, 0.001), (30, 7_000, 2.0), (40, 5_001, 2.0)],
)
def test_what_comes_at_once_is_within_the_budget_or_over_it(messages: int, size: int, over_s: float) -> None:
    assert Budget(PACE).spend(1e9, messages, size) == pytest.approx(over_s)


def test_time_gives_back_what_was_spent_and_no_more() -> None:
    budget = Budget(PACE)
    assert budget.spend(5.0, 20, 0) == 0
    assert budget.spend(6.0, 10, 0) == 0
    assert budget.spend(6.0, 1, 0) > 0
    assert budget.spend(600.0, 20, 0) == 0
    assert budget.spend(600.0, 1, 0) > 0


def test_a_clock_that_stands_or_goes_back_gives_nothing() -> None:
    budget = Budget(PACE)
    budget.spend(5.0, 20, 0)
    assert budget.spend(4.0, 1, 0) == pytest.approx(0.1)


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 40), st.integers(0, 9_000)), max_size=30))
def test_within_its_pace_nobody_is_over(steps: list[tuple[float, int, int]]) -> None:
    """Whoever sends no more than the pace at once, and waits for as long as that takes, is never over."""
    budget, now = Budget(PACE), 0.0
    for pause_s, messages, size in steps:
        # Long enough for all that is sent now.
        now += pause_s + max(min(messages, 20) / 10, min(size, 5_000) / 1_000)
        assert budget.spend(now, min(messages, 20), min(size, 5_000)) == pytest.approx(0, abs=1e-6)
