"""Uvicorn's WebSocket protocol with bounds: no peer keeps the loop for long, none is left without an answer.

Uvicorn's own parses all of a read at once, a quarter of a megabyte of frames of two bytes as well, during
which nobody else's audio goes on. It answers pings whether or not anybody reads the answers, and reads each
handshake a second time with limits of ``websockets`` that are narrower than those of its HTTP, at which it
falls silent. Here whole messages, nearly all that ever comes, are taken apart in one step each, which costs
an audio frame less as well; everything else goes, frame by frame and counted, to ``websockets``, which knows
the rules. After ``FRAMES_A_TURN`` frames other connections have their turn.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import CloseCode
from websockets.http11 import Request

from voiceapp.errors import Refusal
from voiceapp.serving.budget import IDLE_PACE, SMALL_FRAGMENT_BYTES, Budget
from voiceapp.serving.handshake import read_head
from voiceapp.serving.refusals import refusals, shown

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover - where there is no wheel for the machine
    from websockets.utils import apply_mask

FRAMES_A_TURN: Final = 32
"""Frames that one read may bring before others have their turn: a ping costs 20 µs, so that is 0.6 ms."""
MAX_AHEAD: Final = 32
"""Messages that wait for the application; then the peer is not read until all are taken."""
LARGE_BYTES: Final = 64 * 1024
"""A message of so many bytes waits alone."""

_TEXT, _BINARY, _PING = 0x81, 0x82, 0x9
_CONTROL, _MASKED = 0x8, 0x80


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket under Uvicorn."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        assert isinstance(self.conn.max_message_size, int)
        self._most = self.conn.max_message_size
        self._unread = bytearray()
        self._whole = True
        """No message has begun in fragments."""
        self._ahead = 1
        """What waits for the application, ``websocket.connect`` to begin with."""
        self._stopped = False
        """The rest waits: for the application, for the peer to read, or for the next turn."""
        self._turn: asyncio.Handle | None = None
        self._congested = False
        self._idle = Budget(IDLE_PACE)

    # -- handshake ----------------------------------------------------------------------------------------

    def _begin(self, head: bytes) -> None:
        """Take the head of the handshake, which Uvicorn's HTTP has read, or refuse it in words."""
        if self.transport.is_closing():
            return
        if self.handshake_initiated:
            # It has not been answered yet: whoever speaks now does not listen (RFC 6455, 4.1).
            self._note("early_data", "it sent messages before its handshake was answered")
            self.transport.abort()
            return
        try:
            request = read_head(head)
        except Refusal as refusal:
            self._refuse(refusal)
            return
        # The parser wants a head before it takes frames.
        self.conn.receive_data(b"GET / HTTP/1.1\r\n\r\n")
        self.conn.events_received()
        self.handle_connect(request)

    def handle_connect(self, event: Request) -> None:
        """Answer a handshake that is none, or call the application."""
        super().handle_connect(event)
        if self.response.status_code != 101:
            self._note("bad_handshake", f"its handshake was answered with HTTP {self.response.status_code}")

    def _refuse(self, refusal: Refusal) -> None:
        self._note(refusal.code, f"its handshake was answered with HTTP {refusal.status}: {refusal.message}")
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.conn.send_response(self.conn.reject(refusal.status, refusal.message + "\n"))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    # -- reading ------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        if not self.handshake_complete:
            self._begin(data)
            return
        self._unread += data
        if not self._stopped:
            self._read()
        elif self.close_sent:
            # The application takes nothing any more, and the peer's goodbye is still to come.
            self._go_on_soon()

    def _read(self) -> None:
        """Take the frames that are there, as many as one turn may bring."""
        at = frames = 0
        while not self._stopped and frames < FRAMES_A_TURN and (size := self._take(at)):
            at += size
            frames += 1
        del self._unread[:at]
        if frames == FRAMES_A_TURN and not self._stopped:
            self._stop()
            self._go_on_soon()

    def _take(self, at: int) -> int:
        """Take the frame at a place of what is unread; return its bytes, 0 where it cannot be taken yet."""
        unread = self._unread
        arrived = len(unread) - at
        if arrived < 2:
            return 0
        first, second = unread[at], unread[at + 1]
        if not second & _MASKED:
            return self._fail(CloseCode.PROTOCOL_ERROR, "incorrect masking")
        size, head = second & 0x7F, 6
        if size == 126:
            if arrived < 4:
                return 0
            size, head = unread[at + 2] << 8 | unread[at + 3], 8
        elif size == 127:
            if arrived < 10:
                return 0
            size, head = int.from_bytes(unread[at + 2 : at + 10]), 14
        end = at + head + size
        if not (0 < size <= self._most and first in (_TEXT, _BINARY) and self._whole) or self.close_sent:
            return self._take_other(at, end, first & 0x0F, size)
        if arrived < head + size:
            return 0
        self._deliver(first, apply_mask(unread[at + head : end], unread[at + head - 4 : at + head]))
        return head + size

    def _take_other(self, at: int, end: int, opcode: int, size: int) -> int:
        """Hand a frame to ``websockets``: a control frame, a fragment, an empty message; as ``_take``."""
        control = opcode & _CONTROL
        if control and size > 125:
            return self._fail(CloseCode.PROTOCOL_ERROR, "control frame too long")
        if size > self._most - (self.conn.current_size or 0):
            return self._fail(CloseCode.MESSAGE_TOO_BIG, f"over {self._most} bytes")
        if len(self._unread) < end:
            return 0
        if opcode == _PING and self._congested:
            self._stop()
            return 0
        counts = control or size < SMALL_FRAGMENT_BYTES or self.close_sent
        if counts and self._idle.spend(self.loop.time(), 1, end - at):
            return self._fail(CloseCode.POLICY_VIOLATION, "too_many_frames")
        # websockets reads these itself, one at a time.
        super().data_received(bytes(self._unread[at:end]))
        self._whole = self.conn.current_size is None
        if isinstance(self.conn.parser_exc, ProtocolError):
            self._note("1002", "it was closed with 1002: it broke a rule of the protocol")
        self._stopped |= self.transport.is_closing()
        return end - at

    def send_receive_event_to_app(self) -> None:
        """Hand a message on that came in fragments, or is empty."""
        data, self.frames = b"".join(self.frames), []
        if not self.close_sent:
            self._deliver(_TEXT if self.curr_msg_data_type == "text" else _BINARY, data)

    def _deliver(self, kind: int, data: bytes) -> None:
        """Hand a whole message to the application."""
        if kind == _BINARY:
            self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
        else:
            try:
                text = str(data, "utf-8")
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "invalid UTF-8")
                return
            self.queue.put_nowait({"type": "websocket.receive", "text": text})
        self._ahead += 1
        if self._ahead >= MAX_AHEAD or len(data) >= LARGE_BYTES:
            self._stop()

    # -- waiting ------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Read no more until ``_go_on``."""
        self._stopped = True
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _go_on_soon(self) -> None:
        """Let others have their turn, then go on."""
        if self._turn is None:
            self._turn = self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Take what waits, then read again."""
        self._turn = None
        if self.transport.is_closing():
            return
        self._stopped = False
        self._read()
        if self.read_paused and not self._stopped:
            self.read_paused = False
            self.transport.resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next event for the application; read on once it has taken all."""
        message = await self.queue.get()
        self._ahead -= 1
        if self._stopped and self.queue.empty():
            self._go_on_soon()
        return message

    def pause_writing(self) -> None:
        """The peer does not read what is sent."""
        self._congested = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """The peer reads again: its pings are answered again."""
        self._congested = False
        super().resume_writing()
        if self._stopped and self.queue.empty():
            self._go_on_soon()

    # -- the end ------------------------------------------------------------------------------------------

    def _fail(self, code: CloseCode, reason: str) -> int:
        """Close the socket of a peer that keeps to no rule or no measure; return 0."""
        self._stopped = True
        if not self.transport.is_closing():
            self._note(f"{int(code)} {reason}", f"it was closed with {int(code)} ({reason})")
            self.conn.fail(code, reason)
            self.handle_parser_exception()
        return 0

    def handle_parser_exception(self) -> None:
        """Close the socket for what the peer did; what the application still sends has nobody to go to."""
        super().handle_parser_exception()
        self._stopped = self.disconnected = True
        # A peer that reads nothing would keep its socket for ever.
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def _note(self, kind: str, sentence: str) -> None:
        noted = refusals.get()
        if noted is not None:
            path = cast("dict[str, Any]", getattr(self, "scope", {})).get("path", "")
            noted.note(f"socket {kind}", f"Refused a WebSocket at {shown(path)}: {sentence}")
