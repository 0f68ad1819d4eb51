"""Hands what a session is to keep to the records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from voiceapp.conversation import actions
from voiceapp.conversation.actions import SendBrowser, notice
from voiceapp.errors import VoiceAppError
from voiceapp.records import store

logger = logging.getLogger(__name__)

_RECORDS: dict[type[Any], tuple[type[Any], Any]] = {
    actions.KeptItem: (store.ItemRecord, store.Writer.save_item),
    actions.SaveResponse: (store.ResponseRecord, store.Writer.save_response),
    actions.SaveToolCall: (store.ToolCallRecord, store.Writer.save_tool_call),
}


class Keeper:
    """The records of one session; ``tell`` reaches its page where they cannot be kept."""

    def __init__(self, session_id: UUID, tell: Callable[[SendBrowser], None]) -> None:
        self._session_id = session_id
        self._tell = tell
        self._writer = store.writer()

    def keep(self, kept: actions.KeptItem | actions.SaveResponse | actions.SaveToolCall) -> None:
        """Keep an item, a response or a call as it is now; never waits and never raises."""
        kind, save = _RECORDS[type(kept)]
        record = kind(**{name: getattr(kept, name) for name in kind.__struct_fields__})
        try:
            save(self._writer, self._session_id, record)
        except VoiceAppError as error:
            logger.error("session %s: a record could not be kept (%s)", self._session_id, error.code)
            self._tell(notice("not_kept", "This conversation cannot be kept at the moment.", "warning"))
