"""What is handed to the store, and the order of a conversation's items. Pure data, no database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar
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
    the last of ``earlier``.
    """

    session_id: UUID
    assistant: AssistantConfig
    earlier: tuple[Passage, ...] = ()
    taken_over_ms: int | None = None


class _Linked(Protocol):
    @property
    def item_id(self) -> str: ...
    @property
    def previous_item_id(self) -> str | None: ...


_L = TypeVar("_L", bound=_Linked)


def in_order(items: Iterable[_L]) -> list[_L]:
    """Return items, given in the order in which they were first seen, in the conversation's order.

    Each follows the item that its ``previous_item_id`` names; of several with the same one, the first seen
    comes first. Items whose predecessor is unknown begin a stretch of their own at the end of what is
    known before them; no item is lost, whatever the links say.
    """
    seen = list(items)
    known = {item.item_id for item in seen}
    followers: defaultdict[str | None, list[_L]] = defaultdict(list)
    for item in seen:
        previous = item.previous_item_id
        followers[previous if previous in known and previous != item.item_id else None].append(item)
    ordered: list[_L] = []
    placed: set[str] = set()
    # The links form trees; items that are left over after them form rings, which are cut at the first seen.
    for start in (*followers.pop(None, ()), *seen):
        stack = [start]
        while stack:
            item = stack.pop()
            if item.item_id in placed:
                continue
            placed.add(item.item_id)
            ordered.append(item)
            stack.extend(reversed(followers.get(item.item_id, ())))
    return ordered
