"""``/nnrp`` with a scripted engine behind it, and our own client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import websockets

from tests.parts.nnrp_parts import TOKEN, Door, Scripted, request, serving
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.nnrp import NnrpClient, connect
from voiceapp.nnrp import layouts, profile, wire
from voiceapp.nnrp.consumer import Connections, NnrpConsumer
from voiceapp.nnrp.wire import MessageType
from voiceapp.types import JsonObject


@asynccontextmanager
async def talking(script: Any, **door: Any) -> AsyncIterator[tuple[NnrpClient, Door, Connections]]:
    """A server with a scripted engine, and a client of it."""
    backing = Door(Scripted(script), **door)
    connections = Connections(backing)
    app = NnrpConsumer.as_asgi(among=connections)
    async with serving(app) as url, connect(url, TOKEN) as client:
        yield client, backing, connections


WIDE = layouts.SessionOpen(max_in_flight_operations=99)


@asynccontextmanager
async def raw(url: str, **options: Any) -> AsyncIterator[websockets.ClientConnection]:
    async with websockets.connect(
        f"{url}?token={TOKEN}", compression=None, max_size=None, open_timeout=PATIENCE_S, **options
    ) as socket:
        yield socket


async def received(socket: websockets.ClientConnection) -> wire.Packet:
    async with asyncio.timeout(PATIENCE_S):
        data = await socket.recv()
    assert isinstance(data, bytes)
    return wire.decode(data)


async def begin(socket: websockets.ClientConnection) -> None:
    await socket.send(wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello()))
    assert (await received(socket)).type is MessageType.SERVER_HELLO_ACK
    await socket.send(wire.encode(MessageType.SESSION_OPEN, WIDE))
    assert (await received(socket)).header.session_id == 1


async def submit(
    socket: websockets.ClientConnection, asked: JsonObject, number: int = 1, session: int = 1, **fields: Any
) -> None:
    envelope = {**request(), "body": asked, **fields}
    metadata, packed = profile.write_submit(number, envelope)
    await socket.send(
        wire.encode(MessageType.FRAME_SUBMIT, metadata, packed, session_id=session, frame_id=number)
    )
