"""What is due to a client, in order and bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from voiceapp.nnrp.operations import End

MAX_PACKETS: Final = 256
"""So many answers may wait before operations wait too: about a second's worth of the fastest ones."""
MAX_BYTES: Final = 1024 * 1024
"""The same in bytes."""


class PacketQueue:
    """Packets on their way out; ``put`` never waits, so whoever makes many asks for ``room`` first."""

    def __init__(self) -> None:
        self._packets: deque[bytes | End] = deque()
        self._bytes = 0
        self._closed = False
        self._due = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, item: bytes | End) -> None:
        """Append a packet, or the end, after which nothing is taken in any more."""
        if self._closed:
            return
        self._packets.append(item)
        self._due.set()
        if isinstance(item, End):
            self._closed = True
            # Nobody need wait to say what will not be heard.
            self._room.set()
            return
        self._bytes += len(item)
        if len(self._packets) >= MAX_PACKETS or self._bytes >= MAX_BYTES:
            self._room.clear()

    async def room(self) -> None:
        """Wait until the client has read enough for more."""
        if not self._room.is_set():
            await self._room.wait()

    async def next(self) -> bytes | End:
        """Wait for the next item and take it."""
        while not self._packets:
            self._due.clear()
            await self._due.wait()
        item = self._packets.popleft()
        if not isinstance(item, End):
            self._bytes -= len(item)
        if len(self._packets) < MAX_PACKETS and self._bytes < MAX_BYTES:
            self._room.set()
        return item
