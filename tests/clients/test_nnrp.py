"""The small client of ``/nnrp``: what it makes of servers that refuse, break rules, or are not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
import websockets

from tests.parts.waits import PATIENCE_S
from voiceapp.clients import nnrp as client_module
from voiceapp.clients.nnrp import OperationDropped, connect
from voiceapp.errors import RemoteProtocolError, UpstreamClosed, UpstreamRefused, VoiceAppError
from voiceapp.nnrp import layouts, wire
from voiceapp.nnrp.data_layouts import DropReason, ResultDrop
from voiceapp.nnrp.wire import MessageType

Socket = websockets.ServerConnection
HELLO = wire.encode(MessageType.SERVER_HELLO_ACK, layouts.ServerHelloAck())
OPENED = wire.encode(MessageType.SESSION_OPEN_ACK, layouts.SessionOpenAck(session_id=1), session_id=1)


@asynccontextmanager
async def server(*answers: bytes, leaves: bool = False, **options: Any) -> AsyncIterator[str]:
    """Serve connections that answer packet after packet so, then say nothing, or leave at the next one."""

    async def answer(socket: Socket) -> None:
        for data in answers:
            await socket.recv()
            await socket.send(data)
        await (socket.recv() if leaves else socket.wait_closed())

    async with websockets.serve(answer, "127.0.0.1", 0, **options) as serving:
        port = next(iter(serving.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/nnrp"


async def refused(url: str, then: Callable[[Any], Awaitable[Any]] | None = None) -> VoiceAppError:
    with pytest.raises(VoiceAppError) as caught:
        async with connect(url, "va_1") as client:
            if then is not None:
                await then(client)
    return caught.value


@pytest.mark.parametrize(
    ("status", "words"),
    [(HTTPStatus.UNAUTHORIZED, "refused the token"), (HTTPStatus.SERVICE_UNAVAILABLE, "status 503")],
)
async def test_a_server_that_refuses_is_a_sentence(status: HTTPStatus, words: str) -> None:
    async def turn_away(socket: Socket, request: Any) -> Any:
        return socket.respond(status, "")

    async with server(process_request=turn_away) as url:
        error = await refused(url)
    assert isinstance(error, UpstreamRefused)
    assert words in error.message


async def test_a_server_that_is_not_there_is_a_sentence() -> None:
    async with server() as url:
        pass
    for address in (url, "nonsense"):
        error = await refused(address)
        assert isinstance(error, UpstreamRefused)
        assert error.message.startswith("The server cannot be reached")


async def test_another_answer_than_the_one_that_is_due_is_a_fault() -> None:
    async with server(OPENED) as url:
        error = await refused(url)
    assert (type(error), error.code) == (RemoteProtocolError, "nnrp_order")


async def test_an_error_packet_is_raised_with_its_words() -> None:
    words = b"No such version."
    metadata = layouts.ErrorPacket(error_code=1, fatal=1, diagnostic_bytes=len(words))
    async with server(wire.encode(MessageType.ERROR, metadata, words)) as url:
        error = await refused(url)
    assert (error.code, error.message) == ("nnrp_unsupported_version", "No such version.")


async def test_a_session_that_is_refused_is_an_error() -> None:
    rejected = layouts.SessionOpenAck(
        session_status=layouts.SessionStatus.RETRY_LATER, session_error_code=0x10007
    )
    async with server(HELLO, wire.encode(MessageType.SESSION_OPEN_ACK, rejected)) as url:
        error = await refused(url, lambda client: client.open_session())
    assert error.code == "session_refused"
    assert "0x10007" in error.message


async def test_an_operation_that_the_server_drops_has_no_result() -> None:
    drop = wire.encode(
        MessageType.RESULT_DROP_REASON,
        ResultDrop(operation_id=1, drop_reason_code=DropReason.PEER_CANCELLED),
        session_id=1,
        frame_id=1,
    )
    async with server(HELLO, OPENED, drop) as url, connect(url, "va_1") as client:
        running = await (await client.open_session()).start({"model": "m", "messages": []})
        with pytest.raises(OperationDropped, match="peer_cancelled") as dropped:
            await running.result()
    assert dropped.value.reason == DropReason.PEER_CANCELLED


async def test_a_connection_that_ends_ends_what_is_under_way() -> None:
    async with server(HELLO, OPENED, leaves=True) as url, connect(url, "va_1") as client:
        running = await (await client.open_session()).start({"model": "m", "messages": []})
        with pytest.raises(UpstreamClosed):
            await running.result()


async def test_a_silent_server_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ANSWER_S", 0.05)
    async with server() as url, asyncio.timeout(PATIENCE_S):
        error = await refused(url)
    assert error.code == "upstream_timeout"
