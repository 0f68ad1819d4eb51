"""What is handed to the store. Pure data, no database."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.records import ItemRecord

MODEL_LENGTH: Final = 200
"""Characters of a model's name that are kept."""
MAX_USED: Final = 10_000_000
"""Tokens that one request can have used, whatever a service says."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """What was said in one session, in order, with the name of its assistant."""

    assistant: str
    items: tuple[ItemRecord, ...]


class OpenedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was just begun, and the assistant that it runs with.

    ``earlier`` is what was said before it, oldest first, where it continues another conversation. One that
    was taken over from another process has ``taken_over_ms``, the time since it began, and its own items as
    the last of ``earlier``. ``time_zone`` is the user's, empty where it is not known.
    """

    session_id: UUID
    assistant: AssistantConfig
    earlier: tuple[Passage, ...] = ()
    taken_over_ms: int | None = None
    time_zone: str = ""
