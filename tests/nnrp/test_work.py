"""What ends an operation of ``/nnrp`` early, and what a client may ask for at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.parts.chat_server import chat_server, sse, text
from tests.parts.clock import pass_time, until_still
from tests.parts.nnrp_parts import TOKEN, Door, Endless, Scripted, body, nnrp_app, remote, serving, steady
from tests.parts.nnrp_talk import WIDE, begin, raw, received, submit, talking
from tests.parts.places import ROOT
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.clients.nnrp import OperationDropped, connect
from voiceapp.errors import RemoteProtocolError, UpstreamClosed, UpstreamRefused
from voiceapp.nnrp import consumer, operations, packet_queue, profile, wire, work
from voiceapp.nnrp.connection import MAX_FAULTS
from voiceapp.nnrp.consumer import Connections, NnrpConsumer
from voiceapp.nnrp.data_layouts import DropReason, Scheduling, Status
from voiceapp.nnrp.replies import MAX_REPLY_CHARS
from voiceapp.nnrp.wire import MessageType
from voiceapp.nnrp.work import OPERATION_S
from voiceapp.types import JsonObject

# -- cancellation and time ------------------------------------------------------------------------------


async def test_a_cancel_ends_the_request_behind() -> None:
    async with (
        chat_server(script=sse(text("Once ")), hold=asyncio.Event()) as chat,
        serving(nnrp_app(Door(remote(chat.base_url)))) as url,
        connect(url, TOKEN) as client,
    ):
        session = await client.open_session()
        running = await session.start(body())
        events = running.events()
        assert (await anext(events))["delta"] == "Once "
        await running.cancel()
        with pytest.raises(OperationDropped) as caught:
            await anext(events)
        assert caught.value.reason == DropReason.PEER_CANCELLED
        # It would hold its answer for ever.
        async with asyncio.timeout(PATIENCE_S):
            await chat.left.wait()


async def test_a_client_that_goes_away_ends_its_requests() -> None:
    endless = Endless()
    door = Door(Scripted(endless))
    async with serving(nnrp_app(door)) as url:
        async with raw(url) as socket:
            await begin(socket)
            await submit(socket, body())
            assert (await received(socket)).type is MessageType.PARTIAL_RESULT
        async with asyncio.timeout(PATIENCE_S):
            await endless.closed.wait()
        await wait_until(lambda: bool(door.charged))
    assert door.charged[0][1] > 0


async def test_enough_events_cancel_an_operation_from_this_side() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _):
        running = await (await client.open_session()).start(body(), policy={"cancel_after_events": 3})
        events = [event async for event in running.events()]
        async with asyncio.timeout(PATIENCE_S):
            await endless.closed.wait()
    assert [event["type"] for event in events[:-1]] == ["response.output_text.delta"] * 3
    assert events[-1] == {"type": "response.cancelled", "reason": "cancel_after_events"}


async def test_a_time_out_ends_an_operation() -> None:
    endless = Endless(pause_s=1)
    async with talking(endless) as (client, _, _):
        running = await (await client.open_session()).start(body(), policy={"timeout_ms": 60_000})
        events = running.events()
        await anext(events)
        await pass_time(50)
        assert not endless.closed.is_set()
        await pass_time(11)
        event = [event async for event in events][-1]
        assert event["error"]["code"] == "request_timeout"
        assert endless.closed.is_set()


async def test_a_deadline_ends_an_operation() -> None:
    endless = Endless()
    async with serving(nnrp_app(Door(Scripted(endless)))) as url, raw(url) as socket:
        await begin(socket)
        await submit(socket, body())
        assert (await received(socket)).type is MessageType.PARTIAL_RESULT
        deadline = Scheduling(operation_id=1, deadline_unix_ms=int(time.time() * 1000))
        await socket.send(wire.encode(MessageType.DEADLINE, deadline, session_id=1, frame_id=1))
        while (packet := await received(socket)).type is MessageType.PARTIAL_RESULT:
            pass
    metadata: Any = packet.metadata
    assert metadata.status_code == Status.TIMEOUT


# -- limits and neighbours ------------------------------------------------------------------------------


async def test_limits_hold_and_their_neighbours_do_not_notice() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _):
        session, other = await client.open_session(max_operations=2), await client.open_session()
        running = [await session.start(body()) for _ in range(2)]
        refused = await (await session.start(body())).result()
        assert refused["error"]["code"] == "adapter_operation_limit"
        beside = await other.start(body(), policy={"cancel_after_events": 2})
        assert (await beside.result())["type"] == "response.cancelled"
        for one in running:
            await one.cancel()
            with pytest.raises(OperationDropped):
                await one.result()


async def test_an_operation_waits_for_a_place_among_its_tokens_requests() -> None:
    endless = Endless()
    async with talking(endless, at_once=1) as (client, _, _):
        session = await client.open_session()
        first = await session.start(body())
        events = first.events()
        await anext(events)
        second = await session.start(body(), policy={"cancel_after_events": 1})
        await first.cancel()
        assert (await second.result())["type"] == "response.cancelled"


async def test_who_waits_too_long_for_a_place_is_told_so() -> None:
    endless = Endless(pause_s=1)
    async with talking(endless, at_once=1) as (client, _, _):
        session = await client.open_session()
        first = await session.start(body())
        await anext(first.events())
        waiting = await session.start(body())
        await pass_time(work.QUEUE_S)
        second = await waiting.result()
        assert second["error"]["code"] == "backend_overload"
        assert second["error"]["type"] == "rate_limit_error"


async def test_requests_a_minute_are_counted() -> None:
    async with talking(steady, per_minute=2) as (client, _, _):
        session = await client.open_session()
        kinds = [(await (await session.start(body())).result())["type"] for _ in range(3)]
    assert kinds == ["response.completed", "response.completed", "response.error"]


async def test_a_token_that_is_switched_off_opens_nothing_more() -> None:
    async with talking(steady) as (client, door, _):
        session = await client.open_session()
        assert (await (await session.start(body())).result())["type"] == "response.completed"
        door.holder = None
        running = await session.start(body())
        with pytest.raises((RemoteProtocolError, UpstreamClosed)):
            await running.result()


async def test_a_token_has_a_bounded_number_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "MAX_TOKEN_CONNECTIONS", 1)
    async with serving(nnrp_app(Door(Scripted(steady)))) as url:
        async with connect(url, TOKEN):
            with pytest.raises(UpstreamRefused, match="429"):
                async with connect(url, TOKEN):
                    pass
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    async with connect(url, TOKEN) as client:
                        await client.open_session()
                        break
                except UpstreamRefused:
                    await asyncio.sleep(0.01)


async def test_a_client_that_does_not_read_is_bounded_and_sent_away() -> None:
    made = 0

    async def flood(_: JsonObject) -> AsyncGenerator[JsonObject]:
        nonlocal made
        while True:
            made += 1
            yield text("x" * 10_000)
            await asyncio.sleep(0)

    connections = Connections(Door(Scripted(flood)))
    async with serving(NnrpConsumer.as_asgi(among=connections)) as url, raw(url, max_queue=1) as socket:
        await begin(socket)
        for number in range(operations.MAX_OPERATIONS):
            if number % operations.MAX_SESSION_OPERATIONS == 0 and number:
                await socket.send(wire.encode(MessageType.SESSION_OPEN, WIDE))
            session = number // operations.MAX_SESSION_OPERATIONS + 1
            await submit(socket, body(), number + 1, session=session, nnrp={"diagnostics": True})
        socket.transport.pause_reading()
        await until_still(lambda: made)
        await pass_time(consumer.SEND_S + 1)
        async with asyncio.timeout(PATIENCE_S):
            while connections:
                await asyncio.sleep(0.05)
        socket.transport.abort()
    # The operations would bring 60 MB; the sockets of both sides hold some, and we a megabyte.
    assert 1_000_000 < made * 20_000 < 20_000_000


# -- faults ---------------------------------------------------------------------------------------------


def test_the_limits_in_the_manual_are_those_in_force() -> None:
    manual = (ROOT / "docs" / "nnrp.md").read_text()
    rows = {
        "connections of one process / of one token": (
            f"{consumer.MAX_CONNECTIONS} / {consumer.MAX_TOKEN_CONNECTIONS}"
        ),
        "sessions of one connection": f"{operations.MAX_SESSIONS}",
        "operations at once, of one connection / of one session": (
            f"{operations.MAX_OPERATIONS} / {operations.MAX_SESSION_OPERATIONS}"
        ),
        "wait of an operation whose token has as many requests under way as it may": f"{work.QUEUE_S:g} s",
        "body of a submit / of any packet": (
            f"{profile.MAX_REQUEST_BYTES // 1024**2} MiB / {wire.MAX_BODY_BYTES // 1024**2} MiB"
        ),
        "text of one answer": f"{MAX_REPLY_CHARS:,} characters",
        "longest `timeout_ms` / time of an operation that has none": (
            f"{profile.MAX_TIMEOUT_MS // 1000} s / {OPERATION_S:g} s"
        ),
        f"packets waiting for a slow reader, who is sent away after {consumer.SEND_S:g} s": (
            f"{packet_queue.MAX_PACKETS}, or {packet_queue.MAX_BYTES // 1024**2} MiB"
        ),
        "faulty packets until the connection is closed": f"{MAX_FAULTS}",
    }
    for what, number in rows.items():
        assert f"| {what} | {number} |" in manual
