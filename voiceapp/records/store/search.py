"""Where something was said in a user's own earlier conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from voiceapp.records.display import inert
from voiceapp.records.models import Item, Session
from voiceapp.records.store.rows import storable
from voiceapp.records.threads import with_database

MAX_FOUND: Final = 5
MAX_WORDS: Final = 6
EXCERPT_CHARS: Final = 160


class Found(NamedTuple):
    """A conversation in which the words were said: when it was, its title, and the words around them."""

    started_at: datetime
    title: str
    excerpt: str


async def search(user_id: int, words: str, *, but: UUID) -> list[Found]:
    """Return a user's newest conversations, ``but`` the current one, in which one turn has all these words.

    At most ``MAX_FOUND`` conversations; the first ``MAX_WORDS`` words count.
    """
    # Not in the writing thread: records must not wait for a search.
    return await with_database(_search, user_id, words, but)


def _search(user_id: int, words: str, but: UUID) -> list[Found]:
    wanted = str(storable(words)).split()[:MAX_WORDS]
    if not wanted:
        return []
    said = Item.objects.filter(session__user_id=user_id, type="message", role__in=("user", "assistant"))
    said = said.exclude(session_id=but)
    for word in wanted:
        said = said.filter(generated_text__icontains=word)
    newest = Session.objects.filter(user_id=user_id, id__in=said.values("session_id")).with_first_words()
    found = []
    for session in newest[:MAX_FOUND]:
        item = said.filter(session=session).order_by("id").first()
        if item is not None:
            found.append(Found(session.started_at, session.title, _excerpt(item.generated_text, wanted[0])))
    return found


def _excerpt(text: str, word: str) -> str:
    plain = " ".join(inert(text).split())
    middle = max(0, plain.casefold().find(word.casefold()))
    start = max(0, min(middle - EXCERPT_CHARS // 2, len(plain) - EXCERPT_CHARS))
    piece = plain[start : start + EXCERPT_CHARS]
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT_CHARS < len(plain) else ''}"
