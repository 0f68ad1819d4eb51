"""All calls of one conversation: asked about where wanted, answered once, followed by one response."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from tests.parts.relay_talk import saved, shown, upstream
from voiceapp.conversation.actions import Action, CallTool, PreviewCall
from voiceapp.conversation.calls.flow import CallFlow
from voiceapp.conversation.calls.functions import PendingCall
from voiceapp.conversation.items import Items
from voiceapp.conversation.lifecycle import Lifecycle, State
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.protocol.page import CallPreview
from voiceapp.tools.functions import AskFirst

TIMEOUT_MS = 60_000.0


class Calls:
    """The calls of a conversation that is ready; of its functions ``pay`` is asked about first."""

    def __init__(self) -> None:
        self.lifecycle = Lifecycle()
        self.lifecycle.enter(State.READY)
        own = OwnEvents(f"id_{number}" for number in count())
        self.flow = CallFlow(
            own,
            self.lifecycle,
            Items(captions=True),
            (),
            TIMEOUT_MS,
            {"pay": AskFirst("bank", "pay it"), "erase": AskFirst("", "erase", previews=True)},
        )

    def made(self, name: str = "clock", arguments: str = "{}", number: int = 1) -> list[Action]:
        call = PendingCall(f"call_{number}", f"item_{number}", name, arguments, "r", 0)
        return self.flow.call_made(call, 0)

    def answer(self, *, approve: bool, **fields: Any) -> Any:
        item = {"approval_request_id": "approval_call_1", "approve": approve, **fields}
        return self.flow.answer(item, 10)

    def returned(self, output: str = '"noon"', status: str = "completed") -> list[Action]:
        return self.flow.call_returned("call_1", output, status=status, now=20)


def runs(actions: list[Action]) -> list[CallTool]:
    return [action for action in actions if isinstance(action, CallTool)]


def outputs(actions: list[Action]) -> list[dict[str, Any]]:
    items = [event["item"] for event in upstream(list(actions))]
    return [item for item in items if item["type"] == "function_call_output"]


def test_a_function_runs_at_once_and_its_output_is_answered_and_followed_once() -> None:
    calls = Calls()
    assert runs(calls.made()) == [CallTool("call_1", "clock", "{}")]
    assert calls.flow.take_follow_up() == "", "a call is not answered"
    returned = calls.returned()
    assert [item["output"] for item in outputs(returned)] == ['"noon"']
    assert [record.status for record in saved(list(returned), ToolCallRecord)] == ["completed"]
    assert calls.returned() == []
    assert not calls.flow.pending
    assert calls.flow.take_follow_up() == "response"
    assert calls.flow.take_follow_up() == ""


def test_a_response_that_has_begun_knows_what_was_called_before() -> None:
    calls = Calls()
    calls.made()
    calls.returned()
    calls.flow.response_began()
    assert calls.flow.take_follow_up() == ""


ERASE = PreviewCall("call_1", "erase", '{"words": "milk"}')
MILK = CallPreview(title="Erase this note?", lines=["Buy milk."])


def test_a_call_that_can_be_shown_is_asked_about_once_it_is_known_what_it_would_do() -> None:
    calls = Calls()
    made = calls.made("erase", ERASE.arguments)
    assert [action for action in made if isinstance(action, PreviewCall)] == [ERASE]
    assert "approval.requested" not in [event["type"] for event in shown(made)]
    assert calls.flow.pending
    assert calls.answer(approve=True) == ("approval_not_found", "Nothing waits for this answer.")
    [question] = shown(calls.flow.previewed("call_1", MILK, 5_000))
    assert question["preview"] == {"title": "Erase this note?", "lines": ["Buy milk."]}
    assert (question["arguments"], question["timeout_ms"]) == (ERASE.arguments, TIMEOUT_MS)
    # The time to answer begins with the question.
    assert calls.flow.tick(TIMEOUT_MS + 4_999) == []
    assert runs(calls.answer(approve=True)) == [CallTool("call_1", "erase", ERASE.arguments)]


def test_a_call_that_cannot_be_shown_is_asked_about_by_its_arguments() -> None:
    calls = Calls()
    calls.made("erase", ERASE.arguments)
    [question] = shown(calls.flow.previewed("call_1", None, 10))
    assert (question["arguments"], "preview" in question) == (ERASE.arguments, False)


def test_a_call_that_would_change_nothing_is_not_asked_about() -> None:
    calls = Calls()
    calls.made("erase", ERASE.arguments)
    assert calls.flow.previewed("call_1", None, 10, harmless=True) == [
        CallTool("call_1", "erase", ERASE.arguments)
    ]


def test_a_preview_asks_once_and_never_about_a_call_that_has_ended() -> None:
    calls = Calls()
    assert calls.flow.previewed("call_1", MILK, 10) == []
    calls.made("erase", ERASE.arguments)
    assert len(calls.flow.previewed("call_1", MILK, 10)) == 1
    assert calls.flow.previewed("call_1", MILK, 20) == []
    calls.answer(approve=False)
    assert calls.flow.previewed("call_1", MILK, 30, harmless=True) == []


def test_a_function_that_is_asked_about_runs_once_the_user_allows_it() -> None:
    calls = Calls()
    asked = calls.made("pay", '{"sum": 1}')
    assert runs(asked) == []
    [question] = [event for event in shown(asked) if event["type"] == "approval.requested"]
    assert question["name"] == "pay it"
    assert runs(calls.answer(approve=True)) == [CallTool("call_1", "pay", '{"sum": 1}')]
    code, _ = calls.answer(approve=True)
    assert isinstance(code, str)


def test_a_function_that_is_not_allowed_is_answered_so() -> None:
    calls = Calls()
    calls.made("pay", '{"sum": 1}')
    refused = calls.answer(approve=False, reason="Too much.")
    [output] = outputs(refused)
    assert json.loads(output["output"])["error"] == {"code": "not_approved", "message": "Too much."}
    assert [record.status for record in saved(list(refused), ToolCallRecord)] == ["denied"]
    assert calls.flow.take_follow_up() == "response"


def test_a_question_that_nobody_answers_is_refused_by_the_clock() -> None:
    calls = Calls()
    calls.made("pay", '{"sum": 1}')
    assert calls.flow.tick(TIMEOUT_MS - 1) == []
    refused = calls.flow.tick(TIMEOUT_MS)
    assert "approval_timed_out" in [event.get("code") for event in shown(refused)]
    assert len(outputs(refused)) == 1
    assert not calls.flow.pending


@pytest.mark.parametrize("arguments", ["", "[1]", "{", '"x"', "7"])
def test_what_cannot_reach_the_function_is_not_asked_about(arguments: str) -> None:
    calls = Calls()
    # Empty arguments are those of a function that takes none.
    assert bool(runs(calls.made("pay", arguments))) is (arguments != "")


def test_an_output_that_comes_while_there_is_no_service_is_told_to_the_next_one() -> None:
    calls = Calls()
    calls.made()
    calls.flow.connection_lost(15)
    calls.lifecycle.enter(State.WAITING)
    assert calls.returned() == []
    calls.lifecycle.enter(State.READY)
    sent = [event["item"]["type"] for event in upstream(list(calls.flow.connection_made(30)))]
    # The new connection knows of no call.
    assert sent == ["function_call", "function_call_output"]
    assert calls.flow.connection_made(40) == []


def test_a_failed_call_is_shown_with_its_reason() -> None:
    for output, code in (
        ('{"error": {"code": "busy", "message": "Busy."}}', "busy"),
        ("no json", "failed"),
        ('{"error": "odd"}', "tool_error"),
    ):
        calls = Calls()
        calls.made()
        shown_last = shown(calls.returned(output, "failed"))[-1]
        assert shown_last["type"] == "response.tool_call.error"
        assert shown_last["error"]["code"] == code


def test_the_end_keeps_what_is_open_as_cancelled() -> None:
    calls = Calls()
    calls.made()
    calls.made("pay", '{"sum": 1}', number=2)
    calls.lifecycle.enter(State.ENDED)
    ended = calls.flow.finish(50)
    statuses = {record.call_id: record.status for record in saved(list(ended), ToolCallRecord)}
    assert statuses == {"call_1": "cancelled", "call_2": "cancelled"}
    assert not calls.flow.pending
