"""Sums that are exact, and the time in a city."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.tool_runs import CONTEXT
from voiceapp.errors import InvalidArguments, ToolError
from voiceapp.language.zones import day_in_words
from voiceapp.tools.shipped.clock_and_sums import calculate, current_time


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 3 * 4", "14"),
        ("(12.5 + 3) * 4 / 8", "7.75"),
        ("0.1 + 0.2", "0.3"),
        ("-7 // 2", "-3"),
        ("2 ** 64", "18446744073709551616"),
        ("1_000 * 1000", "1000000"),
        ("10 / 4", "2.5"),
        ("17 times 23", "391"),
        ("10 divided by 4 plus 3 x 2", "8.5"),
        ("2^10", "1024"),
    ],
)
def test_sums_are_exact(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    "expression",
    ["", "1 / 0", "9 ** 9 ** 9", "__import__('os')", "a + 1", "1 if 1 else 2", "'x' * 3", "1 +", "True + 1",
     "(" * 200 + ")" * 200, "1 " * 200, "2 ** -1001", "[1]"],
)  # fmt: skip
def test_what_is_no_sum_is_refused(expression: str) -> None:
    with pytest.raises(InvalidArguments):
        calculate(expression)


@given(st.text(max_size=60))
def test_no_expression_does_anything_else(expression: str) -> None:
    with contextlib.suppress(InvalidArguments):
        assert calculate(expression)


@pytest.mark.parametrize(
    ("place", "told"),
    [("", "UTC"), ("Paris", "in Paris"), ("paris", "in Paris"), ("New York", "in New York"),
     ("Europe/Berlin", "in Berlin"), ("Tokyo, Japan", "in Tokyo"), ("Japan", "in Japan"), ("EST", "EST")],
)  # fmt: skip
def test_the_time_in_a_city_is_a_sentence_to_be_heard(place: str, told: str) -> None:
    sentence = rf"It is \d\d:\d\d {told}, on [A-Z][a-z]+day, [1-9]\d? [A-Z][a-z]+ \d{{4}}\."
    assert re.fullmatch(sentence, current_time(CONTEXT, place))


def test_without_a_place_the_time_is_that_of_the_user() -> None:
    zone = ZoneInfo("Asia/Tokyo")
    before, sentence, after = (
        datetime.now(zone), current_time(replace(CONTEXT, zone=zone)), datetime.now(zone)
    )  # fmt: skip
    assert sentence in {f"It is {now:%H:%M} in Tokyo, on {day_in_words(now)}." for now in (before, after)}


def test_a_place_without_a_zone_is_said_so() -> None:
    with pytest.raises(ToolError, match="No time zone"):
        current_time(CONTEXT, "Nowhere at all")
