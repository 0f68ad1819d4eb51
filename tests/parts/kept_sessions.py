"""Sessions that are over, as tests want them kept."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from voiceapp.conversation.records import ItemRecord
from voiceapp.records.store import store
from voiceapp.records.store.writer import writer


def kept(user: User, *items: ItemRecord, ended: bool = True, recording: Path | None = None) -> UUID:
    """Keep a session with these items."""

    async def keep() -> UUID:
        opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
        for item in items:
            writer().save_item(opened.session_id, item)
        await writer().flush()
        if ended:
            await store.close_session(
                opened.session_id, reason="hung_up", expected=True, duration_ms=65_000, recording=recording
            )
        return opened.session_id

    return async_to_sync(keep)()
