"""Uvicorn's HTTP protocol, which tells whoever sends too long a head what is wrong, however it arrives.

As Uvicorn sets it up, h11 gives up a head of more than 64 KiB whose end has not arrived yet, answered by 400;
whether the end has arrived depends on the network. Here it waits for ``MAX_UNREAD_BYTES``, four times what a
handshake may have: whoever sends too many cookies is refused its WebSocket, by 431, and can still ask by
HTTP why. And Uvicorn closes the connection, upon which a client that is still sending is reset and reads no
answer at all.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from voiceapp.serving.handshake import MAX_HEAD_BYTES, head_too_large
from voiceapp.serving.log_filters import head_given_up
from voiceapp.serving.refusals import refusals

MAX_UNREAD_BYTES: Final = 4 * MAX_HEAD_BYTES
"""What is kept of a head whose end has not come."""
LINGER_S: Final = 2.0
"""How long what a refused client still sends is read and dropped, so that it comes to read the answer."""


class HttpProtocol(H11Protocol):
    """One connection under Uvicorn, until it becomes a WebSocket."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.conn = h11.Connection(h11.SERVER, MAX_UNREAD_BYTES)
        self._refused: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        if self._refused is None:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._refused is not None:
            self._refused.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request: called by Uvicorn while it handles what h11 says of it."""
        status, words = 400, msg
        if head_given_up():
            refusal = head_too_large()
            status, words = refusal.status, refusal.message
            if (counted := refusals.get()) is not None:
                # Of one kind with those that were read whole.
                counted.note(f"socket {refusal.code}", f"Refused a connection: {words}")
        self._refuse(status, words)

    def _refuse(self, status: int, words: str) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        answer = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
        for event in (answer, h11.Data(data=f"{words}\n".encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._refused = self.loop.call_later(LINGER_S, self.transport.close)
