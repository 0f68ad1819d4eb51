"""What was said before a session began, or went on here: for the service, and for the page to show."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.conversation import history
from voiceapp.conversation.actions import SendBrowser
from voiceapp.conversation.records import ItemRecord
from voiceapp.protocol.page import EarlierItem, SessionHistory
from voiceapp.records.store.entries import Passage


def records(passages: Sequence[Passage]) -> list[ItemRecord]:
    """Return the items, oldest first."""
    return [record for passage in passages for record in passage.items]


def owes_answer(passages: Sequence[Passage]) -> bool:
    """Whether the last that was said still waits for its answer.

    A call without its output does not: it may have had its effect, and would be made again.
    """
    for item in reversed(passages[-1].items if passages else ()):
        if not _unheard(item):
            asked = item.type == "message" and item.role in ("user", "system")
            return (asked and bool(item.generated_text.strip())) or item.type == "function_call_output"
    return False


def _unheard(item: ItemRecord) -> bool:
    """Whether it is an answer of which nothing was heard."""
    heard = item.generated_text if item.heard_text is None else item.heard_text
    return item.type == "message" and item.role == "assistant" and not heard.strip()


def history_messages(passages: Sequence[Passage], *, same_session: bool = False) -> list[SendBrowser]:
    """Return ``session.history`` for the page: messages of both sides, the newest that fit; nothing if none.

    ``same_session``: they were said in this very session, elsewhere.
    """
    shown: list[EarlierItem] = []
    room = history.HISTORY_CHARS
    for passage in reversed(passages):
        for record in reversed(passage.items):
            if record.type != "message" or record.role not in ("user", "assistant"):
                continue
            if record.role == "assistant" and not record.generated_text.strip():
                continue
            room -= len(record.generated_text)
            if room < 0:
                return [_event(shown, same_session)]
            shown.append(_shown(record, passage.assistant))
    return [_event(shown, same_session)] if shown else []


def _shown(record: ItemRecord, speaker: str) -> EarlierItem:
    return EarlierItem(
        item_id=record.item_id,
        previous_item_id=record.previous_item_id,
        role=record.role,
        generated_text=record.generated_text,
        heard_text=record.heard_text,
        cut_ms=record.cut_ms,
        transcript_status=record.transcript_status,
        modality=record.modality,
        text=record.generated_text,
        speaker=record.speaker or speaker,
    )


def _event(newest_first: list[EarlierItem], same_session: bool) -> SendBrowser:
    return SendBrowser(SessionHistory(same_session=same_session, items=newest_first[::-1]))
