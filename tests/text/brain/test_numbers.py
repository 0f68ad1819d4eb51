"""Sums and spoken numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.text.brain.numbers import find_numbers, number_words, say_number, solve


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("2 + 2 * 3", 8),
        ("ten minus twenty five", -15),
        ("subtract 5 from twenty", 15),
        ("divide ten by four", 2.5),
        ("15 percent of 80", 12),
        ("the square root of eighty-one", 9),
        ("two hundred thousand plus one", 200_001),
        ("one hundred and twenty five minus 25", 100),
        ("three point one four times 2", 6.28),
        ("1,200 + 34", 1234),
        ("two to the power of ten", 1024),
        ("five squared", 25),
        ("What is the weather?", None),
        ("I have 3 apples and 4 pears", None),
        ("(12 + 3) * 4", None),
        (".5 + 1", 1.5),
    ],
)
def test_sums(said: str, value: float | None) -> None:
    assert solve(said) == (None if value is None else pytest.approx(value))


def test_huge_powers_are_refused() -> None:
    with pytest.raises(OverflowError):
        solve("9 to the power of 999999999")


@given(st.integers(0, 999))
def test_numbers_survive_being_spoken(value: int) -> None:
    assert [number.value for number in find_numbers(number_words(value))] == [value]


@pytest.mark.parametrize(("value", "text"), [(-2.5, "minus 2.5"), (1234567, "1,234,567"), (42.0, "42")])
def test_numbers_read_well(value: float, text: str) -> None:
    assert say_number(value) == text
