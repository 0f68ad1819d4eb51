"""A service that floods: others have their turn, what means something is not lost, the rest ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.utils import accept_key

from tests.parts.raw_sockets import BINARY, CLOSE, CONT, PING, PONG, TEXT, RawSocket, frame
from tests.parts.waits import wait_until
from voiceapp.config import UpstreamKind
from voiceapp.errors import UpstreamError
from voiceapp.relay.upstream.connection import Upstream, open_upstream
from voiceapp.relay.upstream.service_socket import MESSAGES_A_TURN
from voiceapp.relay.upstream.target import Target
from voiceapp.serving.budget import IDLE_PACE, SMALL_FRAGMENT_BYTES

CREATED = b'{"type":"session.created","event_id":"e","session":{"id":"s"}}'


class Peer:
    """The relay's connection to a service that sends bytes, and what the relay makes of them."""

    def __init__(self, line: RawSocket) -> None:
        self.line = line
        self.events: list[str] = []
        self.errors: list[UpstreamError] = []
        self.fails_at = 0

    def send(self, *frames: bytes) -> None:
        self.line.send(*frames)

    def take(self, event: Any, text: str) -> None:
        self.events.append(text)
        if len(self.events) == self.fails_at:
            raise KeyError("a fault of ours")


@asynccontextmanager
async def peer() -> AsyncIterator[Peer]:
    """Dial a service on a real socket, up to ``session.created``."""
    accepted: asyncio.Future[RawSocket] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key"))
        accept = accept_key(key.partition(":")[2].strip())
        switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        writer.write(f"{switch}Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        writer.write(frame(TEXT, CREATED, masked=False))
        accepted.set_result(RawSocket(reader, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        upstream, first = await open_upstream(Target(UpstreamKind.AZURE_GA, url, "key"), 60.0)
        made = Peer(await accepted)
        upstream.start(first, made.take, made.errors.append)
        made.events.clear()
        try:
            yield made
        finally:
            await upstream.aclose()
            made.line.writer.close()


def event(number: int) -> bytes:
    return b'{"type":"input_audio_buffer.cleared","event_id":"%d"}' % number


@pytest.fixture
def most_at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages the relay has read in each turn of the loop."""
    turns = [0]
    read = Upstream._message

    def counting(self: Upstream, data: bytes) -> None:
        turns[-1] += 1
        read(self, data)

    monkeypatch.setattr(Upstream, "_message", counting)
    return turns


async def turn_until(turns: list[int], done: Any) -> None:
    async with asyncio.timeout(60):
        while not done():
            turns.append(0)
            await asyncio.sleep(0)


FLOODS = {
    "pings": frame(PING, masked=False),
    "pongs": frame(PONG, b"x", masked=False),
    "empty texts": frame(TEXT, masked=False),
    "empty fragments": frame(CONT, fin=False, masked=False),
    "fragments of a byte": frame(CONT, b"x", fin=False, masked=False),
    "small fragments": frame(CONT, bytes(SMALL_FRAGMENT_BYTES - 1), fin=False, masked=False),
    "braces": frame(TEXT, b"{", masked=False),
    "binary": frame(BINARY, b"\0", masked=False),
}


@pytest.mark.parametrize("what", FLOODS)
async def test_what_means_nothing_ends_the_connection_soon_and_with_one_line_in_the_log(
    most_at_once: list[int], caplog: pytest.LogCaptureFixture, what: str
) -> None:
    async with peer() as service:
        first = [frame(TEXT, b"x", fin=False, masked=False)] if "fragment" in what else []
        service.send(*first, FLOODS[what] * 100_000)
        await turn_until(most_at_once, lambda: service.errors)
    assert service.errors[0].code == "upstream_lost"
    assert len([line for line in caplog.messages if "too much that means nothing" in line]) == 1
    assert max(most_at_once) <= MESSAGES_A_TURN
    # A slow machine gives some back meanwhile.
    assert sum(most_at_once) <= 2 * IDLE_PACE.messages_at_once


async def test_events_of_one_read_come_in_order_in_turns_and_before_the_end(most_at_once: list[int]) -> None:
    async with peer() as service:
        sent = [event(number) for number in range(5_000)]
        service.send(
            *[frame(TEXT, one, masked=False) for one in sent],
            frame(CLOSE, (1000).to_bytes(2), masked=False),
        )
        await turn_until(most_at_once, lambda: service.errors)
    assert [text.encode() for text in service.events] == sent
    assert max(most_at_once) <= MESSAGES_A_TURN
    assert service.errors[0].code == "upstream_closed"


async def test_after_many_events_at_once_the_next_ones_are_read(most_at_once: list[int]) -> None:
    async with peer() as service:
        for start in range(0, 2_000, 500):
            service.send(*[frame(TEXT, event(number), masked=False) for number in range(start, start + 500)])
            await turn_until(most_at_once, lambda end=start + 500: len(service.events) == end)
        assert service.errors == []


async def test_a_large_message_in_pieces_and_pings_between_is_one_message() -> None:
    async with peer() as service:
        text = event(1)[:-1] + b',"x":"' + b"y" * 100_000 + b'"}'
        service.send(frame(TEXT, text[:40_000], fin=False, masked=False), frame(PING, b"a", masked=False))
        service.send(frame(CONT, text[40_000:], masked=False))
        await wait_until(lambda: len(service.events) == 1)
        assert service.events[0].encode() == text
        opcode, size = (await service.line.reader.readexactly(2))[0] & 0x0F, 1
        assert (opcode, size) == (PONG, 1)


@pytest.mark.parametrize("gone", [False, True], ids=["service stays", "service is gone"])
async def test_an_event_that_fails_in_its_turn_ends_the_connection(
    caplog: pytest.LogCaptureFixture, gone: bool
) -> None:
    async with peer() as service:
        service.fails_at = 3 * MESSAGES_A_TURN
        goodbye = frame(CLOSE, (1000).to_bytes(2), masked=False) if gone else b""
        service.send(frame(TEXT, event(1), masked=False) * 200, goodbye)
        await wait_until(lambda: service.errors != [])
        assert len(service.events) == 3 * MESSAGES_A_TURN
    assert "a fault of ours" in caplog.text
