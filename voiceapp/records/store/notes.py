"""The users' notes: kept, found and deleted, each user's own only."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from voiceapp.errors import VoiceAppError
from voiceapp.records.models import Note
from voiceapp.records.store.rows import storable
from voiceapp.records.store.writer import writer
from voiceapp.tools.shipped.session import MAX_NOTE_CHARS

MAX_NOTES: Final = 200
"""Notes that one user may have; all of them are looked through when one is asked for."""


async def save(user_id: int, text: str) -> None:
    """Keep a note. Raises ``VoiceAppError`` with the code ``too_many_notes`` or ``note_too_long``."""
    if len(text) > MAX_NOTE_CHARS:
        raise VoiceAppError(f"A note may have {MAX_NOTE_CHARS} characters.", code="note_too_long")
    await writer().call(lambda: _save(user_id, text))


def _save(user_id: int, text: str) -> None:
    with transaction.atomic():
        if Note.objects.filter(user_id=user_id).count() >= MAX_NOTES:
            raise VoiceAppError(
                f"There are {MAX_NOTES} notes already; delete some first.", code="too_many_notes"
            )
        Note.objects.create(user_id=user_id, text=storable(text))


async def find(user_id: int, words: str) -> list[str]:
    """Return a user's notes that have all these words, the newest first."""
    return await writer().call(lambda: [note.text for note in _with(user_id, words)])


async def delete(user_id: int, words: str) -> list[str]:
    """Delete a user's notes that have all these words, and return them; without words, none."""
    return await writer().call(lambda: _delete(user_id, words))


def _delete(user_id: int, words: str) -> list[str]:
    if not words.split():
        return []
    with transaction.atomic():
        found = _with(user_id, words)
        Note.objects.filter(id__in=[note.pk for note in found]).delete()
    return [note.text for note in found]


def _with(user_id: int, words: str) -> list[Note]:
    wanted = words.casefold().split()
    own = Note.objects.filter(user_id=user_id)[:MAX_NOTES]
    return [note for note in own if all(word in note.text.casefold() for word in wanted)]
