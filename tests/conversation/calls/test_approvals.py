"""Calls that wait for the user's word, and the one response after all calls: as a pure state machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parts.approval_talk import CALL, REQUEST, SESSION, Talk, page, records, upstream
from voiceapp.conversation.actions import CallTool, SendAudio, SendBrowser
from voiceapp.conversation.calls.approvals import MAX_PENDING, MAX_SHOWN_CHARS
from voiceapp.conversation.records import ItemRecord
from voiceapp.types import JsonObject


def test_the_page_is_asked_once_with_all_that_it_shows() -> None:
    talk = Talk()
    talk.asks()
    (asked,) = page(talk.actions, "approval.requested")
    assert asked == {
        "type": "approval.requested", "approval_request_id": "mcpr_1", "server_label": "shop", "name": "buy",
        "arguments": '{"n":1}', "call_id": "mcp_1", "timeout_ms": 60_000,
    }  # fmt: skip


def test_an_answer_after_twenty_seconds_is_followed_by_one_response() -> None:
    talk = Talk()
    talk.asks()
    assert not page(talk.tick(20_000), "approval.settled")
    told = talk.answer(approve=True, now=20_000)
    (sent,) = upstream(told, "conversation.item.create")
    assert sent["item"]["type"] == "mcp_approval_response"
    assert (sent["item"]["approval_request_id"], sent["item"]["approve"]) == ("mcpr_1", True)
    assert sent["item"]["id"]
    assert page(told, "approval.settled")[0]["outcome"] == "allowed"
    assert not upstream(talk.actions, "response.create"), "the tool has not brought anything yet"
    talk.runs(now=21_000)
    assert len(upstream(talk.actions, "response.create")) == 1
    assert records(talk.actions)[-1] == ("shop.buy", "completed", "Bought.")
    assert not page(talk.tick(200_000), "approval.settled")


def test_a_question_that_nobody_answers_is_refused_by_the_clock() -> None:
    talk = Talk()
    talk.asks()
    assert not talk.tick(59_999)
    told = talk.tick(60_000)
    (sent,) = upstream(told, "conversation.item.create")
    assert sent["item"]["approve"] is False
    assert page(told, "approval.settled")[0]["outcome"] == "timed_out"
    assert page(told, "notice")[0]["code"] == "approval_timed_out"
    assert records(told)[0][:2] == ("shop.buy", "denied")
    assert len(upstream(told, "response.create")) == 1
    # What the service says of it afterwards changes nothing more.
    assert not records(talk.runs("failed", now=60_100))
    assert len(upstream(talk.actions, "response.create")) == 1


def test_a_refusal_is_told_with_its_reason() -> None:
    talk = Talk()
    talk.asks()
    told = talk.answer(approve=False, reason="Too dear.")
    assert upstream(told, "conversation.item.create")[0]["item"]["reason"] == "Too dear."
    assert page(told, "approval.settled")[0]["outcome"] == "denied"
    assert len(upstream(told, "response.create")) == 1


@pytest.mark.parametrize(
    ("before", "request_id", "code"),
    [(True, "mcpr_1", "approval_already_settled"), (False, "mcpr_9", "approval_not_found")],
)
def test_an_answer_to_nothing_is_a_clear_error(before: bool, request_id: str, code: str) -> None:
    talk = Talk()
    talk.asks()
    if before:
        talk.answer(approve=False)
    told = talk.answer(approve=True, request=request_id)
    assert page(told, "error")[0]["error"]["code"] == code
    assert not upstream(told, "conversation.item.create")


def test_a_late_answer_is_a_clear_error() -> None:
    talk = Talk()
    talk.asks()
    talk.tick(60_000)
    told = talk.answer(approve=True, now=60_001)
    assert page(told, "error")[0]["error"]["code"] == "approval_already_settled"
    assert not upstream(told, "conversation.item.create")


@pytest.mark.parametrize(
    "item",
    [
        {"approval_request_id": "mcpr_1"}, {"approve": True}, {"approval_request_id": 1, "approve": True},
        {"approval_request_id": "mcpr_1", "approve": "yes"},
        {"approval_request_id": "mcpr_1", "approve": True, "id": "mine"},
        {"approval_request_id": "mcpr_1", "approve": True, "reason": "a" * 1001},
    ],
)  # fmt: skip
def test_a_page_may_send_nothing_but_an_answer(item: JsonObject) -> None:
    talk = Talk()
    talk.asks()
    told = talk.say({"type": "conversation.item.create", "item": {"type": "mcp_approval_response", **item}})
    assert page(told, "error")
    assert not upstream(told, "conversation.item.create")
    assert len(talk.answer(approve=True)) > 1, "the question is still open"


def test_barge_in_meanwhile_leaves_question_and_audio_alone() -> None:
    talk = Talk()
    talk.asks()
    heard = talk.hear({"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "u"})
    assert not page(heard, "approval.settled")
    audio = {"type": "response.output_audio.delta", "response_id": "r2", "item_id": "a", "output_index": 0,
             "content_index": 0, "delta": "AAAA" * 100}  # fmt: skip
    talk.hear({"type": "response.created", "response": {"id": "r2"}})
    assert [action for action in talk.hear(audio) if isinstance(action, SendAudio)]
    talk.hear({"type": "response.done", "response": {"id": "r2", "status": "completed"}})
    talk.answer(approve=True)
    talk.runs()
    assert len(upstream(talk.actions, "response.create")) == 1


def test_a_service_that_goes_on_by_itself_is_not_asked_to() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True)
    talk.runs()
    (create,) = upstream(talk.actions, "response.create")
    talk.hear({"type": "response.created", "response": {"id": "r2"}})
    error = {
        "code": "conversation_already_has_active_response",
        "event_id": create["event_id"],
        "message": "",
    }
    told = talk.hear({"type": "error", "error": error})
    told += talk.hear({"type": "response.done", "response": {"id": "r2", "status": "completed"}})
    assert not upstream(told, "response.create")
    assert not page(told, "error")


def test_words_beside_a_call_are_not_the_answer_to_it() -> None:
    talk = Talk()
    talk.hear({"type": "response.created", "response": {"id": "r"}})
    talk.item({**CALL, "arguments": "{}"})
    talk.runs()
    talk.item({"id": "a", "type": "message", "role": "assistant", "status": "in_progress", "content": []})
    assert not upstream(talk.actions, "response.create"), "the response is not over yet"
    talk.hear({"type": "response.done", "response": {"id": "r", "status": "completed"}})
    assert len(upstream(talk.actions, "response.create")) == 1


def test_a_service_that_makes_the_call_only_once_it_is_allowed() -> None:
    talk = Talk()
    talk.hear({"type": "response.created", "response": {"id": "r"}})
    talk.item(REQUEST)
    talk.item(REQUEST, done=True)
    talk.hear({"type": "response.done", "response": {"id": "r", "status": "completed"}})
    told = talk.answer(approve=True)
    assert len(upstream(told, "response.create")) == 1
    talk.hear({"type": "response.created", "response": {"id": "r2"}})
    talk.item({**CALL, "approval_request_id": "mcpr_1", "arguments": '{"n":1}'})
    talk.runs()
    assert records(talk.actions)[-1][:2] == ("shop.buy", "completed")


def test_a_failed_call_is_kept_with_its_reason_and_answered() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True)
    talk.runs("failed")
    assert records(talk.actions)[-1] == ("shop.buy", "failed", "Sold out.")
    assert len(upstream(talk.actions, "response.create")) == 1


def test_a_call_that_never_ends_is_waited_for_two_minutes() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True, now=30_000)
    talk.hear({"type": "response.mcp_call.in_progress", "item_id": "mcp_1", "output_index": 0}, now=31_000)
    assert not talk.tick(150_999)
    told = talk.tick(151_000)
    assert records(told)[0][:2] == ("shop.buy", "failed")
    assert len(upstream(told, "response.create")) == 1
    assert page(told, "response.tool_call.error")[0]["error"]["code"] == "timeout"


def test_a_function_and_a_servers_tool_are_followed_by_one_response() -> None:
    talk = Talk()
    talk.asks()
    where = {"response_id": "r", "item_id": "f", "output_index": 1, "call_id": "c", "name": "clock"}
    talk.hear({"type": "response.function_call_arguments.done", **where, "arguments": "{}"})
    talk.actions += talk.state.tool_returned("c", "12:00", status="completed", now=1)
    assert not upstream(talk.actions, "response.create")
    talk.answer(approve=True)
    talk.runs()
    assert len(upstream(talk.actions, "response.create")) == 1


# -- lists ----------------------------------------------------------------------------------------------


def test_a_list_that_failed_is_a_notice_that_names_the_server_and_not_its_secrets() -> None:
    talk = Talk()
    listed = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "shop", "tools": [],
              "error": "401 for Bearer s3cret-token"}  # fmt: skip
    talk.hear(
        {"type": "mcp_list_tools.in_progress", "item_id": "mcpl_1"},
        {"type": "conversation.item.added", "item": listed},
        {"type": "conversation.item.done", "item": listed},
        {"type": "mcp_list_tools.failed", "item_id": "mcpl_1"},
    )
    (told,) = page(talk.actions, "notice")
    assert (told["code"], told["server_label"]) == ("mcp_tools_unavailable", "shop")
    assert "shop" in told["message"]
    assert "s3cret-token" not in "".join(a.text for a in talk.actions if isinstance(a, SendBrowser))


def test_a_failed_list_without_an_item_names_the_only_server() -> None:
    talk = Talk()
    told = talk.hear({"type": "mcp_list_tools.failed", "item_id": "mcpl_1"})
    assert page(told, "notice")[0]["server_label"] == "shop"


def test_the_page_is_not_told_what_the_servers_say_of_their_tools() -> None:
    talk = Talk()
    tools = [{"name": "buy", "description": "INTERNAL", "input_schema": {}}]
    listed = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "shop", "tools": tools}
    told = talk.hear(
        {"type": "conversation.item.done", "item": listed},
        {"type": "conversation.item.retrieved", "item": listed},
    )
    assert page(told, "conversation.item.done")[0]["item"]["server_label"] == "shop"
    assert page(told, "conversation.item.retrieved")[0]["item"]["server_label"] == "shop"
    assert "INTERNAL" not in "".join(action.text for action in told if isinstance(action, SendBrowser))


# -- a service that is lost -----------------------------------------------------------------------------


def test_a_lost_service_takes_its_questions_along() -> None:
    talk = Talk()
    talk.asks()
    told = list(talk.state.disconnected(5))
    assert page(told, "approval.settled")[0]["outcome"] == "withdrawn"
    assert page(told, "notice")[0]["code"] == "approval_withdrawn"
    assert records(told) == [("shop.buy", "failed", "")]
    assert page(talk.answer(approve=True), "error")[0]["error"]["code"] == "approval_already_settled"


def test_history_brings_a_servers_call_back_as_a_functions() -> None:
    talk = Talk()
    talk.asks()
    talk.answer(approve=True)
    talk.runs()
    told = list(talk.state.disconnected(5))
    told = talk.hear({"type": "session.created", "session": SESSION})
    items = [sent["item"] for sent in upstream(told, "conversation.item.create")]
    assert [item["type"] for item in items] == ["function_call", "function_call_output"]
    assert items[0]["call_id"] == items[1]["call_id"]
    assert (items[0]["name"], items[1]["output"]) == ("buy", "Bought.")
    assert len({item["id"] for item in items}) == 2
    assert max(len(item["id"]) for item in items) <= 32


def test_history_leaves_out_a_call_that_never_ended() -> None:
    talk = Talk()
    talk.asks()
    talk.state.disconnected(5)
    told = talk.hear({"type": "session.created", "session": SESSION})
    assert not upstream(told, "conversation.item.create")


def test_a_function_that_returns_while_there_is_no_service_is_told_to_the_next_one() -> None:
    talk = Talk()
    where = {"response_id": "r", "item_id": "f", "output_index": 0, "call_id": "c", "name": "clock"}
    talk.hear({"type": "response.created", "response": {"id": "r"}})
    talk.hear({"type": "response.function_call_arguments.done", **where, "arguments": "{}"})
    talk.state.disconnected(1)
    assert not talk.state.tool_returned("c", "12:00", status="completed", now=2)
    talk.hear({"type": "session.created", "session": SESSION}, now=3)
    told = talk.hear({"type": "session.updated", "session": SESSION}, now=3)
    items = [sent["item"] for sent in upstream(told, "conversation.item.create")]
    assert [item["type"] for item in items] == ["function_call", "function_call_output"]
    assert {item["call_id"] for item in items} == {"c"}
    # The lost response is not asked for again: it would call the function a second time.
    assert len(upstream(told, "response.create")) == 1


# -- functions that are asked about ---------------------------------------------------------------------


def function(talk: Talk, arguments: str = "{}", n: int = 1) -> list[Any]:
    where = {"response_id": "r", "item_id": f"f{n}", "output_index": 0, "call_id": f"c{n}", "name": "pay"}
    return talk.hear({"type": "response.function_call_arguments.done", **where, "arguments": arguments})


def test_a_function_runs_only_once_it_is_allowed() -> None:
    talk = Talk(ask_first=("pay",))
    told = function(talk)
    assert not [action for action in told if isinstance(action, CallTool)]
    (asked,) = page(told, "approval.requested")
    assert (asked["server_label"], asked["name"], asked["call_id"]) == ("", "pay", "c1")
    told = talk.answer(approve=True, request=asked["approval_request_id"])
    assert [action.call_id for action in told if isinstance(action, CallTool)] == ["c1"]
    assert not upstream(told, "conversation.item.create")


def test_a_function_that_is_refused_answers_the_model_so() -> None:
    talk = Talk(ask_first=("pay",))
    (asked,) = page(function(talk), "approval.requested")
    told = talk.answer(approve=False, request=asked["approval_request_id"])
    (sent,) = upstream(told, "conversation.item.create")
    assert json.loads(sent["item"]["output"])["error"]["code"] == "not_approved"
    assert len(upstream(told, "response.create")) == 1
    assert records(told)[0][:2] == ("pay", "denied")


def test_a_functions_question_outlives_the_service() -> None:
    talk = Talk(ask_first=("pay",))
    (asked,) = page(function(talk), "approval.requested")
    assert not page(list(talk.state.disconnected(1)), "approval.settled")
    told = talk.answer(approve=True, request=asked["approval_request_id"])
    assert [action.call_id for action in told if isinstance(action, CallTool)] == ["c1"]


def test_a_call_of_an_earlier_process_is_not_run_again() -> None:
    talk = Talk()
    raw = {"call_id": "c1", "name": "pay", "arguments": "{}"}
    kept = ItemRecord(item_id="f1", previous_item_id=None, type="function_call", raw=raw)
    talk.state.restore([kept])
    told = function(talk)
    assert not [action for action in told if isinstance(action, CallTool)]
    assert [action for action in function(talk, n=2) if isinstance(action, CallTool)]


def test_what_cannot_be_shown_cannot_be_allowed() -> None:
    talk = Talk(ask_first=("pay",))
    told = function(talk, json.dumps({"a": "x" * MAX_SHOWN_CHARS}))
    assert not page(told, "approval.requested")
    assert page(told, "notice")[0]["code"] == "approval_not_shown"
    assert records(told)[0][:2] == ("pay", "denied")


def test_a_model_cannot_ask_without_end() -> None:
    talk = Talk(ask_first=("pay",))
    for n in range(MAX_PENDING + 1):
        function(talk, n=n)
    assert len(page(talk.actions, "approval.requested")) == MAX_PENDING
    assert [status for _, status, _ in records(talk.actions)] == ["denied"]


def test_the_end_keeps_what_was_open_as_cancelled() -> None:
    talk = Talk(ask_first=("pay",))
    talk.asks()
    function(talk)
    assert sorted(records(list(talk.state.finish(9)))) == [
        ("pay", "cancelled", ""),
        ("shop.buy", "cancelled", ""),
    ]
