"""What the operator reads of those who are refused."""

from __future__ import annotations

import pytest

from tests.parts.clock import pass_time, still_time
from voiceapp.serving.refusals import AGAIN_S, MAX_SHOWN_CHARS, MOST_KINDS, Refusals, shown


async def test_the_first_of_a_kind_is_logged_at_once_the_others_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    with still_time():
        for number in range(1_000):
            refusals.note("a", f"a number {number}")
            refusals.note("b", "b")
        assert caplog.messages == ["a number 0", "b"]
        await pass_time(AGAIN_S - 1)
        assert len(caplog.messages) == 2
        await pass_time(2)
        assert caplog.messages[2:] == [
            "a number 999 (999 times in the last minute)",
            "b (999 times in the last minute)",
        ]
        refusals.note("a", "again")
        assert len(caplog.messages) == 4
        await pass_time(AGAIN_S)
        assert caplog.messages[4:] == ["again (1 times in the last minute)"]


async def test_a_kind_that_comes_no_more_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with still_time():
        refusals.note("a", "first")
        await pass_time(AGAIN_S + 1)
        refusals.note("a", "second")
        assert caplog.messages == ["first", "second"]


async def test_kinds_without_number_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with still_time():
        for number in range(10_000):
            refusals.note(str(number), "x")
        assert len(caplog.messages) == MOST_KINDS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("https://a.example", "'https://a.example'"),
        ("a\nERROR forged\x1b[2J", r"'a\nERROR forged\x1b[2J'"),
        ("\u202egnp", r"'\u202egnp'"),
        ("x" * 10_000, "'" + "x" * MAX_SHOWN_CHARS + r"\u2026'"),
    ],
)
def test_what_comes_from_outside_is_shown_as_one_short_line(text: str, line: str) -> None:
    assert shown(text) == line
