"""What each event of the page does, in each state of the conversation."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.parts.relay_talk import conversation, shown, tell, upstream
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import Action
from voiceapp.conversation.answers.responses import MAX_WAITING
from voiceapp.conversation.client_events import HANDLERS
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.lifecycle import State
from voiceapp.conversation.unconfirmed import MAX_EVENTS
from voiceapp.protocol import codec
from voiceapp.protocol.events import UnknownEvent

TYPED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}


def send(talk: Conversation, kind: str, **fields: Any) -> list[Action]:
    return talk.receive_client(codec.client_event({"type": kind, **fields}), 0)


def unanswered() -> Conversation:
    """Return a conversation whose service is not there yet."""
    return Conversation(AssistantConfig(slug="a", name="A"), (f"id_{number}" for number in count()))


def test_every_state_has_a_handler_for_every_event() -> None:
    assert HANDLERS.keys() == set(State)
    assert all(UnknownEvent in handlers for handlers in HANDLERS.values())


def test_what_comes_before_the_service_is_sent_in_its_order_once_it_is_there() -> None:
    talk = unanswered()
    assert send(talk, "conversation.item.create", item=TYPED) == []
    assert send(talk, "response.create") == []
    created = tell(talk, {"type": "session.created", "session": {}})
    assert "response.create" not in [event["type"] for event in upstream(created)]
    ready = upstream(tell(talk, {"type": "session.updated", "session": {}}))
    assert [event["type"] for event in ready] == ["conversation.item.create", "response.create"]


def test_only_so_much_is_kept_for_a_service_that_does_not_come() -> None:
    talk = unanswered()
    for _ in range(MAX_EVENTS):
        assert send(talk, "conversation.item.create", item=TYPED) == []
    [refused] = shown(send(talk, "conversation.item.create", item=TYPED, event_id="mine"))
    assert (refused["error"]["code"], refused["error"]["event_id"]) == ("not_ready", "mine")


def test_what_a_page_may_not_send_is_refused_by_its_id_in_every_state() -> None:
    over = conversation()
    over.finish(0)
    for talk in (unanswered(), conversation(), over):
        [refused] = shown(send(talk, "session.update", session={}, event_id="mine"))
        assert refused["type"] == "error"
        assert (refused["error"]["code"], refused["error"]["event_id"]) == ("event_not_allowed", "mine")


def test_an_event_of_the_page_goes_on_as_it_is() -> None:
    sent = upstream(send(conversation(), "conversation.item.delete", item_id="i", event_id="mine"))
    assert sent == [{"type": "conversation.item.delete", "item_id": "i", "event_id": "mine"}]


def test_one_answer_is_asked_for_at_a_time_and_not_too_many_wait() -> None:
    talk = conversation()
    assert len(upstream(send(talk, "response.create"))) == 1
    for _ in range(MAX_WAITING):
        assert send(talk, "response.create") == []
    [refused] = shown(send(talk, "response.create"))
    assert refused["error"]["code"] == "too_many_responses"


def test_cancelling_names_the_answer_that_is_under_way() -> None:
    talk = conversation()
    assert send(talk, "response.cancel") == []
    tell(talk, {"type": "response.created", "response": {"id": "r", "conversation_id": "c"}})
    [cancel] = upstream(send(talk, "response.cancel"))
    assert (cancel["type"], cancel["response_id"]) == ("response.cancel", "r")


def test_the_stop_button_cancels_the_answer_and_cuts_what_is_played() -> None:
    talk = conversation()
    tell(talk, {"type": "response.created", "response": {"id": "r", "conversation_id": "c"}})
    delta = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "AAAA"}
    tell(talk, {"type": "response.output_audio.delta", **delta})
    stopped = send(talk, "output_audio_buffer.clear")
    assert [event["type"] for event in upstream(stopped)] == ["response.cancel"]
    assert shown(stopped) == [{"type": "audio.cut", "item_id": "i", "response_id": "r"}]


@pytest.mark.parametrize("kind", ["response.create", "output_audio_buffer.clear", "response.cancel"])
def test_nothing_is_taken_once_the_conversation_is_over(kind: str) -> None:
    talk = conversation()
    talk.finish(0)
    assert send(talk, kind) == []


def test_an_answer_to_no_question_is_refused_in_any_state() -> None:
    answer = {"type": "mcp_approval_response", "approval_request_id": "nobody asked", "approve": True}
    for talk in (unanswered(), conversation()):
        [refused] = shown(send(talk, "conversation.item.create", item=answer))
        assert refused["type"] == "error"
