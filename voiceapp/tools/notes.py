"""Notes that the user keeps."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from voiceapp.tools.registry import ToolContext, tool

MAX_NOTE_CHARS = 1000
MAX_LISTED = 20
_Words = Annotated[str, Meta(max_length=200, description="Words that stand in the note")]


@tool(timeout_s=10)
async def take_note(
    text: Annotated[str, Meta(min_length=1, max_length=MAX_NOTE_CHARS, description="What to keep")],
    context: ToolContext,
) -> str:
    """Keep a note for the user, who finds it again in later conversations."""
    await context.session.notes.save(text.strip())
    return f"I noted: {_sentence(text)}"


@tool(timeout_s=10)
async def list_notes(context: ToolContext, words: _Words = "") -> str:
    """Tell the user's notes, all of them or those with these words."""
    found = await context.session.notes.find(words.strip())
    if not found:
        return "There is no such note." if words.strip() else "There are no notes."
    told = "; ".join(found[:MAX_LISTED])
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    count = "is one note" if len(found) == 1 else f"are {len(found)} notes"
    return f"There {count}: {told}{more}."


@tool(timeout_s=10, needs_approval=True)
async def delete_note(
    words: Annotated[str, Meta(min_length=1, max_length=200, description="Words that stand in the note")],
    context: ToolContext,
) -> str:
    """Delete the user's notes that have these words."""
    deleted = await context.session.notes.delete(words.strip())
    if not deleted:
        return "There is no such note."
    return f"Deleted: {'; '.join(deleted[:MAX_LISTED])}."


def _sentence(text: str) -> str:
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?")) else f"{stripped}."
