"""The product's tools that need a session: what they ask of it, and what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from voiceapp.tools.capabilities import KeptNote
from voiceapp.tools.registry import ToolContext, registry
from voiceapp.tools.shipped.session import MAX_LISTED, spoken_duration


class Timer:
    """A timer that runs."""

    def __init__(self, label: str, left_s: float) -> None:
        self.label, self.left_s = label, left_s


class Session:
    """What a session lets tools do; notes what they did."""

    def __init__(self, *notes: str) -> None:
        self.done: list[Any] = []
        self.running_timers: list[Timer] = []
        self.kept = list(notes)
        self.deleted: list[KeptNote] = []
        self.timers = self.notes = self.call = self

    def start(self, label: str, seconds: int) -> None:
        self.done.append((label, seconds))

    def running(self) -> list[Timer]:
        return self.running_timers

    def cancel(self, label: str) -> list[Timer]:
        stopped = [timer for timer in self.running_timers if label in ("", timer.label)]
        self.running_timers = [timer for timer in self.running_timers if timer not in stopped]
        return stopped

    async def save(self, text: str) -> None:
        self.kept.append(text)

    async def find(self, words: str) -> list[KeptNote]:
        return [KeptNote(n, note) for n, note in enumerate(self.kept) if words in note]

    async def delete(self, notes: Sequence[KeptNote]) -> list[KeptNote]:
        deleted = [note for note in notes if note.text in self.kept]
        self.kept = [note for note in self.kept if note not in {one.text for one in deleted}]
        self.deleted = deleted
        return deleted

    async def restore(self) -> list[KeptNote]:
        deleted, self.deleted = self.deleted, []
        self.kept += [note.text for note in deleted]
        return deleted

    def end_after_answer(self) -> None:
        self.done.append("hang up")

    async def hand_over(self, name: str) -> str:
        self.done.append(name)
        return name.upper()


async def run(session: Any, name: str, arguments: str = "") -> str:
    context = ToolContext(uuid4(), 7, "call_1", capabilities=session)
    return await registry.run(name, arguments, context, [name])


async def test_of_a_long_timer_the_user_is_told_until_when() -> None:
    session, zone = Session(), ZoneInfo("Asia/Tokyo")
    context = ToolContext(uuid4(), 7, "call_1", capabilities=session, zone=zone)  # type: ignore[arg-type]
    over = [datetime.now(zone) + timedelta(hours=2)]
    said = await registry.run("set_timer", '{"seconds": 7200}', context, ["set_timer"])
    over.append(datetime.now(zone) + timedelta(hours=2))
    assert said in {f"The timer for 2 hours is set until {end:%H:%M}." for end in over}
    # Of a zone that is not the user's own they are told which it is.
    assert (await run(session, "set_timer", '{"seconds": 7200}')).endswith(" UTC.")
    assert (await run(session, "set_timer", '{"seconds": 60}')).endswith("is set.")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "less than a second"),
        (0.4, "less than a second"),
        (-5, "less than a second"),
        (1, "1 second"),
        (59.6, "1 minute"),
        (61, "1 minute and 1 second"),
        (3600, "1 hour"),
        (7325, "2 hours, 2 minutes and 5 seconds"),
        (86_400, "24 hours"),
    ],
)
def test_a_duration_is_said_as_people_do(seconds: float, said: str) -> None:
    assert spoken_duration(seconds) == said


async def test_timers_are_set_listed_and_cancelled() -> None:
    session = Session()
    assert await run(session, "set_timer", '{"seconds": 90, "label": " tea "}') == (
        "The timer for 1 minute and 30 seconds for tea is set."
    )
    assert session.done == [("tea", 90)]
    assert await run(session, "list_timers") == "No timer is running."
    session.running_timers = [Timer("tea", 61), Timer("", 5)]
    assert await run(session, "list_timers") == (
        "2 timers run: 1 minute and 1 second left for tea; 5 seconds left."
    )
    assert await run(session, "cancel_timer", '{"label": "eggs"}') == "There is no such timer."
    assert await run(session, "cancel_timer", '{"label": "tea"}') == "The timer was cancelled."
    session.running_timers.append(Timer("a", 1))
    assert await run(session, "cancel_timer") == "2 timers were cancelled."
    assert await run(session, "cancel_timer") == "No timer is running."


async def test_notes_are_kept_told_and_deleted() -> None:
    session = Session()
    assert await run(session, "list_notes") == "There are no notes."
    assert await run(session, "take_note", '{"text": " buy milk "}') == "I noted: buy milk."
    assert await run(session, "list_notes") == "There is one note: buy milk."
    assert await run(session, "list_notes", '{"words": "eggs"}') == "There is no such note."
    assert await run(session, "delete_note", '{"words": "eggs"}') == "There is no such note."
    deleted = "Deleted: buy milk. It can be brought back for a day."
    assert await run(session, "delete_note", '{"words": "milk"}') == deleted
    assert session.kept == []
    assert await run(session, "undo_delete_note") == "Brought back: buy milk."
    assert session.kept == ["buy milk"]
    assert await run(session, "undo_delete_note") == "No note was deleted within the last day."
    assert await run(session, "take_note", '{"text": " , "}') == "There is nothing to note."


async def test_of_several_notes_none_is_deleted_that_nobody_was_shown() -> None:
    session = Session("buy milk", "milk the goats")
    said = await run(session, "delete_note", '{"words": "milk"}')
    assert said == (
        "2 notes have these words: buy milk; milk the goats. None was deleted. Which one is meant?"
    )
    assert session.kept == ["buy milk", "milk the goats"]


async def test_no_more_notes_are_asked_about_than_can_be_shown() -> None:
    session = Session(*(f"note {number}" for number in range(MAX_LISTED + 3)))
    context = ToolContext(uuid4(), 7, "call_1", capabilities=session)  # type: ignore[arg-type]
    found = await registry.preview("delete_note", '{"words": "note"}', context, ["delete_note"])
    assert found is not None
    assert found.title == f"Delete these {MAX_LISTED} of {MAX_LISTED + 3} notes?"
    assert len(found.lines) == MAX_LISTED
    allowed = replace(context, preview=found, shown=True)
    said = await registry.run("delete_note", '{"words": "note"}', allowed, ["delete_note"])
    assert said.endswith(" They can be brought back for a day.")
    assert session.kept == [f"note {number}" for number in range(MAX_LISTED, MAX_LISTED + 3)]
    assert await registry.run("delete_note", '{"words": "note"}', allowed, ["delete_note"]) == (
        "Nothing was deleted: what was meant is not there any more."
    )


@pytest.mark.parametrize(
    ("text", "answer", "list_of_them"),
    [
        ("by milk,", "I noted: by milk.", "There is one note: by milk."),
        ("by milk,.", "I noted: by milk.", "There is one note: by milk."),
        ("Buy milk.", "I noted: Buy milk.", "There is one note: Buy milk."),
        ("Who has milk?", "I noted: Who has milk?", "There is one note: Who has milk."),
        ("milk (2 l)...", "I noted: milk (2 l).", "There is one note: milk (2 l)."),
    ],
)
async def test_a_note_is_told_as_one_sentence(text: str, answer: str, list_of_them: str) -> None:
    session = Session()
    assert await run(session, "take_note", json.dumps({"text": text})) == answer
    assert await run(session, "list_notes") == list_of_them


async def test_of_many_notes_the_first_are_told() -> None:
    session = Session(*(f"note {number}" for number in range(MAX_LISTED + 3)))
    told = await run(session, "list_notes")
    assert told.startswith(f"There are {MAX_LISTED + 3} notes: note 0; ")
    assert told.endswith(" and 3 more.")


def test_what_deletes_asks_first() -> None:
    assert registry.ask_first(["delete_note", "take_note", "set_timer"]) == {"delete_note"}


async def test_a_call_is_ended_or_handed_over() -> None:
    session = Session()
    assert await run(session, "hang_up") == "Goodbye. The call ends now."
    assert await run(session, "hand_over", '{"name": " grace "}') == "You are talking to GRACE now."
    assert session.done == ["hang up", "grace"]
