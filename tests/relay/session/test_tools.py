"""Tools that ask first, say what they do and have side effects, through the page's socket."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, call, calls_made
from tests.parts.scripted import Service
from voiceapp.records.models import Assistant
from voiceapp.relay.session.tools import PROGRESS_S, Progress
from voiceapp.tools.registry import ToolContext, ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


class Bank:
    """Tools of one test, and what they did."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.gate = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.tools = ToolRegistry()
        self.tools.add(self.pay, needs_approval=True, progress="Paying…")
        self.tools.add(self.look, progress="Looking that up…")

    async def pay(self, amount: int, context: ToolContext) -> str:
        """Pay an amount."""
        self.paid.append(context.idempotency_key)
        return f"Paid {amount}."

    async def look(self, context: ToolContext) -> str:
        """Look something up."""
        context.progress("Nearly there…")
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "Found."


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    made = Bank()
    monkeypatch.setattr("voiceapp.relay.session.live.registry", made.tools)
    return made


@pytest.fixture
async def teller(transactional_db: None, bank: Bank) -> dict[str, str]:
    await Assistant.objects.acreate(slug="teller", name="Teller", tools=["pay", "look"])
    return {"assistant": "teller"}


async def asked(page: Page, upstream: Service, number: int = 1) -> str:
    """Let the model want to pay; return the question's id."""
    await call(upstream, number, '{"amount": 5}', name="pay")
    question = await page.until("approval.requested")
    assert (question["name"], question["server_label"]) == ("pay", "")
    return str(question["approval_request_id"])


async def answer_it(page: Page, request: str, *, approve: bool) -> None:
    item = {"type": "mcp_approval_response", "approval_request_id": request, "approve": approve}
    await page.send({"type": "conversation.item.create", "item": item})


async def test_a_tool_that_asks_runs_once_it_is_allowed(
    talking: Talk, teller: dict[str, str], bank: Bank
) -> None:
    async with talking(start=teller) as (page, upstream):
        request = await asked(page, upstream)
        assert bank.paid == []
        await answer_it(page, request, approve=True)
        assert (await page.until("tool.progress"))["message"] == "Paying…"
        output = (await upstream.expect("conversation.item.create"))["item"]
        assert (output["type"], output["output"]) == ("function_call_output", "Paid 5.")
        await page.until("response.tool_call.completed")
        await upstream.expect("response.create")
        await answer_it(page, request, approve=True)
        assert (await page.until("error"))["error"]["code"] == "approval_already_settled"
        assert len(bank.paid) == 1


@pytest.mark.parametrize("how", ["denied", "timed_out"])
async def test_a_tool_that_is_not_allowed_never_runs(
    talking: Talk, teller: dict[str, str], bank: Bank, how: str
) -> None:
    async with talking(start=teller, approval_s=5) as (page, upstream):
        ready = page.seen[-1]
        request = await asked(page, upstream)
        if how == "denied":
            await answer_it(page, request, approve=False)
        else:
            await pass_time(6)
        assert (await page.until("approval.settled"))["outcome"] == how
        output = json.loads((await upstream.expect("conversation.item.create"))["item"]["output"])
        assert output["error"]["code"] == "not_approved"
        await upstream.expect("response.create")
        assert (await page.until("response.tool_call.error"))["error"]["code"] == "not_approved"
        assert bank.paid == []
        assert await calls_made(ready) == [("call_1", "denied")]


async def test_barge_in_neither_cancels_nor_repeats_a_side_effect(
    talking: Talk, teller: dict[str, str], bank: Bank
) -> None:
    async with talking(start=teller) as (page, upstream):
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await call(upstream, 1, "{}", name="look")
        await page.until("tool.progress", message="Nearly there…")
        await upstream.user_turn("stop")
        cancelled = {"id": "resp_1", "status": "cancelled", "output": []}
        await upstream.send({"type": "response.done", "response": cancelled})
        await page.until("response.done")
        assert not bank.cancelled.is_set()
        bank.gate.set()
        assert (await upstream.expect("conversation.item.create"))["item"]["output"] == "Found."


async def test_hanging_up_cancels_what_runs(talking: Talk, teller: dict[str, str], bank: Bank) -> None:
    async with talking(start=teller) as (page, upstream):
        await call(upstream, 1, "{}", name="look")
        await page.until("tool.progress")
        await page.hang_up()
        assert bank.cancelled.is_set()


async def test_a_call_repeated_by_the_next_connection_runs_once(
    talking: Talk, teller: dict[str, str], bank: Bank
) -> None:
    async with talking(start=teller) as (page, upstream):
        await answer_it(page, await asked(page, upstream), approve=True)
        await upstream.expect("conversation.item.create")
        await upstream.drop()
        await page.until("notice", code="upstream_reconnecting")
        await pass_time(0.5)
        await page.until("session.updated")
        begun = len(page.seen)
        await call(upstream, 1, '{"amount": 5}', name="pay")
        await upstream.user_turn("go on")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert len(bank.paid) == 1
        kinds = {event["type"] for event in page.seen[begun:]}
        assert not {"approval.requested", "response.tool_call.started"} & kinds


async def test_what_a_tool_brings_while_the_service_is_away_reaches_the_next_one(
    talking: Talk, teller: dict[str, str], bank: Bank
) -> None:
    async with talking(start=teller) as (page, upstream):
        await call(upstream, 1, "{}", name="look")
        await page.until("tool.progress")
        await upstream.drop()
        await page.until("notice", code="upstream_reconnecting")
        bank.gate.set()
        await pass_time(0.5)
        await page.until("session.updated")
        made = (await upstream.expect("conversation.item.create"))["item"]
        output = (await upstream.expect("conversation.item.create"))["item"]
        assert (made["type"], made["call_id"]) == ("function_call", "call_1")
        assert (output["type"], output["output"]) == ("function_call_output", "Found.")
        await upstream.expect("response.create")


async def test_a_tool_that_chatters_does_not_flood_the_page() -> None:
    shown: list[str] = []
    progress = Progress("call_1", lambda told: shown.append(json.loads(told.text)["message"]))
    for number in range(10_000):
        progress.tell(str(number))
    await pass_time(PROGRESS_S)
    assert shown == ["0", "9999"]
    progress.tell("at last")
    progress.end()
    await pass_time(PROGRESS_S)
    assert shown == ["0", "9999"], "the call has ended"
