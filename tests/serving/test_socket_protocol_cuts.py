"""However the bytes of a socket are cut, its messages are the same: the protocol is driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState

from tests.parts.raw_sockets import BINARY, CONT, PING, PONG, TEXT, frame
from tests.serving.test_socket_protocol import App, Message
from voiceapp.serving.socket_protocol import LARGE_BYTES, SocketProtocol


async def turn_until(done: Callable[[], bool]) -> None:
    """Let the loop turn until ``done`` says so: nothing here comes from elsewhere."""
    for _ in range(100_000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("It never was.")


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and says whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading, self.closed = True, False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


MESSAGES = st.one_of(
    st.text(max_size=300), st.binary(max_size=300), st.integers(LARGE_BYTES, 70_000).map(bytes)
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Message], bytes, list[int]]:
    """Messages, their bytes on the wire, whole and in fragments and with pings between, and where to cut."""
    messages = draw(st.lists(MESSAGES, max_size=12))
    wire = bytearray()
    for message in messages:
        data = message.encode() if isinstance(message, str) else message
        kind = TEXT if isinstance(message, str) else BINARY
        cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
        parts = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        for number, part in enumerate(parts):
            if draw(st.booleans()):
                wire += frame(PING, b"ping")
            wire += frame(CONT if number else kind, part, fin=number == len(parts) - 1)
    return messages, bytes(wire), sorted(draw(st.lists(st.integers(0, len(wire)), max_size=10)))


@given(conversations())
def test_however_the_bytes_are_cut_the_messages_are_the_same(
    conversation: tuple[list[Message], bytes, list[int]],
) -> None:
    messages, wire, cuts = conversation

    async def run() -> None:
        app, transport = App(), Wire()
        protocol = SocketProtocol(
            uvicorn.Config(app, ws_max_size=2**20, lifespan="off", log_config=None), ServerState(), {}
        )
        protocol.connection_made(transport)
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13"
        head = f"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n\r\n"
        protocol.data_received(head.encode())
        await turn_until(lambda: protocol.handshake_complete)
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            await turn_until(lambda: transport.reading)
            protocol.data_received(wire[start:end])
        await turn_until(lambda: len(app.taken) == len(messages))
        assert app.taken == messages
        await turn_until(
            lambda: (
                transport.written.count(frame(PONG, b"ping", masked=False))
                == wire.count(frame(PING, b"ping"))
            )
        )
        protocol.connection_lost(None)
        await turn_until(lambda: app.ends != [])

    asyncio.run(run())
