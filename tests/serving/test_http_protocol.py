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


@pytest.mark.parametrize("upgrade", [b"", UPGRADE], ids=["a request", "a handshake"])
@pytest.mark.parametrize("size", [1, 4_096, 65_537, 66_000, 2**20], ids=lambda size: f"by {size}")
@pytest.mark.parametrize("ends", [True, False], ids=["with an end", "without an end"])
async def test_a_head_that_is_too_long_is_answered_in_words_however_it_arrives(
    caplog: pytest.LogCaptureFixture, upgrade: bytes, size: int, ends: bool
) -> None:
    head = b"GET /ws/ HTTP/1.1\r\nHost: x\r\n" + upgrade + LINE * (MAX_HEAD_BYTES // len(LINE) + 5)
    # A byte alone is tried where it matters: at the limit.
    first = head[: MAX_HEAD_BYTES - 5] if size == 1 else b""
    rest = head[len(first) :][:40] if size == 1 else head
    pieces = [first, *(rest[at : at + size] for at in range(0, len(rest), size)), head[len(first + rest) :]]
    if ends:
        pieces.append(b"\r\n")
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            answers = [await answer(address, *filter(None, pieces)) for _ in range(2)]
    assert all(one.startswith(b"HTTP/1.1 431 ") for one in answers)
    assert all(b"65,536 bytes" in one for one in answers)
    assert len(caplog.messages) == 1
    assert "65,536 bytes" in caplog.messages[0]


async def test_who_sends_on_after_a_refusal_reads_it_all_the_same() -> None:
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            one = await answer(address, b"GET / HTTP/1.1\r\n", *[LINE] * 200)
    assert one.startswith(b"HTTP/1.1 431 ")


async def test_what_is_no_http_is_answered_with_400() -> None:
    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            assert (await answer(address, b"tea, please\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
