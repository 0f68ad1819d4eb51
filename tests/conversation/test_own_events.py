"""The relay's own client events: ids, and what each was for."""

from __future__ import annotations

from itertools import count

from voiceapp.conversation.actions import SendUpstream
from voiceapp.conversation.own_events import MAX_KEPT, OwnEvents


def own_events() -> OwnEvents:
    return OwnEvents(f"id_{number}" for number in count())


def test_an_event_is_sent_under_an_id_that_tells_its_purpose_once() -> None:
    own = own_events()
    sent = own.send({"type": "response.create"}, "response")
    assert sent == SendUpstream({"type": "response.create", "event_id": "id_0"})
    assert own.take("id_0") == "response"
    assert own.take("id_0") is None
    assert own.next_id() == "id_1"


def test_an_id_of_the_pages_is_kept_and_nobodys_purpose() -> None:
    own = own_events()
    asked = {"type": "response.create", "event_id": "page_1"}
    assert own.named(asked) is asked
    assert own.take("page_1") is None


def test_a_create_without_an_id_is_given_one_that_errors_can_name() -> None:
    own = own_events()
    for value in ({}, {"event_id": None}, {"event_id": 7}):
        event_id = own.named({"type": "response.create", **value})["event_id"]
        assert own.take(event_id) == "response"


def test_the_oldest_purposes_are_forgotten_and_all_of_them_with_their_connection() -> None:
    own = own_events()
    for _ in range(MAX_KEPT + 1):
        own.stamp({}, "history")
    assert own.take("id_0") is None
    assert own.take("id_1") == "history"
    own.clear()
    assert own.take(f"id_{MAX_KEPT}") is None
