"""The WebSocket to a Realtime service: whole messages out, in turns; and its one end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from voiceapp.errors import UpstreamClosed, UpstreamError
from voiceapp.serving.budget import IDLE_PACE, SMALL_FRAGMENT_BYTES, Budget

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest message from a service: an item that is retrieved holds all of its audio."""

MAX_FRAGMENTS = 4096
"""Pieces of one message: a message of ``MAX_MESSAGE_BYTES`` in frames of 4 kB."""

MESSAGES_A_TURN = 32
"""Messages of one read that are handed on before others have their turn: most take less than 0.1 ms each."""

UNREAD_BYTES = 64 * 1024
"""What the system keeps of a service's before it is read, so that one read cannot bring millions of frames.

Linux takes twice that. A service 100 ms away can so send 1.3 MB a second, 20 voices' worth.
"""


class ServiceSocket(WSListener):
    """The callbacks of one WebSocket.

    A read may bring any number of messages. Those beyond ``MESSAGES_A_TURN`` wait for turns of their own,
    and nothing more is read until they are through.
    """

    def __init__(self) -> None:
        self.transport: WSTransport | None = None
        self.on_message: Callable[[bytes], None] | None = None
        self.on_end: Callable[[UpstreamError], None] | None = None
        self.early: list[bytes] = []
        self.parts: list[bytes] = []
        self.parts_bytes = 0
        self.in_read = 0
        self.later: deque[bytes] = deque()
        self.error: UpstreamError | None = None
        self.ended: UpstreamError | None = None
        self.over = self.held = False
        self.idle = Budget(IDLE_PACE)
        self.loop = asyncio.get_running_loop()
        self.congested = False
        self.unwanted = False
        self.first: asyncio.Future[bytes] = self.loop.create_future()

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Keep the transport, and let the system keep little of what is unread."""
        self.transport = transport
        raw = transport.underlying_transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
        if self.unwanted:
            transport.disconnect(graceful=False)

    def abandon(self) -> None:
        """Nobody waits for the connection any more: close it, now or as soon as it is there."""
        self.unwanted = True
        # What it was lost by may have been raised where this is held, and leads back here.
        self.first = self.loop.create_future()
        self.first.cancel()
        self.ended = None
        self.let_go()
        if self.transport is not None:
            self.transport.disconnect(graceful=False)

    def let_go(self) -> None:
        """Nobody listens any more: what still comes is passed over, and only the end is awaited."""
        self.on_message, self.on_end = _pass_over, None
        self.early.clear()
        self.later.clear()

    def pause_writing(self) -> None:
        """The service does not read."""
        self.congested = True

    def resume_writing(self) -> None:
        """The service reads again."""
        self.congested = False

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Take one frame: hand a whole message on, now or in its turn."""
        if self.over:
            return
        waits = self.in_read >= MESSAGES_A_TURN or bool(self.later)
        self.in_read = 0 if frame.last_in_buffer else self.in_read + 1
        kind = frame.msg_type
        if kind is WSMsgType.CLOSE:
            transport.send_close(frame.get_close_code(), None)
            transport.disconnect()
            return
        data = frame.get_payload_as_bytes()
        if kind not in (WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION):
            self._control(kind, data)
            return
        if not data or not frame.fin or self.parts:
            whole = self._gather(data, fin=frame.fin)
            if whole is None:
                return
            data = whole
        if waits:
            self._wait(data)
        elif self.on_message is not None:
            self.on_message(data)
        else:
            self._hand_on(data)

    def _hand_on(self, data: bytes) -> None:
        if not self.first.done():
            self.first.set_result(data)
        elif self.on_message is None:
            self.early.append(data)
        else:
            self.on_message(data)

    def _control(self, kind: WSMsgType, data: bytes) -> None:
        """Answer a ping, but of nobody who leaves the answers unread."""
        if self.count_idle() and kind is WSMsgType.PING and not self.congested and self.transport is not None:
            self.transport.send_pong(data)

    def _gather(self, data: bytes, *, fin: bool) -> bytes | None:
        """Return the whole message once its last piece, or an empty message, is there."""
        if len(data) < SMALL_FRAGMENT_BYTES and not self.count_idle():
            return None
        self.parts.append(data)
        self.parts_bytes += len(data)
        if self.parts_bytes > MAX_MESSAGE_BYTES or len(self.parts) > MAX_FRAGMENTS:
            self._drop(WSCloseCode.MESSAGE_TOO_BIG, "a message that is too large")
            return None
        if not fin:
            return None
        data, self.parts, self.parts_bytes = b"".join(self.parts), [], 0
        return data

    def count_idle(self) -> bool:
        """Count what means nothing; return whether the connection may still be."""
        if not self.over and self.idle.spend(self.loop.time(), 1, 0):
            self._drop(WSCloseCode.POLICY_VIOLATION, "too much that means nothing")
        return not self.over

    def _drop(self, code: WSCloseCode, sent: str) -> None:
        logger.warning("upstream sent %s; connection dropped", sent)
        self.over = True
        self.later.clear()
        if self.transport is not None:
            self.transport.send_close(code)
            self.transport.disconnect()

    # -- turns --------------------------------------------------------------------------------------------

    def _wait(self, data: bytes) -> None:
        """Keep a message for a later turn; read nothing more until all of them are through."""
        if not self.later:
            assert self.transport is not None
            self.transport.underlying_transport.pause_reading()
            self.loop.call_soon(self._turn)
        self.later.append(data)

    def _turn(self) -> None:
        failed = True
        try:
            for _ in range(min(MESSAGES_A_TURN, len(self.later))):
                # One of them may be the last straw.
                if self.later:
                    self._hand_on(self.later.popleft())
            failed = False
        finally:
            if failed:
                # As picows does with what is handed on within a read; the loop logs the fault.
                self._drop(WSCloseCode.INTERNAL_ERROR, "an event that failed")
            if self.error is not None and not self.later:
                self._end(self.error)
        if self.later:
            self.loop.call_soon(self._turn)
        else:
            self._read_on()

    def hold(self, waits: bool) -> None:
        """Read nothing while the service ``waits``, or go on."""
        if waits != self.held and self.transport is not None and not self.transport.is_disconnected:
            self.held = waits
            if waits:
                self.transport.underlying_transport.pause_reading()
            else:
                self._read_on()

    def _read_on(self) -> None:
        """Read again, unless there is another reason not to."""
        if self.held or self.later or self.over or self.transport is None or self.transport.is_disconnected:
            return
        self.transport.underlying_transport.resume_reading()

    # -- the end ------------------------------------------------------------------------------------------

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """Tell of the end, after all that came before it."""
        received = transport.close_handshake.recv if transport.close_handshake else None
        if received is None:
            error = UpstreamClosed("The connection to the service was lost.", code="upstream_lost")
        else:
            code = getattr(received.code, "value", received.code)
            error = UpstreamClosed(f"The service closed the connection ({code}).", code="upstream_closed")
        # It holds this listener.
        self.transport = None
        if self.later:
            # What it has sent before still counts.
            self.error = error
        else:
            self._end(error)

    def _end(self, error: UpstreamError) -> None:
        self.ended = error
        if not self.first.done():
            self.first.set_exception(error)
        if self.on_end is not None:
            self.on_end(error)


def _pass_over(data: bytes) -> None:
    """Take a message that nobody wants any more."""
