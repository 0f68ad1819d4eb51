"""Kept text and lengths of time as people may read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.records.display import clock, inert, inert_fields


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0:00"), (61_999, "1:01"), (3_600_000, "1:00:00"), (-5, "0:00")]
)
def test_clock(ms: int, text: str) -> None:
    assert clock(ms) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Plain words, ünd 😀.", "Plain words, ünd 😀."),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("\x1b[31mred\x00", "\ufffd[31mred\ufffd"),
        ("abc\u202etxet\u202c", "abc\ufffdtxet\ufffd"),
        ("\u2028\ud800", "\ufffd\ufffd"),
        ("\u200fשלום\u200e", "\u200fשלום\u200e"),
        ("<b>", "<b>"),
    ],
)
def test_what_could_act_on_its_surroundings_is_shown_as_a_mark(text: str, shown: str) -> None:
    assert inert(text) == shown


@given(st.text())
def test_inert_text_stays_as_it_is(text: str) -> None:
    assert inert(inert(text)) == inert(text)


def test_fields_are_made_inert_where_they_are_text() -> None:
    assert inert_fields({"a": "\x00", "b": 7, "c": None}) == {"a": "\ufffd", "b": 7, "c": None}


def test_the_longest_lengths_are_told_in_days() -> None:
    assert clock(59_999) == "0:59"
    assert clock(600_000) == "10:00"
    assert clock(25 * 3_600_000) == "1 day, 1:00:00"
