"""Calls of MCP tools that a service makes: from the first event to the last, in whatever order they come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.approval_talk import SHOP
from tests.parts.relay_talk import saved, shown
from voiceapp.conversation.calls.mcp import (
    ENDED_MS,
    EXPLAINED_MS,
    MAX_REASON_CHARS,
    McpCalls,
    no_tools,
)
from voiceapp.conversation.calls.shown import CallEvents
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.protocol import events
from voiceapp.types import JsonObject

PLACE: dict[str, Any] = {"event_id": "e", "item_id": "mcp_1", "output_index": 0}


def calls(*servers: Any) -> McpCalls:
    return McpCalls(servers or (SHOP,), CallEvents())


def item(**fields: Any) -> JsonObject:
    call = {"id": "mcp_1", "type": "mcp_call", "server_label": "shop", "name": "buy", "arguments": '{"n":1}'}
    return {**call, **fields}


def begun(**fields: Any) -> McpCalls:
    made = calls()
    made.call_item(item(**fields), 0, 100)
    return made


def kinds(actions: list[Any]) -> list[str]:
    return [event["type"].rpartition(".")[2] for event in shown(actions)]


def test_a_call_is_shown_from_its_item_to_its_output() -> None:
    made = calls()
    assert kinds(made.call_item(item(), 0, 100)) == ["started", "delta"]
    done = made.call_item(item(output="bought"), 0, 900)
    assert kinds(done) == ["completed"]
    [record] = saved(done, ToolCallRecord)
    assert (record.name, record.arguments, record.output) == ("shop.buy", '{"n":1}', "bought")
    assert (record.status, record.started_ms, record.ended_ms) == ("completed", 100, 900)
    assert made.follow_up_due
    assert list(made.open()) == []


def test_a_call_is_shown_only_once_its_place_is_known() -> None:
    made = calls()
    assert kinds(made.call_item(item(arguments=""), None, 0)) == []
    done = events.ResponseMcpCallArgumentsDone(**PLACE, response_id="r", arguments="{}")
    assert kinds(made.take(done, 0)) == ["started", "delta"]


def test_a_call_whose_end_comes_before_its_output_is_kept_again_with_it() -> None:
    made = begun()
    [first] = saved(made.take(events.ResponseMcpCallCompleted(**PLACE), 200), ToolCallRecord)
    assert first.output == ""
    made.follow_up_due = False
    [second] = saved(made.call_item(item(output="bought"), 0, 300), ToolCallRecord)
    assert second.output == "bought"
    assert not made.follow_up_due, "the call ended once"
    assert made.call_item(item(output="bought"), 0, 400) == []


def test_a_failure_waits_a_moment_for_its_reason() -> None:
    made = begun()
    failed = made.take(events.ResponseMcpCallFailed(**PLACE), 200)
    assert kinds(failed) == []
    assert [record.status for record in saved(failed, ToolCallRecord)] == ["failed"]
    assert made.unexplained_by(200 + EXPLAINED_MS - 1) == []
    assert kinds(made.unexplained_by(200 + EXPLAINED_MS)) == ["error"]
    assert made.unexplained_by(1e9) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"type": "t", "code": "c", "message": "Sold out."}, "Sold out."),
        ({"code": "sold_out"}, "sold_out"),
        ({}, None),
        ("Sold out.", "Sold out."),
        ({"message": "x" * 1000}, "x" * MAX_REASON_CHARS),
    ],
)
def test_a_failure_says_its_reason_in_bounded_words(error: Any, message: str | None) -> None:
    ended = begun().call_item(item(error=error), 0, 200)
    if message is None:
        assert shown(ended) == [], "an empty error is none"
        return
    assert shown(ended)[-1]["error"]["message"] == message
    [record] = saved(ended, ToolCallRecord)
    assert (record.status, record.output) == ("failed", message)


def test_a_call_that_was_cut_off_in_its_arguments_was_never_made() -> None:
    made = begun()
    [record] = saved(made.call_item(item(status="incomplete"), 0, 200), ToolCallRecord)
    assert record.status == "cancelled"
    assert not made.follow_up_due


def test_a_call_that_does_not_end_hangs_unless_it_waits_for_the_user() -> None:
    made = begun()
    assert made.hanging(100 + ENDED_MS - 1, ()) == []
    assert [call.item_id for call in made.hanging(100 + ENDED_MS, ())] == ["mcp_1"]
    assert made.hanging(100 + ENDED_MS, {"mcp_1"}) == []
    # It is counted from when it runs.
    made.take(events.ResponseMcpCallInProgress(**PLACE), 5000)
    assert made.hanging(100 + ENDED_MS, ()) == []


def test_a_question_finds_the_call_that_it_is_about() -> None:
    asked: JsonObject = {"id": "mcpr_1", "server_label": "shop", "name": "buy", "arguments": '{"n":1}'}
    named = begun(approval_request_id="mcpr_1")
    assert named.asked_about({"id": "mcpr_1"}) is not None
    alike = begun()
    found = alike.asked_about(asked)
    assert found is not None
    assert found.request_id == "mcpr_1"
    # A second question of the same words is about another call.
    assert alike.asked_about({**asked, "id": "mcpr_2"}) is None
    running = begun()
    running.take(events.ResponseMcpCallInProgress(**PLACE), 0)
    assert running.asked_about(asked) is None
    assert begun().asked_about({**asked, "arguments": "{}"}) is None


def test_events_of_a_call_that_nobody_made_are_nothing() -> None:
    made = calls()
    for event in (
        events.ResponseMcpCallInProgress(**PLACE),
        events.ResponseMcpCallCompleted(**PLACE),
        events.ResponseMcpCallFailed(**PLACE),
        events.McpListToolsCompleted(event_id="e", item_id="mcpl"),
    ):
        assert made.take(event, 0) == []


def test_a_list_that_failed_names_its_server_and_the_reason() -> None:
    made = calls(SHOP, SHOP)
    made.list_item({"id": "mcpl", "server_label": "shop", "error": {"message": "It is closed."}})
    [notice] = shown(made.take(events.McpListToolsFailed(event_id="e", item_id="mcpl"), 0))
    assert (notice["code"], notice["server_label"]) == ("mcp_tools_unavailable", "shop")
    assert notice["message"].endswith("It is closed.")
    # Of several servers nobody knows which one it was.
    [unnamed] = shown(made.take(events.McpListToolsFailed(event_id="e", item_id="other"), 0))
    assert unnamed["server_label"] == ""
    assert shown([no_tools("", "")])[0]["message"] == "An MCP server’s tools cannot be used."
