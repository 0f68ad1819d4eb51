"""The link to a host and the provider that thinks by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.hosts import COMPLETED, REQUEST, delta
from tests.parts.waits import PATIENCE_S
from voiceapp.errors import TextEngineError
from voiceapp.text.model_host import link
from voiceapp.text.model_host.link import HostLink
from voiceapp.text.model_host.provider import ModelHostProvider, model_hosts
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
)

pytestmark = pytest.mark.django_db(transaction=True)


class Wire:
    """A link without a socket: what the app sends is kept, what a host would send is given."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.link = HostLink(self._send)

    async def _send(self, message: str) -> None:
        self.sent.put_nowait(json.loads(message))

    async def give(self, **fields: Any) -> None:
        await self.link.receive(json.dumps(fields))

    async def asked(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            return await self.sent.get()

    async def serve(
        self, *events: Any, metadata: dict[str, str] | None = None, early: bool = False
    ) -> dict[str, Any]:
        request = await self.asked()
        params: dict[str, Any] = request["params"]
        ids = {k: v for k, v in params.items() if k != "request"}
        accepted = {"id": request["id"], "result": {"accepted": True, "rejectionReason": None}}
        if not early:
            await self.give(**accepted)
        if metadata:
            await self.give(method="model/streamMetadata", params={**ids, "metadata": metadata})
        for event in events:
            await self.give(method="model/streamEvent", params={**ids, "event": event})
        if early:
            await self.give(**accepted)
        return params


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    await made.give(id=1, method="initialize", params={"clientInfo": {"name": "x"}})
    await made.give(method="initialized")
    await made.asked()
    model_hosts().connect(1, made.link)
    yield made
    model_hosts().disconnect(1, made.link)


async def replied(provider: ModelHostProvider, request: ReplyRequest = REQUEST) -> list[Delta]:
    return [found async for found in provider.reply(request)]


async def test_events_that_come_before_the_acceptance_are_not_lost(wire: Wire) -> None:
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve(delta("Early."), COMPLETED, early=True)
    assert await reply == [TextDelta("Early."), Finished("stop", 5, 2)]


async def test_a_turns_state_goes_back_within_the_turn_only(wire: Wire) -> None:
    provider = ModelHostProvider(1, "t", 5)
    called = (Said("user", "x"), Called("c1", "look", "{}"), Returned("c1", "5"))
    seen = []
    for history in (REQUEST.history, called, REQUEST.history):
        reply = asyncio.create_task(replied(provider, replace(REQUEST, history=history)))
        seen.append(
            await wire.serve(
                delta("Hi"), COMPLETED, metadata={"X-Codex-Turn-State": "sticky", "unknown": "x"}
            )
        )
        await reply
    assert [params["requestId"].rsplit("-", 1)[1] for params in seen] == ["1", "2", "1"]
    assert seen[0]["turnId"] == seen[1]["turnId"] != seen[2]["turnId"]
    assert [params["request"].get("requestHeaders") for params in seen] == [
        None, {"x-codex-turn-state": "sticky"}, None,
    ]  # fmt: skip


async def test_tool_calls_come_in_deltas_or_whole(wire: Wire) -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": ""}
    whole = {**item, "call_id": "c2", "arguments": '{"b": 2}'}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a": 1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": '{"a": 1}'}},
        {"type": "response.output_item.done", "output_index": 1, "item": whole},
        {"type": "response.some_news", "x": 1}, 5, COMPLETED,
    ]  # fmt: skip
    tools = (FunctionTool("look", "Look", {"type": "object", "properties": {}}),)
    reply = asyncio.create_task(
        replied(ModelHostProvider(1, "t", 5), replace(REQUEST, tools=tools, tool_choice="look"))
    )
    params = await wire.serve(*events)
    assert params["request"]["toolChoice"] == {"type": "function", "name": "look"}
    assert await reply == [
        CallStarted(0, "c1", "look"), CallArguments(0, '{"a":'), CallArguments(0, " 1}"), CallFinished(0),
        CallStarted(1, "c2", "look"), CallArguments(1, '{"b": 2}'), CallFinished(1), Finished("stop", 5, 2),
    ]  # fmt: skip


async def test_a_text_without_deltas_is_taken_from_its_item(wire: Wire) -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "All at once."}]}
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve({"type": "response.output_item.done", "output_index": 0, "item": item}, COMPLETED)
    assert (await reply)[0] == TextDelta("All at once.")


@pytest.mark.parametrize(
    ("event", "code", "told"),
    [
        ({"type": "response.completed", "response": {}}, "model_host_error", "no response id"),
        ({"type": "response.completed"}, "model_host_error", "no response id"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            "model_host_incomplete", "content_filter",
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "limit", "message": "Slow down."}}},
            "model_host_error", "Slow down.",
        ),
        ({"type": "error", "code": "x", "message": "Broken."}, "model_host_error", "Broken."),
    ],
)  # fmt: skip
async def test_responses_that_end_badly(wire: Wire, event: Any, code: str, told: str) -> None:
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve(event)
    with pytest.raises(TextEngineError, match=told) as failed:
        await reply
    assert failed.value.code == code


async def test_a_slow_reader_holds_the_hosts_socket_back_and_loses_nothing(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "MAX_QUEUED", 4)
    reply = ModelHostProvider(1, "t", 5).reply(REQUEST)
    first = asyncio.ensure_future(anext(reply))
    serving = asyncio.create_task(wire.serve(*[delta(f"{n} ") for n in range(50)], COMPLETED))
    assert await first == TextDelta("0 ")
    # The host cannot go on: the queue is full and nobody reads.
    await pass_time(1)
    assert not serving.done()
    rest = [found async for found in reply]
    await serving
    assert rest == [*(TextDelta(f"{n} ") for n in range(1, 50)), Finished("stop", 5, 2)]


async def test_a_reader_that_leaves_frees_the_hosts_socket(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "MAX_QUEUED", 2)
    reply: Any = ModelHostProvider(1, "t", 5).reply(REQUEST)
    first = asyncio.ensure_future(anext(reply))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.serve(*[delta("x") for _ in range(50)], COMPLETED))
        await first
        await reply.aclose()
