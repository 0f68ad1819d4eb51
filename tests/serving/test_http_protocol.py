"""Heads that are too long, as networks bring them: in one piece, in many, with more to come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.parts.quick_server import in_this_loop
from tests.parts.waits import PATIENCE_S
from voiceapp.serving.handshake import MAX_HEAD_BYTES
from voiceapp.serving.refusals import Refusals, refusals

UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
LINE = b"X: " + b"x" * 8_000 + b"\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    kind = "http" if scope["type"] == "http" else "websocket.http"
    await send({"type": f"{kind}.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
    await send({"type": f"{kind}.response.body", "body": b""})


async def answer(address: str, *pieces: bytes) -> bytes:
    """Send pieces, each once the one before has had its turn on the loop; return all that is answered."""
    host, port = address.removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, port)
    try:
        async with asyncio.timeout(PATIENCE_S):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            return await reader.read()
    finally:
        writer.close()


SIZES = pytest.mark.parametrize("size", [4_096, 65_537, 66_000, 2**20], ids=lambda size: f"by {size}")


def in_pieces(head: bytes, size: int) -> list[bytes]:
    """Return a head as it may arrive; its end comes last and by itself."""
    return [*(head[at : at + size] for at in range(0, len(head), size)), b"\r\n"]


@SIZES
@pytest.mark.parametrize("lines", [MAX_HEAD_BYTES // len(LINE) + 1, 4 * MAX_HEAD_BYTES // len(LINE) - 2, 200])
async def test_too_long_a_handshake_is_refused_in_words_however_it_arrives(
    caplog: pytest.LogCaptureFixture, lines: int, size: int
) -> None:
    head = b"GET /ws/ HTTP/1.1\r\nHost: x\r\n" + UPGRADE + LINE * lines
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            # In pieces, and whole as far as one read goes.
            answers = [await answer(address, *in_pieces(head, size)), await answer(address, head + b"\r\n")]
    assert all(one.startswith(b"HTTP/1.1 431 ") for one in answers)
    assert all(b"65,536 bytes" in one for one in answers)
    assert len(caplog.messages) == 1
    assert "65,536 bytes" in caplog.messages[0]


@SIZES
async def test_a_request_with_as_long_a_head_is_answered_however_it_arrives(size: int) -> None:
    """Whose handshake was refused can ask why."""
    head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + LINE * (2 * MAX_HEAD_BYTES // len(LINE))
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            assert (await answer(address, *in_pieces(head, size))).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("upgrade", [b"", UPGRADE], ids=["a request", "a handshake"])
@SIZES
async def test_a_head_without_an_end_is_given_up_in_words(upgrade: bytes, size: int) -> None:
    head = b"GET /ws/ HTTP/1.1\r\nHost: x\r\n" + upgrade + LINE * (4 * MAX_HEAD_BYTES // len(LINE) + 2)
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            assert (await answer(address, *in_pieces(head, size)[:-1])).startswith(b"HTTP/1.1 431 ")


async def test_who_sends_on_after_a_refusal_reads_it_all_the_same() -> None:
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            one = await answer(address, b"GET / HTTP/1.1\r\n", *[LINE] * 200)
    assert one.startswith(b"HTTP/1.1 431 ")


async def test_what_is_no_http_is_answered_with_400() -> None:
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            assert (await answer(address, b"tea, please\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
