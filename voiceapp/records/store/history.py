"""What was said before: a session's items in order, and those of the sessions that it continues. Blocks."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from voiceapp.conversation.history import HISTORY_CHARS
from voiceapp.conversation.records import ItemRecord, in_order
from voiceapp.errors import Refusal
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import Item, Session
from voiceapp.records.store.entries import Passage

MAX_PASSAGES: Final = 50
"""Sessions of one conversation that are looked through; what is older would hardly fit anyway."""


def own_session(session_id: UUID, user_id: int) -> Session:
    """Return a user's own session.

    Raises ``VoiceAppError`` with the code ``session_not_found`` where it is unknown or somebody else's.
    """
    found = Session.objects.filter(id=session_id, user_id=user_id).first()
    if found is None:
        raise Refusal("session_not_found", "There is no such session.", close_code=CloseCode.NOT_FOUND)
    return found


def items(session_id: UUID) -> list[ItemRecord]:
    """Return a session's items in the conversation's order."""
    rows = Item.objects.filter(session_id=session_id).order_by("id").values(*ItemRecord.__struct_fields__)
    return in_order([ItemRecord(**row) for row in rows])


def passages(last: Session) -> tuple[Passage, ...]:
    """Return what was said in ``last`` and in the sessions that it continues, oldest first.

    Looks back until there is as much as a service is given (``HISTORY_CHARS``).
    """
    found: list[Passage] = []
    room = HISTORY_CHARS
    session: Session | None = last
    while session is not None and room > 0 and len(found) < MAX_PASSAGES:
        said = tuple(items(session.id))
        found.append(Passage(assistant=session.assistant_name, items=said))
        room -= sum(len(item.generated_text) for item in said)
        before = session.continued_from_id
        session = Session.objects.filter(id=before, user_id=last.user_id).first() if before else None
    return tuple(reversed(found))
