"""A WebSocket as bytes: what no library would send, and all that comes back."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from tests.parts.waits import PATIENCE_S

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
MASK = bytes(4)


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, masked: bool = True) -> bytes:
    """Return one frame; with a mask of zeros, as a client's must have one."""
    bit = 0x80 if masked else 0
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", (0x80 if fin else 0) | opcode, bit | size)
    elif size < 65_536:
        head = struct.pack("!BBH", (0x80 if fin else 0) | opcode, bit | 126, size)
    else:
        head = struct.pack("!BBQ", (0x80 if fin else 0) | opcode, bit | 127, size)
    return head + (MASK if masked else b"") + data


class RawSocket:
    """One connection on which the handshake has been sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.status = 0
        self.head = b""

    async def open(self, path: str, headers: list[tuple[str, str]]) -> None:
        """Send the handshake and read the head of its answer."""
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
        self.writer.write("\r\n".join(lines).encode("latin-1"))
        async with asyncio.timeout(PATIENCE_S):
            self.head = await self.reader.readuntil(b"\r\n\r\n")
        self.status = int(self.head.split(b" ", 2)[1])

    def send(self, *frames: bytes) -> None:
        """Send bytes, without waiting for anybody to read them."""
        self.writer.write(b"".join(frames))

    async def frame(self) -> tuple[int, bytes]:
        """Return the opcode and the data of the next frame from the server."""
        async with asyncio.timeout(PATIENCE_S):
            first, size = await self.reader.readexactly(2)
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first & 0x0F, await self.reader.readexactly(size)

    async def until_closed(self) -> tuple[int, str]:
        """Read to the server's goodbye; return its code and reason, (1006, "") where it says none."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                opcode, data = await self.frame()
                if opcode == CLOSE:
                    return int.from_bytes(data[:2]), data[2:].decode()
        return 1006, ""

    async def rest(self) -> bytes:
        """Return all that still comes."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()


@asynccontextmanager
async def raw_socket(
    address: str, path: str = "/", headers: list[tuple[str, str]] | None = None
) -> AsyncIterator[RawSocket]:
    """Shake hands with a server at ``ws://…`` and yield the connection, whatever it answered."""
    host = urlsplit(address).netloc
    reader, writer = await asyncio.open_connection(*host.rsplit(":", 1), limit=2**24)
    given = [
        ("Host", host),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ]
    line = RawSocket(reader, writer)
    try:
        await line.open(path, [*given, *(headers or [])])
        yield line
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
