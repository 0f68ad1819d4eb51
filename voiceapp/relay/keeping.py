"""Handing what is to be kept of a session to the store."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from voiceapp import actions
from voiceapp.actions import SendBrowser, notice
from voiceapp.errors import VoiceAppError
from voiceapp.records import store

logger = logging.getLogger(__name__)

Kept = actions.KeptItem | actions.SaveResponse | actions.SaveToolCall

_RECORDS: dict[type[Any], tuple[type[Any], Any]] = {
    actions.KeptItem: (store.ItemRecord, store.Writer.save_item),
    actions.SaveResponse: (store.ResponseRecord, store.Writer.save_response),
    actions.SaveToolCall: (store.ToolCallRecord, store.Writer.save_tool_call),
}


def keep(writer: store.Writer, session_id: UUID, kept: Kept) -> SendBrowser | None:
    """Have something kept; return what the page is told where it cannot be."""
    kind, save = _RECORDS[type(kept)]
    record = kind(**{name: getattr(kept, name) for name in kind.__struct_fields__})
    try:
        save(writer, session_id, record)
    except VoiceAppError as error:
        logger.error("session %s: a record could not be kept (%s)", session_id, error.code)
        return notice("not_kept", "This conversation cannot be kept at the moment.", "warning")
    return None
