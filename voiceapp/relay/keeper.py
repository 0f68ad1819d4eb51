"""Hands what a session is to keep to the records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from voiceapp.conversation.actions import FinishedCall, FinishedResponse, KeptItem, SendBrowser, notice
from voiceapp.errors import VoiceAppError
from voiceapp.records.store import store

logger = logging.getLogger(__name__)


class Keeper:
    """The records of one session; ``tell`` reaches its page where they cannot be kept."""

    def __init__(self, session_id: UUID, tell: Callable[[SendBrowser], None]) -> None:
        self._session_id = session_id
        self._tell = tell
        self._writer = store.writer()

    def keep(self, kept: KeptItem | FinishedResponse | FinishedCall) -> None:
        """Keep an item, a response or a call as it is now; never waits and never raises."""
        try:
            match kept:
                case KeptItem():
                    # It may change while the record waits to be written.
                    now = {name: getattr(kept, name) for name in store.ItemRecord.__struct_fields__}
                    self._writer.save_item(self._session_id, store.ItemRecord(**now))
                case FinishedResponse():
                    self._writer.save_response(self._session_id, kept)
                case FinishedCall():
                    self._writer.save_tool_call(self._session_id, kept)
        except VoiceAppError as error:
            logger.error("session %s: a record could not be kept (%s)", self._session_id, error.code)
            self._tell(notice("not_kept", "This conversation cannot be kept at the moment.", "warning"))
