"""What a conversation hands over to be kept: items in their order, responses and calls of tools; pure.

Times are milliseconds on the session's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from voiceapp.types import JsonObject


class ItemRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the conversation; a later record of the same item replaces the earlier.

    ``generated_text`` is all that was said, typed or generated; ``heard_text`` what was heard of it where
    playback was cut at ``cut_ms``, else ``None``. ``transcript_status`` of spoken input is ``pending``,
    ``completed``, ``failed``, or ``doubtful`` where the user committed what holds no speech. ``raw`` is the
    service's item without its sound. ``speaker`` is the name of the assistant whose item it is, empty for the
    user's and where it is not known.
    """

    item_id: str
    previous_item_id: str | None
    type: str
    role: str = ""
    status: str = ""
    response_id: str = ""
    generated_text: str = ""
    heard_text: str | None = None
    cut_ms: int | None = None
    transcript_status: str = ""
    modality: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    raw: dict[str, Any]
    speaker: str = ""


class ResponseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is over. ``latency_ms``: from the end of speech to the first audio sent."""

    response_id: str
    status: str
    status_details: JsonObject | None = None
    usage: JsonObject | None = None
    metadata: JsonObject | None = None
    latency_ms: int | None = None


class ToolCallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is over; ``arguments`` is the model's raw text, valid JSON or not."""

    call_id: str
    item_id: str = ""
    name: str
    arguments: str = ""
    output: str = ""
    status: str = ""
    started_ms: int = 0
    ended_ms: int = 0


Record: TypeAlias = ItemRecord | ResponseRecord | ToolCallRecord


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
