"""What each event of the Realtime service does, in each state of the conversation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import get_args

import pytest

from tests.parts.relay_talk import conversation, saved, shown, tell, upstream
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import SendBrowser
from voiceapp.conversation.calls.mcp import McpEvent
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.items import TextEvent
from voiceapp.conversation.lifecycle import State
from voiceapp.conversation.records import ItemRecord, ResponseRecord
from voiceapp.conversation.server_events import HANDLERS
from voiceapp.protocol.dialects import Dialect
from voiceapp.protocol.events import ServerEvent
from voiceapp.types import JsonObject

STARTED = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}


def response(name: str = "r", **fields: object) -> JsonObject:
    return {"id": name, "conversation_id": "c", **fields}


def audio(item: str = "i", name: str = "r") -> JsonObject:
    where = {"response_id": name, "item_id": item, "output_index": 0, "content_index": 0}
    return {"type": "response.output_audio.delta", **where, "delta": "AAAA"}


def test_the_table_knows_states_and_events_of_the_service_alone() -> None:
    assert HANDLERS.keys() == set(State)
    assert HANDLERS[State.ENDED] == {}
    ready = HANDLERS[State.READY]
    assert {*get_args(TextEvent), *get_args(McpEvent)} <= ready.keys()
    assert all(issubclass(kind, ServerEvent) for kind in ready)


def test_an_event_that_means_nothing_here_goes_to_the_page_as_it_came() -> None:
    talk = conversation()
    event = {"type": "rate_limits.updated", "rate_limits": []}
    assert tell(talk, event) == [SendBrowser("{}")]
    assert tell(talk, {"type": "some.event.of.tomorrow"}) == [SendBrowser("{}")]
    talk.finish(0)
    assert tell(talk, event) == []


def test_the_users_speech_cuts_what_is_played() -> None:
    talk = conversation()
    tell(talk, {"type": "response.created", "response": response()})
    tell(talk, audio())
    cut = [event for event in shown(tell(talk, STARTED)) if event.get("type") == "audio.cut"]
    assert cut == [{"type": "audio.cut", "item_id": "i", "response_id": "r"}]
    # What the service had sent before it noticed is not heard any more.
    assert tell(talk, audio()) == []


def test_where_speech_interrupts_nothing_the_answer_goes_on() -> None:
    talk = conversation()
    turns = {"type": "server_vad", "interrupt_response": False}
    tell(talk, {"type": "session.updated", "session": {"audio": {"input": {"turn_detection": turns}}}})
    tell(talk, {"type": "response.created", "response": response()})
    tell(talk, audio())
    assert "audio.cut" not in [event.get("type") for event in shown(tell(talk, STARTED))]
    assert tell(talk, audio()) != []


def test_the_first_sound_of_an_answer_tells_how_long_it_took() -> None:
    talk = conversation()
    tell(talk, STARTED)
    tell(talk, {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 2, "item_id": "u"}, now=1000)
    tell(talk, {"type": "response.created", "response": response()}, now=1100)
    tell(talk, audio(), now=1250)
    tell(talk, audio(), now=1500)
    done = tell(talk, {"type": "response.done", "response": response(status="completed")}, now=2000)
    [record] = saved(done, ResponseRecord)
    assert (record.response_id, record.status, record.latency_ms) == ("r", "completed", 250)


def test_an_answer_that_failed_is_kept_and_said_in_a_sentence() -> None:
    talk = conversation()
    tell(talk, {"type": "response.created", "response": response()})
    details = {"type": "failed", "error": {"code": "insufficient_quota", "message": "…"}}
    done = tell(
        talk, {"type": "response.done", "response": response(status="failed", status_details=details)}
    )
    notices = [event for event in shown(done) if event.get("type") == "notice"]
    assert [event["code"] for event in notices] == ["response_failed"]
    [record] = saved(done, ResponseRecord)
    assert record.status == "failed"


@pytest.mark.parametrize("code", ["response_cancel_not_active", "session_expired"])
def test_errors_that_concern_the_relay_alone_are_not_shown(code: str) -> None:
    assert tell(conversation(), {"type": "error", "error": {"code": code, "message": "x"}}) == []


def test_an_error_about_the_pages_own_event_is_shown() -> None:
    error = {"code": "invalid_value", "message": "x", "event_id": "page_1"}
    assert tell(conversation(), {"type": "error", "error": error}) == [SendBrowser("{}")]


def test_an_earlier_item_that_a_new_connection_echoes_is_not_shown_again() -> None:
    talk = conversation()
    said = {"id": "m", "type": "message", "role": "user", "status": "completed",
            "content": [{"type": "input_text", "text": "Hi"}]}  # fmt: skip
    tell(talk, {"type": "conversation.item.done", "item": said})
    talk.disconnected(0)
    given = upstream(tell(talk, {"type": "session.created", "session": {}}))
    assert "m" in [event.get("item", {}).get("id") for event in given]
    assert tell(talk, {"type": "conversation.item.added", "item": said}) == []
    assert tell(talk, {"type": "conversation.item.done", "item": said}) == []
    # What comes of it later is news again.
    assert tell(talk, {"type": "conversation.item.done", "item": said}) != []


def test_a_transcript_is_kept_and_shown() -> None:
    talk = conversation()
    spoken = {"id": "u", "type": "message", "role": "user", "content": [{"type": "input_audio"}]}
    tell(talk, {"type": "conversation.item.done", "item": spoken})
    kind = "conversation.item.input_audio_transcription.completed"
    heard = tell(talk, {"type": kind, "item_id": "u", "content_index": 0, "transcript": "Hello."})
    [record] = saved(heard, ItemRecord)
    assert (record.generated_text, record.transcript_status) == ("Hello.", "completed")
    assert SendBrowser("{}") in heard


TEXT = {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}}


def outputs(actions: Iterable[object]) -> list[object]:
    return [event["audio"] for event in shown(actions) if event.get("type") == "session.output_changed"]


def test_answers_are_written_once_the_service_says_so() -> None:
    talk = conversation()
    [asked] = upstream(talk.speak_answers(on=False))
    assert {name: asked[name] for name in TEXT} == TEXT
    # The service's word on something else comes first, and is no word on this.
    assert outputs(tell(talk, {"type": "session.updated", "session": {"output_modalities": ["audio"]}})) == []
    updated = {"type": "session.updated", "session": {"output_modalities": ["text"]}}
    assert outputs(tell(talk, updated)) == [False]
    assert outputs(tell(talk, updated)) == []
    # It is so already.
    again = talk.speak_answers(on=False)
    assert (upstream(again), outputs(again)) == ([], [False])
    [back] = upstream(talk.speak_answers(on=True))
    assert back["session"]["output_modalities"] == ["audio"]
    assert outputs(tell(talk, {"type": "session.updated", "session": {}})) == [True]


def test_the_next_connection_and_another_assistant_answer_in_the_same_way() -> None:
    talk = conversation()
    talk.speak_answers(on=False)
    talk.disconnected(0)
    talk.connected(Dialect.GA)
    [update, *_] = upstream(tell(talk, {"type": "session.created", "session": {}}))
    assert update["session"]["output_modalities"] == ["text"]
    tell(talk, {"type": "session.updated", "session": {"output_modalities": ["text"]}})
    bob = AssistantConfig(slug="b", name="B")
    talk.hand_over(bob, [], {}, silence_ms=1000)
    talk.disconnected(0)
    talk.connected(Dialect.GA)
    [update, *_] = upstream(tell(talk, {"type": "session.created", "session": {}}))
    assert update["session"]["output_modalities"] == ["text"]


def test_what_is_chosen_while_the_settings_are_under_way_follows_them() -> None:
    talk = Conversation(AssistantConfig(slug="a", name="A"), (f"id_{n}" for n in count()))
    talk.connected(Dialect.GA)
    tell(talk, {"type": "session.created", "session": {}})
    assert talk.speak_answers(on=False) == []
    [asked] = upstream(tell(talk, {"type": "session.updated", "session": {"output_modalities": ["audio"]}}))
    assert asked["session"] == TEXT["session"]


def test_a_service_that_only_speaks_is_asked_once() -> None:
    talk = conversation()
    [asked] = upstream(talk.speak_answers(on=False))
    refused = {"type": "invalid_request_error", "event_id": asked["event_id"], "message": "No such thing."}
    said = tell(talk, {"type": "error", "error": refused})
    assert outputs(said) == [True]
    assert [event["code"] for event in shown(said) if event["type"] == "notice"] == ["output_refused"]
    later = talk.speak_answers(on=False)
    assert (upstream(later), outputs(later)) == ([], [True])
