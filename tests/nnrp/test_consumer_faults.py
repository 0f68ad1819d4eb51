"""Clients of ``/nnrp`` that break the rules, come without a token, or meet a server that stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator

import pytest
import websockets

from tests.fuzz_nnrp import fuzz
from tests.parts.chat_server import text
from tests.parts.clock import pass_time
from tests.parts.nnrp_parts import TOKEN, Door, Endless, Scripted, body, nnrp_app, serving, steady
from tests.parts.nnrp_talk import begin, raw, received, submit, talking
from tests.parts.sockets import PatientSocket
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.nnrp import OperationDropped, connect
from voiceapp.errors import UpstreamClosed
from voiceapp.nnrp import consumer, wire
from voiceapp.nnrp.data_layouts import DropReason
from voiceapp.nnrp.wire import MessageType
from voiceapp.types import JsonObject


async def test_malformed_packets_get_an_error_and_harm_nobody() -> None:
    endless = Endless()
    async with (
        serving(nnrp_app(Door(Scripted(endless)))) as url,
        raw(url) as socket,
        connect(url, TOKEN) as neighbour,
    ):
        beside = (await (await neighbour.open_session()).start(body())).events()
        await anext(beside)
        await begin(socket)
        await submit(socket, body())
        packet = wire.encode(MessageType.PING)
        for bad in (b"", packet[:-1], b"X" + packet[1:], packet + b"?", "text", bytes(5 * 1024 * 1024)):
            await socket.send(bad)
            while (answer := await received(socket)).type is not MessageType.ERROR:
                assert answer.type is MessageType.PARTIAL_RESULT
            assert answer.body
        await socket.send(packet)
        while (answer := await received(socket)).type is not MessageType.PONG:
            assert answer.type is MessageType.PARTIAL_RESULT
        assert (await anext(beside))["delta"] == "word "


async def test_a_client_that_never_says_hello_is_sent_away() -> None:
    async with serving(nnrp_app(Door(Scripted(steady)))) as url, raw(url) as socket:
        await pass_time(consumer.HELLO_S)
        assert (await received(socket)).type is MessageType.ERROR
        with pytest.raises(websockets.ConnectionClosed) as caught:
            await received(socket)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4002


@pytest.mark.parametrize("query", ["", "?token=va_other"])
async def test_nobody_comes_in_without_a_token(query: str) -> None:
    async with serving(nnrp_app(Door(Scripted(steady)))) as url:
        with pytest.raises(websockets.InvalidStatus) as caught:
            async with websockets.connect(url + query, open_timeout=PATIENCE_S):
                pass
    assert caught.value.response.status_code == 401
    assert b"not_authorized" in (caught.value.response.body or b"")


async def test_a_server_that_cannot_answer_by_http_closes_with_a_code() -> None:
    # Daphne has no extension for it.
    socket = PatientSocket(nnrp_app(Door(Scripted(steady))), "/nnrp")
    assert await socket.connect() == (False, 4001)


async def test_a_stopping_server_lets_operations_end_and_says_goodbye() -> None:
    endless, may_end = Endless(pause_s=1), asyncio.Event()

    async def script(asked: JsonObject) -> AsyncGenerator[JsonObject]:
        if asked["model"] == "endless":
            async for one in endless(asked):
                yield one
        yield text("a")
        await may_end.wait()
        yield text("b", finish_reason="stop")

    async with talking(script) as (client, _, app):
        session = await client.open_session()
        short, long = await session.start(body()), await session.start(body(model="endless"))
        ending_soon = short.events()
        await anext(ending_soon)
        draining = asyncio.create_task(app.drain())
        await asyncio.sleep(0)
        late = await (await session.start(body())).result()
        assert late["error"]["code"] == "backend_overload"
        await pass_time(consumer.DRAIN_S / 2)
        assert not draining.done()
        may_end.set()
        assert [event["type"] async for event in ending_soon][-1] == "response.completed"
        await pass_time(consumer.DRAIN_S)
        with pytest.raises(OperationDropped) as caught:
            await long.result()
        assert caught.value.reason == DropReason.TRANSPORT_CLOSED
        await draining
        with pytest.raises(UpstreamClosed, match="server_stopping"):
            await client.open_session()


async def test_broken_packets_raise_nothing_and_disturb_nobody() -> None:
    def more(seen: Counter[str]) -> bool:
        return seen["sent"] < 1000 or min(seen[kind] for kind in ("undisturbed", "ERROR", "RESULT_PUSH")) < 2

    found = await fuzz(more, seed=7, patience_s=PATIENCE_S)
    assert found["problems"] == []
    assert found["seen"]["undisturbed"] >= 2
