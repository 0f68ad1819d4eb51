"""What the brain can do by itself: each skill answers a turn, or leaves it to the next."""

from __future__ import annotations

import datetime as dt

import pytest

from voiceapp.text.brain.skills import SKILLS, Turn, opening, own_up, spoken_command
from voiceapp.text.provider import HistoryItem, ReplyRequest, Said

NOON = dt.datetime(2026, 11, 30, 12, 30)


def turn(text: str, *before: HistoryItem, instructions: str = "", now: dt.datetime = NOON) -> Turn:
    request = ReplyRequest(instructions, (*before, Said("user", text)))
    return Turn(text, text.lower(), request, now)


def answers(asked: Turn) -> list[str]:
    """Return the names of the skills that would answer."""
    return [skill.__name__.strip("_") for skill in SKILLS if skill(asked) is not None]


@pytest.mark.parametrize(
    ("text", "skill"),
    [
        ("Repeat after me: hello", "repeat"),
        ("My name is Ada", "names"),
        ("Hello!", "greet"),
        ("Thank you!", "courtesy"),
        ("What can you do?", "capabilities"),
        ("What time is it?", "clock_and_calendar"),
        ("What is 2 plus 2?", "sum"),
        ("Count to three", "count"),
        ("Tell me a joke", "entertain"),
    ],
)
def test_each_skill_knows_its_own_sentences(text: str, skill: str) -> None:
    assert answers(turn(text))[0] == skill


@pytest.mark.parametrize("text", ["Why is the sky blue?", "Is the moon made of cheese", "xyzzy", ""])
def test_what_is_no_skills_business_is_left_alone(text: str) -> None:
    assert answers(turn(text)) == []


def test_earlier_turns_are_the_users_own_and_bounded() -> None:
    said = turn("now", Said("user", "x" * 10_000), Said("assistant", "y"), Said("user", "z"))
    assert [text[:1] for text in said.earlier] == ["x", "z"]
    assert max(map(len, said.earlier)) <= 500
    many = turn("now", *(Said("user", str(number)) for number in range(2_000)))
    assert len(many.earlier) == 500
    assert many.earlier[-1] == "1999"


@pytest.mark.parametrize(
    ("hour", "greeting"),
    [(3, "evening"), (4, "morning"), (11, "morning"), (12, "afternoon"), (18, "evening"), (23, "evening")],
)
def test_the_greeting_fits_the_time_of_day(hour: int, greeting: str) -> None:
    now = NOON.replace(hour=hour)
    assert opening(turn("Hello", now=now)).startswith(f"Good {greeting}!")


def test_the_greeting_knows_both_names() -> None:
    hello = opening(turn("Hello", Said("user", "My name is ada."), instructions="Your name is Nova."))
    assert hello.startswith("Good afternoon, Ada! I am Nova.")


@pytest.mark.parametrize("order", ['Say exactly: "Welcome!"', "Greet the user with: Welcome!"])
def test_an_opening_line_is_said_at_the_beginning_only(order: str) -> None:
    first = Turn("", "", ReplyRequest(order, ()), NOON)
    assert spoken_command(order, first) == "Welcome!"
    assert spoken_command(order, turn("And now?", Said("user", "Hi"))) is None
    assert spoken_command("Be kind.", first) is None


def test_the_brain_owns_up_with_the_reason_and_says_once_what_it_is() -> None:
    first = own_up(turn("What is the weather like?"))
    assert "weather" in first
    assert "not a language model" in first
    again = own_up(turn("And in Rome?", Said("assistant", first)))
    assert "not a language model" not in again
    assert again.endswith("Ask me what I can do.")
