"""Numbered messages for one page, kept until the page says that it has them.

Each message down, text or binary, takes the next sequence number. What was sent stays here until it is
acknowledged (``seq`` in ``ping`` and ``playback.report``), so that a page whose socket died resumes without
loss or repeat. Services speak faster than anybody listens: what the page does not need yet waits here, and of
more than ``FULL_BYTES`` the service is not read. A page that does not read is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

WINDOW_BYTES = 1024 * 1024
"""Bytes on their way to a page that has not acknowledged them: 20 s of PCM16."""

MAX_AUDIO_BYTES = 96_000
"""Longest message of sound: two seconds of PCM16."""

FULL_BYTES = 32 * 1024 * 1024
"""Bytes kept for a page while the service is read: eleven minutes of PCM16."""

ROOM_BYTES = 1024 * 1024
"""So much has to be free before the service is read again."""

MAX_KEPT_BYTES = 2 * FULL_BYTES
"""Bytes kept for a page whatever comes: beyond, it is let go, and loses the oldest while it is away."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message: ``text``, or ``data`` for a binary one; ``size`` is its length in bytes."""

    seq: int
    text: str | None
    data: bytes | None
    size: int


class Outbox:
    """The messages of one session to its page, whichever socket the page has at the moment.

    They are numbered from ``after`` on: a page that was served by another process goes on counting.
    ``hold_service`` is called with whether the service is to wait, as often as that may be new.
    """

    def __init__(self, hold_service: Callable[[bool], None] = lambda full: None, *, after: int = 0) -> None:
        self._hold_service = hold_service
        self._full = False
        self._messages: deque[Message] = deque()
        self._kept_bytes = 0
        self._flight_bytes = 0
        self._next_seq = after + 1
        self._next_to_send = after + 1
        self._rewinds = 0
        self._sender: asyncio.Future[None] | None = None
        self._empty = asyncio.Event()

    def put_text(self, text: str) -> None:
        """Queue a JSON object, with its number as ``seq``."""
        numbered = f'{{"seq":{self._next_seq},{text.lstrip()[1:]}'
        size = len(numbered) if numbered.isascii() else len(numbered.encode("utf-8", "replace"))
        self._put(Message(self._next_seq, numbered, None, size))

    def put_audio(self, index: int, samples: bytes) -> None:
        """Queue samples of the track ``index``; a service may send minutes of them at once."""
        head = index.to_bytes(4, "big")
        for at in range(0, len(samples), MAX_AUDIO_BYTES):
            data = head + samples[at : at + MAX_AUDIO_BYTES]
            self._put(Message(self._next_seq, None, data, len(data)))

    def _put(self, message: Message) -> None:
        self._next_seq += 1
        self._messages.append(message)
        self._kept_bytes += message.size
        if self._kept_bytes > FULL_BYTES:
            self._full = True
            self._hold_service(True)
        self._wake()

    def _made_room(self) -> None:
        if self._full and self._kept_bytes <= FULL_BYTES - ROOM_BYTES:
            self._full = False
            self._hold_service(False)

    def _wake(self) -> None:
        if self._sender is not None and not self._sender.done():
            self._sender.set_result(None)

    @property
    def last_seq(self) -> int:
        """The number of the last message."""
        return self._next_seq - 1

    @property
    def acknowledged_seq(self) -> int:
        """The number of the last message that the page has said it has."""
        return self._messages[0].seq - 1 if self._messages else self._next_seq - 1

    @property
    def overfull(self) -> bool:
        """Whether more is kept than any page may leave unread."""
        return self._kept_bytes > MAX_KEPT_BYTES

    def drop_oldest(self) -> None:
        """Make room while no page is attached; the page will be told that something was lost."""
        while self._kept_bytes > MAX_KEPT_BYTES and self._messages:
            message = self._messages.popleft()
            self._kept_bytes -= message.size
            self._next_to_send = max(self._next_to_send, message.seq + 1)
        self._made_room()

    def clear(self) -> None:
        """Forget everything: nobody will read it."""
        self._messages.clear()
        self._kept_bytes = self._flight_bytes = 0
        self._next_to_send = self._next_seq
        self._empty.set()

    def acknowledge(self, seq: int) -> None:
        """The page has everything up to ``seq``; a number that was never sent says nothing."""
        if seq >= self._next_to_send:
            return
        while self._messages and self._messages[0].seq <= seq:
            message = self._messages.popleft()
            self._kept_bytes -= message.size
            self._flight_bytes -= message.size
        self._made_room()
        self._wake()

    def rewind(self, seq: int) -> tuple[int, bool]:
        """A page comes back that has everything up to ``seq``; send what follows once more.

        Returns the number after which sending goes on, and whether something is missing before that.
        """
        self._rewinds += 1
        self._next_to_send = self._next_seq
        self.acknowledge(seq)
        first = self._messages[0].seq if self._messages else self._next_seq
        self._next_to_send = first
        self._flight_bytes = 0
        return first - 1, first - 1 != seq

    async def due(self) -> Message | None:
        """Wait for the next message that may be sent now; it counts as sent.

        ``None`` once the page has come back with another socket, whose everything is from then on.
        """
        rewinds = self._rewinds
        while self._rewinds == rewinds:
            message = self.take()
            if message is not None:
                return message
            self._empty.set()
            # One page reads at a time; a future is cheaper than an event, and this waits for every frame.
            self._sender = asyncio.get_running_loop().create_future()
            await self._sender
        return None

    def take(self) -> Message | None:
        """Return the next message that may be sent now, if there is one; it counts as sent."""
        if self._next_to_send >= self._next_seq or self._flight_bytes > WINDOW_BYTES:
            return None
        message = self._messages[self._next_to_send - self._messages[0].seq]
        self._next_to_send += 1
        self._flight_bytes += message.size
        return message

    @property
    def blocked(self) -> bool:
        """Whether messages wait although the page has a full window to acknowledge."""
        return self._next_to_send < self._next_seq and self._flight_bytes > WINDOW_BYTES

    async def drained(self, sender: asyncio.Task[None]) -> None:
        """Wait until everything was sent, or until ``sender`` can send no more."""
        self._empty.clear()
        if self._next_to_send < self._next_seq:
            waiting = asyncio.ensure_future(self._empty.wait())
            try:
                await asyncio.wait({waiting, sender}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
