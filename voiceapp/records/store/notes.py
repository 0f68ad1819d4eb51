"""The users' notes: kept, found, deleted and brought back, each user's own only.

A note that was deleted is nobody's to find any more. It is erased once it can no longer be brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from voiceapp.errors import VoiceAppError
from voiceapp.language.words import has_words, words_in
from voiceapp.records.models import Note
from voiceapp.records.store.rows import storable
from voiceapp.records.store.writer import writer
from voiceapp.tools.capabilities import KeptNote
from voiceapp.tools.shipped.session import MAX_NOTE_CHARS

MAX_NOTES: Final = 200
"""Notes that one user may have; all of them are looked through when one is asked for."""
MAX_DELETED: Final = 200
"""Deleted notes of one user that can be brought back, the last ones."""
DELETED_FOR: Final = timedelta(days=1)
"""How long a deleted note can be brought back; ``tools/shipped/session.py`` says so."""


async def save(user_id: int, text: str) -> None:
    """Keep a note. Raises ``VoiceAppError`` with the code ``too_many_notes`` or ``note_too_long``."""
    if len(text) > MAX_NOTE_CHARS:
        raise VoiceAppError(f"A note may have {MAX_NOTE_CHARS} characters.", code="note_too_long")
    await writer().call(lambda: _save(user_id, text))


def _save(user_id: int, text: str) -> None:
    with transaction.atomic():
        _refuse_more_than(user_id, MAX_NOTES - 1)
        Note.objects.create(user_id=user_id, text=storable(text))


def _refuse_more_than(user_id: int, most: int) -> None:
    if _kept(user_id).count() > most:
        raise VoiceAppError(f"A user may have {MAX_NOTES} notes; delete some first.", code="too_many_notes")


async def find(user_id: int, words: str) -> list[KeptNote]:
    """Return a user's notes that have all these words (``has_words``), the newest first; without words, all.

    What is asked for without a letter or a digit in it is in none.
    """
    return await writer().call(lambda: _with(user_id, words))


def _with(user_id: int, words: str) -> list[KeptNote]:
    if words.strip() and not words_in(words):
        return []
    own = _kept(user_id)[:MAX_NOTES]
    return [KeptNote(note.pk, note.text) for note in own if has_words(note.text, words)]


def _kept(user_id: int) -> QuerySet[Note]:
    return Note.objects.filter(user_id=user_id, deleted_at=None)


async def delete(user_id: int, notes: Sequence[KeptNote]) -> list[KeptNote]:
    """Delete these notes of a user's, and return them; one that is gone, or says something else, is left."""
    return await writer().call(lambda: _delete(user_id, notes))


def _delete(user_id: int, notes: Sequence[KeptNote]) -> list[KeptNote]:
    with transaction.atomic():
        texts = dict(_kept(user_id).filter(id__in=[note.note_id for note in notes]).values_list("id", "text"))
        found = [note for note in notes if texts.get(note.note_id) == note.text]
        _kept(user_id).filter(id__in=[note.note_id for note in found]).update(deleted_at=timezone.now())
        deleted = Note.objects.filter(user_id=user_id, deleted_at__isnull=False).order_by(
            "-deleted_at", "-id"
        )
        Note.objects.filter(id__in=list(deleted.values_list("id", flat=True)[MAX_DELETED:])).delete()
    return found


async def restore(user_id: int) -> list[KeptNote]:
    """Bring back what a user deleted last, all that was deleted at once, and return it.

    Raises ``VoiceAppError`` with the code ``too_many_notes`` where there is no room for it.
    """
    return await writer().call(lambda: _restore(user_id))


def _restore(user_id: int) -> list[KeptNote]:
    with transaction.atomic():
        since = timezone.now() - DELETED_FOR
        deleted = Note.objects.filter(user_id=user_id, deleted_at__gt=since)
        last = deleted.aggregate(last=Max("deleted_at"))["last"]
        notes = list(deleted.filter(deleted_at=last))
        _refuse_more_than(user_id, MAX_NOTES - len(notes))
        Note.objects.filter(id__in=[note.pk for note in notes]).update(deleted_at=None)
    return [KeptNote(note.pk, note.text) for note in notes]


def erase_deleted() -> int:
    """Erase everybody's notes that can no longer be brought back; return how many those were. Blocks."""
    erased, _ = Note.objects.filter(deleted_at__lte=timezone.now() - DELETED_FOR).delete()
    return erased
