"""Items as the service tells of them."""

from __future__ import annotations

from voiceapp.conversation.actions import Save
from voiceapp.conversation.items import Items
from voiceapp.conversation.records import ItemRecord


def test_an_item_that_is_done_without_a_status_is_complete() -> None:
    items = Items(captions=True)
    output = {"id": "i1", "type": "function_call_output", "call_id": "c1", "output": "5"}
    items.note(output, None, 10)
    [saved] = items.done(output, None, 20)
    assert isinstance(saved, Save)
    assert isinstance(saved.record, ItemRecord)
    assert saved.record.status == "completed"
    # The session's end changes nothing about it.
    assert items.finish(30) == []


def test_an_item_that_is_still_growing_at_the_end_is_incomplete() -> None:
    items = Items(captions=True)
    items.note({"id": "i1", "type": "message", "role": "assistant", "status": "in_progress"}, None, 10)
    [saved] = items.finish(30)
    assert isinstance(saved, Save)
    assert isinstance(saved.record, ItemRecord)
    assert (saved.record.status, saved.record.ended_ms) == ("incomplete", 30)
