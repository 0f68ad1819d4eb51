"""MCP servers through the page's socket: what a service does with them, what the page sees, what is kept."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.contracts import ToolCalls
from tests.parts.page import Page, Talk, answer, calls_made
from tests.parts.scripted import Service
from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol import tool_calls
from voiceapp.protocol.dialects import Dialect
from voiceapp.protocol.tool_calls import ToolCallOrder
from voiceapp.records.models import Assistant

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "tok-9f8e7d"
SERVER = {"server_label": "shop", "server_url": "https://shop.example/mcp", "authorization": TOKEN}
ARGUMENTS = '{"order":7}'
CALL = {"id": "mcp_1", "type": "mcp_call", "server_label": "shop", "name": "cancel", "arguments": ""}
REQUEST = {**CALL, "id": "mcpr_1", "type": "mcp_approval_request", "arguments": ARGUMENTS}


@pytest.fixture
async def clerk(transactional_db: None) -> dict[str, str]:
    await Assistant.objects.acreate(slug="clerk", name="Clerk", mcp_servers=[SERVER])
    return {"assistant": "clerk"}


async def tell_item(upstream: Service, raw: dict[str, Any], *, done: bool) -> None:
    ends = ("conversation.item.done", "response.output_item.done")
    begins = ("response.output_item.added", "conversation.item.added")
    for kind in ends if done else begins:
        await upstream.send({"type": kind, "response_id": "resp_1", "output_index": 0, "item": raw})


async def ask(upstream: Service) -> None:
    """Let the model want to cancel an order, which the user is asked about."""
    where = {"response_id": "resp_1", "item_id": "mcp_1", "output_index": 0}
    await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
    await tell_item(upstream, CALL, done=False)
    await upstream.send({"type": "response.mcp_call_arguments.done", **where, "arguments": ARGUMENTS})
    await tell_item(upstream, REQUEST, done=False)
    await tell_item(upstream, REQUEST, done=True)
    await upstream.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})


async def bring(upstream: Service, **brought: Any) -> None:
    """Let the service run the call; ``brought`` is its output or its error."""
    where = {"item_id": "mcp_1", "output_index": 0}
    status = "completed" if "output" in brought else "failed"
    await upstream.send({"type": "response.mcp_call.in_progress", **where})
    await upstream.send({"type": f"response.mcp_call.{status}", **where})
    await tell_item(upstream, {**CALL, "arguments": ARGUMENTS, "status": status, **brought}, done=True)


async def allow(page: Page, *, approve: bool = True) -> None:
    item = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve}
    await page.send({"type": "conversation.item.create", "item": item})


def told_of_calls(page: Page) -> list[str]:
    """Return how calls went on the page, with every event checked against the contract and its order."""
    contract, order = ToolCalls(), ToolCallOrder(RemoteProtocolError)
    events = [event for event in page.seen if tool_calls.is_tool_call(event)]
    for event in events:
        plain = {name: value for name, value in event.items() if name != "seq"}
        contract.check(plain)
        order.take(tool_calls.read(plain))
    return [event["type"].removeprefix("response.tool_call.") for event in events]


def clerks(talking: Talk, clerk: dict[str, str], **config: Any) -> AbstractAsyncContextManager[Any]:
    found: AbstractAsyncContextManager[Any] = talking(start=clerk, **config)
    return found


async def test_the_service_is_given_the_servers_and_the_page_is_not(
    talking: Talk, clerk: dict[str, str]
) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        update = await upstream.expect("session.update")
        assert update["session"]["tools"] == [{"type": "mcp", "require_approval": "always", **SERVER}]
        told = json.dumps(page.seen)
        assert TOKEN not in told
        assert "shop.example" not in told


async def test_a_preview_service_is_given_no_servers(talking: Talk, clerk: dict[str, str]) -> None:
    async with talking(Dialect.PREVIEW, start=clerk) as (_, upstream):
        update = await upstream.expect("session.update")
        assert "mcp" not in json.dumps(update["session"]["tools"])


async def test_a_service_that_refuses_servers_is_asked_without_them(
    talking: Talk, clerk: dict[str, str]
) -> None:
    def prepare(service: Service) -> None:
        service.refuse_if = '"mcp"'
        service.refuse_with = f"Invalid value: 'mcp' with {TOKEN}."

    async with talking(start=clerk, prepare=prepare) as (page, upstream):
        first = await upstream.expect("session.update")
        second = await upstream.expect("session.update")
        assert "mcp" in json.dumps(first)
        assert "mcp" not in json.dumps(second)
        assert [event["code"] for event in page.seen if event["type"] == "notice"] == ["mcp_refused"]
        assert TOKEN not in json.dumps(page.seen)


async def test_a_list_that_failed_is_told_and_the_conversation_goes_on(
    talking: Talk, clerk: dict[str, str]
) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        listed = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "shop", "tools": []}
        await upstream.send(
            {"type": "mcp_list_tools.in_progress", "item_id": "mcpl_1"},
            {"type": "conversation.item.added", "item": listed},
            {"type": "conversation.item.done", "item": {**listed, "error": f"No. {TOKEN}"}},
            {"type": "mcp_list_tools.failed", "item_id": "mcpl_1"},
        )
        told = await page.until("notice")
        assert (told["code"], told["server_label"]) == ("mcp_tools_unavailable", "shop")
        assert TOKEN not in json.dumps(page.seen)
        await answer(upstream, page, 100, "Good day.")


async def test_an_allowed_call_is_run_followed_and_kept(talking: Talk, clerk: dict[str, str]) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        ready = page.seen[-1]
        await ask(upstream)
        asked = await page.until("approval.requested")
        assert (asked["name"], asked["arguments"], asked["timeout_ms"]) == ("cancel", ARGUMENTS, 60_000)
        # Audio goes on in both directions while the question is open.
        await page.socket.send_to(bytes_data=b"\1\0" * 480)
        await upstream.expect("input_audio_buffer.append")
        await allow(page)
        sent = (await upstream.expect("conversation.item.create"))["item"]
        assert (sent["type"], sent["approval_request_id"]) == ("mcp_approval_response", "mcpr_1")
        assert sent["approve"] is True
        await bring(upstream, output="Cancelled.")
        await upstream.expect("response.create")
        await answer(upstream, page, 100, "It is cancelled.")
        assert len(upstream.sent_to_me("response.create")) == 1
        assert await calls_made(ready) == [("mcp_1", "completed")]
        assert told_of_calls(page) == ["started", "delta", "completed"]


async def test_a_failed_call_is_a_state_and_not_the_end(talking: Talk, clerk: dict[str, str]) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        ready = page.seen[-1]
        await ask(upstream)
        await page.until("approval.requested")
        await allow(page)
        await bring(upstream, error={"type": "http_error", "code": 500, "message": "Broken."})
        await page.until("response.tool_call.error")
        await upstream.expect("response.create")
        assert await calls_made(ready) == [("mcp_1", "failed")]
        assert told_of_calls(page) == ["started", "delta", "error"]


async def test_a_question_nobody_answers_is_refused_and_audio_plays_on(
    talking: Talk, clerk: dict[str, str]
) -> None:
    async with clerks(talking, clerk, approval_s=5) as (page, upstream):
        await ask(upstream)
        await page.until("approval.requested")
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.say("Meanwhile.", b"\1\0" * 24_000, "resp_2", "item_a2")
        await pass_time(6)
        assert (await page.until("approval.settled"))["outcome"] == "timed_out"
        assert (await page.until("notice"))["code"] == "approval_timed_out"
        sent = (await upstream.expect("conversation.item.create"))["item"]
        assert sent["approve"] is False
        await page.hear(48_000)
        assert bytes(page.audio) == b"\1\0" * 24_000
        await allow(page)
        assert (await page.until("error"))["error"]["code"] == "approval_already_settled"


async def test_the_users_speech_does_not_answer_a_question(talking: Talk, clerk: dict[str, str]) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        await ask(upstream)
        await page.until("approval.requested")
        await upstream.user_turn("wait a moment")
        await page.until("conversation.item.input_audio_transcription.completed")
        await allow(page, approve=False)
        assert (await page.until("approval.settled"))["outcome"] == "denied"
        assert (await upstream.expect("conversation.item.create"))["item"]["approve"] is False


async def test_a_page_that_comes_back_finds_the_question(
    talking: Talk, clerk: dict[str, str], signed_in: dict[str, Any]
) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        ready = page.seen[-1]
        await page.socket.disconnect()
        page.closed = 1006
        await ask(upstream)
        again = Page(signed_in)
        await again.connect(resume={"session_id": ready["session_id"], "seq": page.seq})
        await again.until("approval.requested")
        await allow(again)
        assert (await upstream.expect("conversation.item.create"))["item"]["approve"] is True
        await again.hang_up()


async def test_a_lost_service_withdraws_the_question(talking: Talk, clerk: dict[str, str]) -> None:
    async with clerks(talking, clerk) as (page, upstream):
        await ask(upstream)
        await page.until("approval.requested")
        await upstream.drop()
        assert (await page.until("approval.settled"))["outcome"] == "withdrawn"
        assert (await page.until("notice"))["code"] == "approval_withdrawn"
        await pass_time(0.5)
        await page.until("session.updated")
        # Nothing of MCP is among what the new connection is told.
        restored = [event["item"]["type"] for event in upstream.sent_to_me("conversation.item.create")]
        assert restored == []
        await allow(page)
        assert (await page.until("error"))["error"]["code"] == "approval_already_settled"
