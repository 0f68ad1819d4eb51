"""The published bytes on a live socket: sent as they stand, and answered with bytes of the published form."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncGenerator
from typing import Any

import websockets

from tests.parts.chat_server import text
from tests.parts.contracts import load
from tests.parts.nnrp_parts import TOKEN, Door, Scripted, nnrp_app, serving
from tests.parts.waits import PATIENCE_S
from voiceapp.types import JsonObject

HEADER = struct.Struct("<4sBBBBIIIIIHHQ")
"""The header of the reading notes, written down here a second time."""
CLIENT_HELLO, SERVER_HELLO_ACK, SESSION_OPEN, SESSION_OPEN_ACK = 0x01, 0x02, 0x07, 0x08
SESSION_CLOSE, SESSION_CLOSE_ACK, FRAME_SUBMIT, RESULT_PUSH = 0x09, 0x0A, 0x10, 0x12
PARTIAL_RESULT, ERROR = 0x38, 0x06

HELLO = bytes.fromhex(
    "01010100030000007300000000000000000000000000000000000000000000000000010000000000000000000000"
    "f40100000000000000000000000000000000"
)
OPEN = bytes.fromhex(
    "00000000020001000110000003000000f401000004000000307500000000000000000000000000000000000000000000"
)
SUBMIT = struct.Struct("<HHHHHHBBBBHHIIIIIQIBBBBIIIHH")
BODY = struct.Struct("<8I")
DESCRIPTOR = struct.Struct("<HBBIIHHII")
ENVELOPE = {
    "schema_version": "openai-compatible/1",
    "operation": "chat.completions.create",
    "body": {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "stream": True},
}


def packet(kind: int, metadata: bytes, body: bytes = b"", session: int = 0, frame: int = 0) -> bytes:
    head = (b"NNRP", 1, 0, kind, 40, 0, len(metadata), len(body), session, frame, 0, 0, 0)
    return HEADER.pack(*head) + metadata + body


def submit(operation: int, envelope: JsonObject) -> tuple[bytes, bytes]:
    """Return the metadata and the body of a submit, built by the notes and by nothing of the product's."""
    fields = [0] * len(SUBMIT.unpack(bytes(SUBMIT.size)))
    metadata = bytearray(SUBMIT.pack(*fields))
    metadata[14] = 1
    struct.pack_into("<Q", metadata, 40, operation)
    metadata[54] = 0xFF
    metadata[64] = 0x10
    metadata[68] = 1
    said = json.dumps(envelope).encode()
    descriptor = DESCRIPTOR.pack(0, 16, 0, 0, 0, 1, 0, 0, len(said))
    return bytes(metadata), BODY.pack(0, 0, len(descriptor), len(said), 0, 0, 0, 0) + descriptor + said


async def received(socket: websockets.ClientConnection) -> tuple[int, int, int, bytes, bytes]:
    """Return the next packet: its type, session, frame, metadata and body."""
    async with asyncio.timeout(PATIENCE_S):
        data = await socket.recv()
    assert isinstance(data, bytes)
    magic, version, form, kind, length, _, metadata, body, session, frame, *_ = HEADER.unpack(data[:40])
    assert (magic, version, form, length) == (b"NNRP", 1, 0, 40)
    assert len(data) == 40 + metadata + body
    return kind, session, frame, data[40 : 40 + metadata], data[40 + metadata :]


async def hello(_: JsonObject) -> AsyncGenerator[JsonObject]:
    yield text("Hel")
    yield text("lo", finish_reason="stop")


async def test_the_published_bytes_open_a_session_and_run_an_operation() -> None:
    cases: dict[str, Any] = {
        case["id"]: case["parameters"]
        for case in load("nnrp/nnrp1-baseline-core.json")["cases"]
        if "parameters" in case
    }
    packets = [bytes.fromhex(case["packet_hex"]) for case in cases.values() if "packet_hex" in case]
    assert packets
    app = nnrp_app(Door(Scripted(hello)))
    async with (
        serving(app) as url,
        websockets.connect(f"{url}?token={TOKEN}", compression=None, open_timeout=PATIENCE_S) as socket,
    ):
        published = bytes.fromhex(cases["l0.control.client_hello.golden"].popitem()[1])
        assert len(published) == len(HELLO) == 64
        await socket.send(packet(CLIENT_HELLO, HELLO))
        kind, session, _, metadata, body = await received(socket)
        assert (kind, session, len(metadata), body) == (SERVER_HELLO_ACK, 0, 80, b"")
        await socket.send(packet(SESSION_OPEN, OPEN))
        kind, session, _, metadata, body = await received(socket)
        assert (kind, len(metadata), body) == (SESSION_OPEN_ACK, 56, b"")
        assert session > 0
        metadata, asked = submit(7, ENVELOPE)
        await socket.send(packet(FRAME_SUBMIT, metadata, asked, session, 3))
        events: list[JsonObject] = []
        while True:
            kind, of, frame, metadata, body = await received(socket)
            assert (of, frame) == (session, 3)
            if kind != PARTIAL_RESULT:
                break
            operation, sequence, _, _, size, flags = struct.unpack("<QQQQII", metadata)
            assert (operation, sequence, size, flags) == (7, len(events) + 1, len(body), 0)
            events.append(json.loads(body))
        assert (kind, len(metadata)) == (RESULT_PUSH, 64)
        assert struct.unpack_from("<H", metadata, 0) == (200,)
        assert struct.unpack_from("<I", metadata, 56) == (0x10,)
        assert struct.unpack_from("<H", metadata, 60) == (1,)
        _, _, typed, size, *_ = BODY.unpack(body[:32])
        assert (typed, len(body)) == (24, 32 + 24 + size)
        assert DESCRIPTOR.unpack(body[32:56]) == (0, 16, 0, 0, 0, 1, 0, 0, size)
        final = json.loads(body[56:])
        assert final["type"] == "response.completed"
        assert final["body"]["choices"][0]["message"]["content"] == "Hello"
        assert [event["delta"] for event in events] == ["Hel", "lo"]
        closing = struct.pack("<IIQII", 1, 0, 7, 0, 1)
        await socket.send(packet(SESSION_CLOSE, closing, session=session))
        kind, of, _, metadata, _ = await received(socket)
        assert (kind, of, metadata) == (SESSION_CLOSE_ACK, session, struct.pack("<IQI", 2, 7, 0))
        # Packets of the published suite that belong to no session here get an answer in form, or none.
        for sent in packets:
            await socket.send(sent)
        await socket.send(packet(SESSION_OPEN, OPEN))
        while (kind := (await received(socket))[0]) != SESSION_OPEN_ACK:
            assert kind == ERROR


async def test_a_published_hello_that_asks_for_another_profile_is_refused_in_form() -> None:
    cases = load("nnrp/nnrp1-baseline-core.json")["cases"]
    [given] = [case for case in cases if case["id"] == "l0.control.client_hello.golden"]
    metadata = bytes.fromhex(next(iter(given["parameters"].values())))
    app = nnrp_app(Door(Scripted(hello)))
    async with (
        serving(app) as url,
        websockets.connect(f"{url}?token={TOKEN}", compression=None, open_timeout=PATIENCE_S) as socket,
    ):
        # It announces 96 bytes of credentials.
        await socket.send(packet(CLIENT_HELLO, metadata, bytes(96)))
        kind, _, _, answered, _ = await received(socket)
        assert (kind, len(answered)) == (ERROR, 32)
