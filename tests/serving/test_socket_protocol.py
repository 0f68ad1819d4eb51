"""The server's WebSocket protocol: what it takes as it is, what it refuses in words, and whom it lets go on.

All over real sockets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import websockets

from tests.parts.clock import pass_time
from tests.parts.quick_server import in_this_loop
from tests.parts.raw_sockets import BINARY, CLOSE, CONT, PING, PONG, TEXT, RawSocket, frame, raw_socket
from tests.parts.waits import wait_until
from voiceapp.serving.budget import IDLE_PACE, SMALL_FRAGMENT_BYTES
from voiceapp.serving.handshake import MAX_HEAD_BYTES
from voiceapp.serving.refusals import Refusals, refusals
from voiceapp.serving.socket_protocol import FRAMES_A_TURN, LARGE_BYTES, MAX_AHEAD, SocketProtocol
from voiceapp.types import Receive, Scope, Send

Message = str | bytes


class App:
    """Accepts sockets and keeps what they bring; takes nothing while ``open`` is not set."""

    def __init__(self) -> None:
        self.taken: list[Message] = []
        self.ends: list[int] = []
        self.scopes: list[Scope] = []
        self.open = asyncio.Event()
        self.open.set()
        self.accept = asyncio.Event()
        self.accept.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        assert (await receive())["type"] == "websocket.connect"
        await self.accept.wait()
        await send({"type": "websocket.accept"})
        while True:
            await self.open.wait()
            event = await receive()
            if event["type"] == "websocket.disconnect":
                self.ends.append(event["code"])
                return
            taken: Message = event["bytes"] if event.get("bytes") is not None else event["text"]
            self.taken.append(taken)
            if taken == "close":
                await send({"type": "websocket.close", "code": 4000, "reason": "asked"})
                return
            if taken == "flood":
                for _ in range(100):
                    await send({"type": "websocket.send", "bytes": bytes(100_000)})


@pytest.fixture
def counted() -> Iterator[Refusals]:
    with refusals.use(Refusals()) as _:
        yield refusals()


@asynccontextmanager
async def talking(app: App, path: str = "/") -> AsyncIterator[RawSocket]:
    async with in_this_loop(app) as address, raw_socket(address, path) as line:
        assert line.status == 101, line.head
        yield line


# -- the handshake ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        [("Cookie", "x" * 9_000)],
        [("Cookie", "x" * 50_000)],
        [("X-Forwarded-Access-Token", "x" * 9_000)],
        [(f"X-{number}", "1") for number in range(300)],
        [("Cookie", "é=ü")],
    ],
    ids=["cookie", "long cookie", "token", "many", "latin-1"],
)
async def test_what_the_server_s_http_takes_its_sockets_take(headers: list[tuple[str, str]]) -> None:
    app = App()
    async with in_this_loop(app) as address, raw_socket(address, "/a%20b?c=d", headers) as line:
        assert line.status == 101
        line.send(frame(TEXT, b"hello"))
        await wait_until(lambda: app.taken == ["hello"])
    (scope,) = app.scopes
    assert (scope["path"], scope["query_string"]) == ("/a b", b"c=d")
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    assert [one for one in scope["headers"] if one in sent] == sent


@pytest.mark.parametrize(
    ("headers", "status", "words", "logged"),
    [
        ([("Cookie", "x" * MAX_HEAD_BYTES)], 431, b"more than 65,536 bytes of headers", "HTTP 431"),
        ([("Content-Length", "3")], 400, b"It has a body.", "HTTP 400"),
        ([("Sec-WebSocket-Version", "12")], 400, b"Sec-WebSocket-Version", "HTTP 400"),
        ([("Sec-WebSocket-Key", "again")], 400, b"Sec-WebSocket-Key", "HTTP 400"),
    ],
)
async def test_other_heads_are_refused_in_words_and_logged(
    counted: Refusals,
    caplog: pytest.LogCaptureFixture,
    headers: list[tuple[str, str]],
    status: int,
    words: bytes,
    logged: str,
) -> None:
    app = App()
    async with in_this_loop(app) as address:
        for _ in range(3):
            async with raw_socket(address, "/", headers) as line:
                assert line.status == status
                assert words in await line.rest()
    assert [record.getMessage() for record in caplog.records if logged in record.getMessage()] != []
    assert len(caplog.records) == 1
    assert app.scopes == []


async def test_who_speaks_before_the_handshake_is_answered_is_cut(counted: Refusals) -> None:
    app = App()
    app.accept.clear()
    async with in_this_loop(app) as address:
        host, port = address.removeprefix("ws://").split(":")
        reader, writer = await asyncio.open_connection(host, port)
        head = [f"GET / HTTP/1.1\r\nHost: {host}", "Upgrade: websocket", "Connection: Upgrade"]
        head += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "", ""]
        writer.write("\r\n".join(head).encode())
        await wait_until(lambda: len(app.scopes) == 1)
        writer.write(frame(PING) * 100_000)
        with pytest.raises(OSError):
            await reader.readexactly(1)
        app.accept.set()
        writer.close()


# -- messages ---------------------------------------------------------------------------------------------


async def test_a_library_talks_with_it() -> None:
    app = App()
    sent: list[Message] = ["a", "ü" * 70_000, b"", "", b"\0" * 960, b"x" * 2_000_000, "close"]
    async with in_this_loop(app) as address, websockets.connect(address, max_size=None) as client:
        for message in sent:
            await client.send(message)
        await (await client.ping())
        await client.wait_closed()
        assert (client.close_code, client.close_reason) == (4000, "asked")
    assert app.taken == sent


async def test_a_message_in_fragments_is_whole() -> None:
    app = App()
    async with talking(app) as line:
        line.send(
            frame(TEXT, "ü".encode()[:1], fin=False),
            frame(PING, b"between"),
            frame(CONT, b"", fin=False),
            frame(CONT, "ü".encode()[1:]),
            frame(BINARY, b"1", fin=False),
            frame(CONT, b"2"),
            frame(TEXT, b"plain"),
        )
        assert await line.frame() == (PONG, b"between")
        await wait_until(lambda: len(app.taken) == 3)
    assert app.taken == ["ü", b"12", "plain"]


BROKEN = {
    "bad UTF-8": ([frame(TEXT, b"\xff")], 1007),
    "bad UTF-8 in fragments": ([frame(TEXT, b"a", fin=False), frame(CONT, b"\xff")], 1007),
    "half a character": ([frame(TEXT, b"\xc3")], 1007),
    "no mask": ([frame(TEXT, b"a", masked=False)], 1002),
    "no mask, empty": ([frame(PING, masked=False)], 1002),
    "reserved bits": ([b"\xf1\x81\0\0\0\0a"], 1002),
    "no such opcode": ([frame(0x3, b"a")], 1002),
    "no such control opcode": ([frame(0xB, b"a")], 1002),
    "a control frame that is long": ([frame(PING, bytes(126))], 1002),
    "a control frame in fragments": ([frame(PING, b"a", fin=False)], 1002),
    "a continuation of nothing": ([frame(CONT, b"a")], 1002),
    "a message within another": ([frame(TEXT, b"a", fin=False), frame(TEXT, b"b")], 1002),
    "an empty one within another": ([frame(TEXT, b"a", fin=False), frame(TEXT)], 1002),
    "too large": ([b"\x82\xff" + (2**40).to_bytes(8)], 1009),
    "too large a number": ([b"\x82\xff" + b"\xff" * 8], 1009),
    "too large in fragments": (
        [frame(BINARY, bytes(1000), fin=False), b"\x80\xff" + (32 * 1024 * 1024 - 999).to_bytes(8)],
        1009,
    ),
    "a goodbye of one byte": ([frame(CLOSE, b"a")], 1002),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_broken_rule_closes_the_socket_with_its_code_and_no_traceback(
    counted: Refusals, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    frames, code = BROKEN[what]
    app = App()
    async with talking(app) as line:
        line.send(frame(TEXT, b"before"), *frames, frame(TEXT, b"after"))
        assert (await line.until_closed())[0] == code
        await wait_until(lambda: len(app.ends) == 1)
    assert app.taken == ["before"]
    assert app.ends == [code]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert all(record.exc_info is None for record in caplog.records)


# -- bounds -----------------------------------------------------------------------------------------------


@pytest.fixture
def frames_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames have been taken in each turn of the loop since somebody looked."""
    taken = [0]
    take = SocketProtocol._take

    def counting(self: SocketProtocol, at: int) -> int:
        size = take(self, at)
        taken[-1] += bool(size)
        return size

    monkeypatch.setattr(SocketProtocol, "_take", counting)
    return taken


FLOODS = {
    "pings": frame(PING),
    "long pings": frame(PING, bytes(125)),
    "pongs": frame(PONG, b"x"),
    "empty texts": frame(TEXT),
    "empty audio": frame(BINARY),
    "empty fragments": frame(CONT, fin=False),
    "fragments of a byte": frame(CONT, b"x", fin=False),
    "small fragments": frame(CONT, bytes(SMALL_FRAGMENT_BYTES - 1), fin=False),
}


@pytest.mark.parametrize("what", FLOODS)
async def test_a_flood_of_idle_frames_ends_the_socket_and_leaves_others_their_turns(
    counted: Refusals, caplog: pytest.LogCaptureFixture, frames_taken: list[int], what: str
) -> None:
    app = App()
    async with talking(app) as line:
        first = [frame(TEXT, b"x", fin=False)] if "fragment" in what else []
        line.send(*first, FLOODS[what] * 100_000)
        closing = asyncio.create_task(line.until_closed())
        while not closing.done():
            frames_taken.append(0)
            await asyncio.sleep(0)
        # With so much unread, the system may reset the line before the goodbye is through.
        assert closing.result() in [(1008, "too_many_frames"), (1006, "")]
        await wait_until(lambda: app.ends == [1008])
    assert max(frames_taken) <= FRAMES_A_TURN
    assert IDLE_PACE.messages_at_once <= sum(frames_taken) <= 2 * IDLE_PACE.messages_at_once
    assert len(caplog.messages) == 1
    assert "1008 (too_many_frames)" in caplog.text


async def test_a_flood_of_tiny_messages_waits_for_the_application_and_others_have_their_turns(
    frames_taken: list[int],
) -> None:
    app = App()
    app.open.clear()
    async with talking(app) as line:
        line.send(frame(TEXT, b"{") * 20_000)
        for _ in range(200):
            await asyncio.sleep(0)
        assert sum(frames_taken) <= MAX_AHEAD
        app.open.set()
        while len(app.taken) < 20_000:
            frames_taken.append(0)
            await asyncio.sleep(0)
    assert max(frames_taken) <= FRAMES_A_TURN


async def test_a_large_message_waits_alone(frames_taken: list[int]) -> None:
    app = App()
    app.open.clear()
    async with talking(app) as line:
        line.send(frame(BINARY, bytes(LARGE_BYTES)) * 3)
        await wait_until(lambda: sum(frames_taken) > 0)
        for _ in range(200):
            await asyncio.sleep(0)
        assert sum(frames_taken) == 1
        app.open.set()
        await wait_until(lambda: len(app.taken) == 3)


async def test_who_does_not_read_is_sent_no_pongs(frames_taken: list[int]) -> None:
    app = App()
    async with talking(app) as line:
        line.reader._transport.pause_reading()  # type: ignore[attr-defined]  # Nothing says it louder.
        line.send(frame(TEXT, b"flood"))
        await wait_until(lambda: sum(frames_taken) == 1)
        for _ in range(200):
            await asyncio.sleep(0)
        line.send(frame(BINARY, b"audio"), frame(PING, b"a"), frame(TEXT, b"behind"))
        for _ in range(200):
            await asyncio.sleep(0)
        # Its audio is still heard; its ping waits, and what comes after it.
        assert sum(frames_taken) == 2
        line.reader._transport.resume_reading()  # type: ignore[attr-defined]
        while await line.frame() != (PONG, b"a"):
            pass
        await wait_until(lambda: app.taken == ["flood", b"audio", "behind"])


async def test_the_goodbye_of_a_client_is_heard_though_the_application_takes_nothing_more() -> None:
    app = App()
    async with talking(app) as line:
        line.send(frame(TEXT, b"close"), frame(TEXT, b"x") * (3 * MAX_AHEAD))
        assert await line.until_closed() == (4000, "asked")
        line.send(frame(CLOSE, (1000).to_bytes(2)))
        assert await line.rest() == b""


@pytest.mark.parametrize(
    "broken", [frame(TEXT, b"\xff"), frame(PING) * 1_000, frame(CONT, b"a"), b"\x81\x00"]
)
async def test_what_the_application_sends_to_a_socket_that_was_closed_for_it_goes_to_nobody(
    counted: Refusals, caplog: pytest.LogCaptureFixture, broken: bytes
) -> None:
    failed: list[type[BaseException]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        try:
            await send({"type": "websocket.send", "text": "too late"})
        except OSError as error:
            failed.append(type(error))

    async with in_this_loop(app) as address, raw_socket(address) as line:
        line.send(broken)
        await line.until_closed()
        await wait_until(lambda: failed != [])
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_socket_that_was_closed_though_its_client_reads_nothing_is_gone_in_the_end(
    counted: Refusals, frames_taken: list[int]
) -> None:
    over = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await App()(scope, receive, send)
        finally:
            over.set()

    async with in_this_loop(app) as address, raw_socket(address) as line:
        line.reader._transport.pause_reading()  # type: ignore[attr-defined]
        line.send(frame(TEXT, b"flood"))
        await wait_until(lambda: sum(frames_taken) == 1)
        line.send(frame(TEXT, b"\xff"))
        await wait_until(lambda: counted.kinds == ["socket 1007 invalid UTF-8"])
        await pass_time(5)
        assert not over.is_set()
        await pass_time(6)
        assert over.is_set()
