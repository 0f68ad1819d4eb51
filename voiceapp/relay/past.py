"""What was said before a session began, or went on here: for the service, and for the page to show."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp import session_config
from voiceapp.actions import KeptItem, SendBrowser, to_browser
from voiceapp.protocol.events import Object
from voiceapp.records.store import ItemRecord, Passage

_SHARED = ("item_id", "previous_item_id", "role", "generated_text", "heard_text", "cut_ms",
           "transcript_status", "modality")  # fmt: skip


def kept_items(passages: Sequence[Passage]) -> list[KeptItem]:
    """Return the items as a conversation knows them, oldest first."""
    return [_kept(record) for passage in passages for record in passage.items]


def _kept(record: ItemRecord) -> KeptItem:
    fields = {name: getattr(record, name) for name in ItemRecord.__struct_fields__ if name != "raw"}
    item = KeptItem(**{**fields, "raw": record.raw})
    # The name, the id and the arguments of a call stand only in what the service said of it.
    item.name = str(record.raw.get("name") or "")
    item.call_id = str(record.raw.get("call_id") or "")
    item.arguments = str(record.raw.get("arguments") or "")
    return item


def told(passages: Sequence[Passage]) -> list[SendBrowser]:
    """Return ``session.history`` for the page: messages of both sides, the newest that fit; nothing if none.

    Its ``items`` have ``item_id``, ``previous_item_id``, ``role``, ``text``, ``heard_text``, ``cut_ms``,
    ``transcript_status``, ``modality`` and ``speaker``, the assistant's name.
    """
    shown: list[Object] = []
    room = session_config.HISTORY_CHARS
    for passage in reversed(passages):
        for record in reversed(passage.items):
            if record.type != "message" or record.role not in ("user", "assistant"):
                continue
            room -= len(record.generated_text)
            if room < 0:
                return [_event(shown)]
            shown.append(_shown(record, passage.assistant))
    return [_event(shown)] if shown else []


def _shown(record: ItemRecord, speaker: str) -> Object:
    fields = {name: getattr(record, name) for name in _SHARED}
    return {**fields, "text": fields.pop("generated_text"), "speaker": speaker}


def _event(newest_first: list[Object]) -> SendBrowser:
    return to_browser({"type": "session.history", "items": newest_first[::-1]})
