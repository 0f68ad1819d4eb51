"""Tools that need a session: timers that speak when they are due, notes, recalling, and the call itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Protocol

from msgspec import Meta

from voiceapp.language.punctuation import ended, tidied, without_end
from voiceapp.tools.capabilities import Capabilities, KeptNote
from voiceapp.tools.previews import Preview
from voiceapp.tools.registry import ToolContext, tool

MAX_TIMER_S = 24 * 3600
LONG_TIMER_S = 3600
_Label = Annotated[str, Meta(max_length=60, description="What it is for, such as tea; may be left out")]


@tool(timeout_s=5)
async def set_timer(
    seconds: Annotated[int, Meta(ge=1, le=MAX_TIMER_S, description="How long, in seconds")],
    context: ToolContext,
    label: _Label = "",
) -> str:
    """Set a timer. It returns at once; the user is told in this conversation when the time is over."""
    context.session.timers.start(label.strip(), seconds)
    over = context.now() + timedelta(seconds=seconds)
    # Of a short one people want to know how long, of a long one also until when.
    until = f" until {over:%H:%M}{_zone_name(context, over)}" if seconds >= LONG_TIMER_S else ""
    return f"The timer for {spoken_duration(seconds)}{_about(label)} is set{until}."


def _zone_name(context: ToolContext, moment: datetime) -> str:
    """Return the zone behind a time that is not the user's own."""
    return "" if context.zone is not None else f" {moment:%Z}"


@tool(timeout_s=5)
async def list_timers(context: ToolContext) -> str:
    """Tell which timers run, and how long each still takes."""
    running = context.session.timers.running()
    if not running:
        return "No timer is running."
    listed = [f"{spoken_duration(timer.left_s)} left{_about(timer.label)}" for timer in running]
    return f"{len(running)} timer{'s run' if len(running) > 1 else ' runs'}: {'; '.join(listed)}."


@tool(timeout_s=5)
async def cancel_timer(context: ToolContext, label: _Label = "") -> str:
    """Cancel the timer with this label, or all timers where none is given."""
    stopped = context.session.timers.cancel(label.strip())
    if not stopped:
        return "There is no such timer." if label.strip() else "No timer is running."
    return f"{len(stopped)} timers were cancelled." if len(stopped) > 1 else "The timer was cancelled."


def spoken_duration(seconds: float) -> str:
    """Return a duration as people say it, in whole seconds: "1 hour and 5 minutes"."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    if not parts:
        return "less than a second"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _about(label: str) -> str:
    return f" for {without_end(label.strip())}" if label.strip() else ""


MAX_NOTE_CHARS = 1000


MAX_LISTED = 20
"""Notes that are told at once, and that are deleted at once: as many as a question can show."""


_Words = Annotated[str, Meta(max_length=200, description="Words that stand in the note")]


@tool(timeout_s=10)
async def take_note(
    text: Annotated[str, Meta(min_length=1, max_length=MAX_NOTE_CHARS, description="What to keep")],
    context: ToolContext,
) -> str:
    """Keep a note for the user, who finds it again in later conversations."""
    # A transcript may end in a comma, and a note may be one word.
    note = tidied(text)
    if not note:
        return "There is nothing to note."
    await context.session.notes.save(note)
    return ended(f"I noted: {note}")


@tool(timeout_s=10)
async def list_notes(context: ToolContext, words: _Words = "") -> str:
    """Tell the user's notes, all of them or those with these words."""
    found = await context.session.notes.find(words.strip())
    if not found:
        return "There is no such note." if words.strip() else "There are no notes."
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    count = "is one note" if len(found) == 1 else f"are {len(found)} notes"
    return f"There {count}: {_spoken(found[:MAX_LISTED])}{more}."


def _spoken(notes: Sequence[KeptNote]) -> str:
    return "; ".join(without_end(note.text) for note in notes)


class _Wanted(Protocol):
    words: str


async def notes_to_delete(arguments: _Wanted, capabilities: Capabilities) -> Preview | None:
    """Return which notes ``delete_note`` would delete, ``None`` where there is none."""
    words = arguments.words.strip()
    found = await capabilities.notes.find(words) if words else []
    chosen = tuple(found[:MAX_LISTED])
    if not chosen:
        return None
    of_all = f" of {len(found)}" if len(found) > len(chosen) else ""
    asked = "this note" if len(chosen) == 1 else f"these {len(chosen)}{of_all} notes"
    return Preview(f"Delete {asked}?", tuple(note.text for note in chosen), chosen)


@tool(timeout_s=10, needs_approval=True, preview=notes_to_delete)
async def delete_note(
    words: Annotated[str, Meta(min_length=1, max_length=200, description="Words that stand in the note")],
    context: ToolContext,
) -> str:
    """Delete the user's note that has these words. Where several have them the user is shown them first."""
    chosen: tuple[KeptNote, ...] = context.preview.chosen if context.preview is not None else ()
    if not chosen:
        return "There is no such note."
    if len(chosen) > 1 and not context.shown:
        # Nobody has seen which ones these are.
        return (
            f"{len(chosen)} notes have these words: {_spoken(chosen)}. None was deleted. Which one is meant?"
        )
    deleted = await context.session.notes.delete(chosen)
    if not deleted:
        return "Nothing was deleted: what was meant is not there any more."
    gone = len(chosen) - len(deleted)
    missing = f" {gone} of them {'was' if gone == 1 else 'were'} not there any more." if gone else ""
    it = "It" if len(deleted) == 1 else "They"
    return f"Deleted: {_spoken(deleted)}.{missing} {it} can be brought back for a day."


@tool(timeout_s=10)
async def undo_delete_note(context: ToolContext) -> str:
    """Bring back the notes that the user deleted last, within a day."""
    restored = await context.session.notes.restore()
    if not restored:
        return "No note was deleted within the last day."
    return f"Brought back: {_spoken(restored)}."


@tool(timeout_s=15)
async def search_conversations(
    words: Annotated[str, Meta(min_length=1, max_length=200, description="Words that were said")],
    context: ToolContext,
) -> str:
    """Search the user's own earlier conversations for words that were said in them."""
    found = await context.session.past.search(words.strip())
    if not found:
        return f"Nothing was said about {without_end(words.strip())} in earlier conversations."
    spoken = " ".join(f"On {one.day}: {one.excerpt}" for one in found)
    return f"{len(found)} conversation{'s' if len(found) > 1 else ''} found. {spoken}"


@tool(timeout_s=5)
async def hang_up(context: ToolContext) -> str:
    """End the call when the user is done. Say goodbye in one sentence; the call ends once that was heard."""
    context.session.call.end_after_answer()
    return "Goodbye. The call ends now."


@tool(timeout_s=10)
async def hand_over(
    name: Annotated[str, Meta(min_length=1, max_length=100, description="The other assistant's name")],
    context: ToolContext,
) -> str:
    """Hand this conversation over to another assistant whom the user asks for by name."""
    taken_over_by = await context.session.call.hand_over(name.strip())
    return f"You are talking to {taken_over_by} now."
