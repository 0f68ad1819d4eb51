"""Items as the service tells of them."""

from __future__ import annotations

import json

import pytest

from tests.parts.relay_talk import conversation, saved, tell
from voiceapp.conversation.actions import Save
from voiceapp.conversation.items import Items
from voiceapp.conversation.records import ItemRecord
from voiceapp.types import JsonObject


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


def test_a_spoken_turn_starts_when_speech_does() -> None:
    talk = conversation()
    tell(talk, {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}, now=1000)
    tell(talk, {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 2, "item_id": "u"}, now=3000)
    item = {"id": "u", "type": "message", "role": "user", "status": "completed"}
    tell(talk, {"type": "conversation.item.added", "item": item}, now=3001)
    done = tell(talk, {"type": "conversation.item.done", "item": item}, now=3002)
    [record] = saved(done, ItemRecord)
    assert (record.started_ms, record.ended_ms) == (1000, 3002)


def test_a_transcript_that_never_comes_fails_after_fifteen_seconds() -> None:
    talk = conversation()
    item = {"id": "u", "type": "message", "role": "user", "status": "completed"}
    item["content"] = [{"type": "input_audio", "transcript": None}]  # type: ignore[assignment]
    tell(talk, {"type": "conversation.item.done", "item": item}, now=1000)
    assert talk.tick(15_999) == []
    [record] = saved(talk.tick(16_000), ItemRecord)
    assert record.transcript_status == "failed"
    assert talk.tick(60_000) == []


@pytest.mark.parametrize(
    "odd",
    [
        {"extra": "x" * 1_000_000},
        {"id": "i", "name": "n" * 100_000},
        {"content": [{"type": "output_text", "text": "w" * 100_000, "more": []}]},
    ],
)
def test_of_an_item_that_is_too_large_what_it_is_and_its_words_are_kept(odd: JsonObject) -> None:
    items = Items(captions=True)
    item = items.note({"id": "i", "type": "message", "role": "assistant", **odd}, None, 0)
    assert len(json.dumps(item.record().raw)) < 1_000
    assert item.record().raw["type"] == "message"
    assert len(item.generated_text) in (0, 100_000)
