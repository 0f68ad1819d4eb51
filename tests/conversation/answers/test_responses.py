"""One response at a time, whatever the order of events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.parts.examples import examples
from voiceapp.conversation.answers.responses import MAX_WAITING, ResponseSequencer, response_notice
from voiceapp.types import JsonObject


class Service(RuleBasedStateMachine):
    """A service that refuses a second response, and begins some by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.sequencer = ResponseSequencer()
        self.wire: list[JsonObject] = []
        self.active: str | None = None
        self.count = 0
        self.wanted: set[str] = set()
        self.served: list[str] = []
        self.begun_alone = 0
        self.stopped = False

    def send(self, events: list[JsonObject] | None) -> None:
        self.wire += events or []

    @rule()
    def the_page_asks(self) -> None:
        self.count += 1
        name = f"create_{self.count}"
        due = self.sequencer.create({"type": "response.create", "event_id": name})
        self.stopped &= not due
        if due is None:
            assert len(self.sequencer.waiting) == MAX_WAITING
        else:
            self.wanted.add(name)
            self.send(due)

    @rule()
    def the_page_cancels(self) -> None:
        # All that was asked for and has not ended is given up.
        self.wanted.clear()
        self.send(self.sequencer.cancel())
        self.stopped = self.active is None and self.sequencer.asked is not None

    def begin(self, name: str | None) -> None:
        self.count += 1
        self.active = f"resp_{self.count}"
        stopped, self.stopped = self.stopped, False
        if name is not None:
            self.served.append(name)
            self.wanted.discard(name)
        due = self.sequencer.created({"id": self.active, "conversation_id": "conv"})
        if stopped:
            assert [event["type"] for event in due] == ["response.cancel"]
        self.send(due)

    @precondition(lambda self: self.wire)
    @rule()
    def the_service_reads(self) -> None:
        event = self.wire.pop(0)
        if event["type"] == "response.cancel":
            if event["response_id"] == self.active:
                self.end()
            return
        if self.active is None:
            self.begin(event["event_id"])
            return
        refused = self.sequencer.refused(event["event_id"], "conversation_already_has_active_response")
        due = [] if refused is None else refused.due
        self.stopped = False
        if refused is not None and event not in self.sequencer.waiting and event not in due:
            self.wanted.discard(event["event_id"])
        self.send(due)

    # A service reads what was sent within a turn or two: it does not begin by itself again and again before.
    @precondition(lambda self: self.active is None and self.begun_alone < 6)
    @rule()
    def the_service_begins_by_itself(self) -> None:
        self.begun_alone += 1
        self.begin(None)

    @precondition(lambda self: self.active is not None)
    @rule()
    def end(self) -> None:
        done, self.active = self.active, None
        self.send(self.sequencer.done({"id": done, "conversation_id": "conv"}))

    @invariant()
    def creates_do_not_pile_up_on_the_wire(self) -> None:
        # One is asked for; others on the wire were taken for granted when the service began by itself.
        assert sum(event["type"] == "response.create" for event in self.wire) <= 1 + self.begun_alone

    @invariant()
    def it_knows_what_is_active(self) -> None:
        assert self.sequencer.active == self.active

    @invariant()
    def nothing_is_served_twice(self) -> None:
        assert len(self.served) == len(set(self.served))

    def teardown(self) -> None:
        """Once all is quiet, everything that was wanted and not given up has been served."""
        for _ in range(200):
            if self.wire:
                self.the_service_reads()
            elif self.active is not None:
                self.end()
        assert self.sequencer.idle
        assert not self.wanted


Service.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
TestSequencer = Service.TestCase


def test_responses_out_of_the_conversation_do_not_wait() -> None:
    sequencer = ResponseSequencer()
    sequencer.create({"type": "response.create", "event_id": "a"})
    beside: JsonObject = {"type": "response.create", "event_id": "b", "response": {"conversation": "none"}}
    assert sequencer.create(beside) == [beside]
    sequencer.created({"id": "resp_b", "conversation_id": None})
    assert sequencer.active is None


def test_cancelling_nothing_sends_nothing() -> None:
    assert ResponseSequencer().cancel() == []


def create(name: str) -> JsonObject:
    return {"type": "response.create", "event_id": name}


COLLIDED = "conversation_already_has_active_response"


def test_a_stop_is_not_undone_by_the_refusal_of_what_it_stopped() -> None:
    """The service began one by itself; ours, which it refuses then, is not asked for again."""
    for order in ("stop first", "service first"):
        sequencer = ResponseSequencer()
        sequencer.create(create("a"))
        if order == "stop first":
            sequencer.cancel()
            assert sequencer.created({"id": "resp_1"}) == [
                {"type": "response.cancel", "response_id": "resp_1"}
            ]
        else:
            sequencer.created({"id": "resp_1"})
            sequencer.cancel()
        assert sequencer.refused("a", COLLIDED) is None
        assert sequencer.done({"id": "resp_1"}) == []
        assert sequencer.idle


def test_what_was_stopped_is_not_owed_and_what_was_asked_for_since_is() -> None:
    sequencer = ResponseSequencer()
    sequencer.create(create("a"))
    owed = [sequencer.owed]
    sequencer.created({"id": "resp_1"})
    sequencer.cancel()
    owed.append(sequencer.owed)
    sequencer.create(create("b"))
    owed.append(sequencer.owed)
    assert owed == [True, False, True]


def test_one_id_for_all_responses_is_followed() -> None:
    sequencer = ResponseSequencer()
    for name in ("a", "b", "c"):
        assert sequencer.create(create(name)) == [create(name)]
        sequencer.created({"id": "resp"})
        sequencer.done({"id": "resp"})
        assert sequencer.idle


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "server_error", None])
def test_a_refusal_for_another_reason_is_no_matter_for_the_relay_alone(code: str | None) -> None:
    sequencer = ResponseSequencer()
    sequencer.create(create("a"))
    sequencer.create(create("b"))
    assert sequencer.refused("a", code) == ([create("b")], False)


def failed(code: str, message: str) -> dict[str, Any]:
    details = {"type": "failed", "error": {"type": "server_error", "code": code, "message": message}}
    return {"id": "r1", "status": "failed", "status_details": details}


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        # Our own engine says what to check; asking again would help nobody.
        (
            "model_host_absent",
            "No model host is connected. Start one.",
            "No model host is connected. Start one.",
        ),
        (
            "text_engine_unreachable",
            "The chat endpoint cannot be reached.",
            "The chat endpoint cannot be reached.",
        ),
        ("chat_not_configured", "The settings name none.", "The settings name none."),
        # Others' words are theirs.
        ("server_error", "stack trace …", "The service could not answer (server_error). Ask again."),
        ("insufficient_quota", "…", "The service's quota is used up."),
        ("model_host_absent", "", "The service could not answer (model_host_absent). Ask again."),
    ],
)
def test_a_failed_answer_is_a_sentence_that_helps(code: str, message: str, told: str) -> None:
    assert response_notice(failed(code, message)) == ("response_failed", told, "error")
