"""Records, and a session to keep them in."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from voiceapp.conversation.records import ItemRecord
from voiceapp.records.store import store


def item(name: str, previous: str | None = None, **fields: Any) -> ItemRecord:
    """Return a user's message."""
    values: dict[str, Any] = {"type": "message", "role": "user", "raw": {"id": name}, **fields}
    return ItemRecord(item_id=name, previous_item_id=previous, **values)


async def opened(user: User) -> UUID:
    return (await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")).session_id
