"""One browser socket, ``/ws/voice/``: authenticates, attaches to a live session, detaches.

It is a plain ASGI application with a loop of its own: Channels' ``AsyncConsumer.dispatch`` makes a hop to
a thread for every message, which costs more than all the rest of relaying a frame.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from django.http.request import validate_host

from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import SendBrowser, to_browser
from voiceapp.errors import AudioFormatError, DecodeError, VoiceAppError
from voiceapp.protocol import codec
from voiceapp.relay.browser.login import login_of
from voiceapp.relay.browser.start import BAD_START, Refused, Start, Visitor, begin, read_start
from voiceapp.relay.process.sessions import DRAIN_S
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.serving.scope import in_turns
from voiceapp.types import JsonObject, Receive, Send

logger = logging.getLogger(__name__)

Message = dict[str, Any]

MAX_TEXT_CHARS = 1024 * 1024
"""Longest text message of a page."""
FIRST_MESSAGE_S = 10.0
CLOSE_S = 5.0
"""How long a page may take to read the last messages of a session."""

SIGNED_OUT = 4001


class _Report(msgspec.Struct, kw_only=True):
    """``playback.report``."""

    item_id: str
    played_ms: float
    final: bool = False
    seq: int = 0


class _Gone(Exception):
    """The page's socket was closed while something was being sent."""


async def voice_socket(scope: Message, receive: Receive, send: Send) -> None:
    """Serve one browser socket of ``/ws/voice/``, an ASGI application; anybody signed in may open one."""
    receive = in_turns(receive)
    if (await receive())["type"] != "websocket.connect":
        return
    if not origin_allowed(scope):
        await send({"type": "websocket.close", "code": 4003})
        return

    async def send_to_page(message: Message) -> None:
        try:
            await send(message)
        except OSError:
            raise _Gone from None

    with suppress(_Gone):
        # Accepted before anything slow is done: Daphne ends a handshake after five seconds.
        await send_to_page({"type": "websocket.accept"})
        try:
            await _Page(scope, receive, send_to_page).serve()
        except Refused as refused:
            error = {"type": "notice", "code": refused.code, "message": refused.message, "level": "error"}
            await send_to_page({"type": "websocket.send", "text": to_browser(error).text})
            await send_to_page(
                {"type": "websocket.close", "code": refused.close_code, "reason": refused.code}
            )


def origin_allowed(scope: Message) -> bool:
    """Whether the socket was opened by a page of this site (or of a trusted origin)."""
    headers: dict[bytes, bytes] = dict(scope.get("headers") or [])
    origin, host = headers.get(b"origin", b"").decode("latin-1"), headers.get(b"host", b"").decode("latin-1")
    if not origin or origin == "null":
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        address = urlsplit(origin)
    except ValueError:
        return False
    known = validate_host(host.rsplit(":", 1)[0] if not host.endswith("]") else host, settings.ALLOWED_HOSTS)
    return address.scheme in ("http", "https") and address.netloc == host and known


class _Page:
    """The serving of one socket."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self.config: VoiceConfig = settings.VOICE
        self._released: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        login = await login_of(self.scope)
        if login is None:
            raise Refused(SIGNED_OUT, "not_signed_in", "Sign in first.")
        first = await self._first_message()
        if first is None:
            return
        session, told = await begin(first, Visitor(self, login, self.config, self._own_address()))
        try:
            if told is not None:
                # Before everything that follows, and without a number of its own.
                await self._send({"type": "websocket.send", "text": told.text})
            await self._serve(session)
        finally:
            session.detach(self)

    async def _serve(self, session: LiveSession) -> None:
        start = asyncio.get_running_loop().create_task
        sender, listener = start(self._deliver(session)), start(self._listen(session))
        tasks: set[asyncio.Future[Any]] = {sender, listener, self._released}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._released in done:
                await self._farewell(session, sender, *self._released.result())
            elif listener in done:
                listener.result()
        except asyncio.CancelledError:
            # Daphne sends no lifespan events: a consumer that is cancelled is how it says that it stops.
            if session.attached_to(self):
                session.end(EndReason.DRAIN)
                await asyncio.shield(asyncio.wait_for(session.finished.wait(), DRAIN_S))
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- beginning ----------------------------------------------------------------------------------

    async def _first_message(self) -> Start | None:
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                message = await self._receive()
        except TimeoutError:
            raise Refused(BAD_START, "no_start", "The page did not start a session.") from None
        if message["type"] == "websocket.disconnect":
            return None
        return read_start(message.get("text") or "")

    def _own_address(self) -> tuple[str, int] | None:
        server = self.scope.get("server")
        return (server[0], server[1]) if server and server[1] else None

    # -- down ---------------------------------------------------------------------------------------

    async def _deliver(self, session: LiveSession) -> None:
        """Send what is due until the session is over or another socket took it."""
        while session.attached_to(self):
            message = await session.outbox.due()
            if message is None:
                return
            if message.text is not None:
                await self._send({"type": "websocket.send", "text": message.text})
            else:
                await self._send({"type": "websocket.send", "bytes": message.data})

    # -- up -----------------------------------------------------------------------------------------

    async def _listen(self, session: LiveSession) -> None:
        """Take what the page sends until its socket is gone."""
        while True:
            message = await self._receive()
            data = message.get("bytes")
            if message["type"] == "websocket.disconnect":
                return
            if not session.attached_to(self):
                # What an old socket still brings comes again by the new one.
                continue
            if data is not None:
                self._microphone(session, data)
            else:
                self._text(session, message.get("text") or "")

    def release(self, close_code: int, reason: str) -> None:
        """The session lets this socket go."""
        if not self._released.done():
            self._released.set_result((close_code, reason))

    async def _farewell(
        self, session: LiveSession, sender: asyncio.Task[None], code: int, reason: str
    ) -> None:
        """Let the page read how it ended, then close; one that does not read is not waited for long."""
        try:
            async with asyncio.timeout(CLOSE_S):
                if session.finished.is_set():
                    await session.outbox.drained(sender)
                sender.cancel()
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except TimeoutError:
            logger.info("session %s: the page did not read to the end", session.id)

    def _microphone(self, session: LiveSession, data: bytes) -> None:
        try:
            session.hear(data)
        except AudioFormatError as error:
            session.tell(_error(error))

    def _text(self, session: LiveSession, text: str) -> None:
        try:
            if len(text) > MAX_TEXT_CHARS:
                raise DecodeError(
                    f"A message may have {MAX_TEXT_CHARS} characters at most.", code="message_too_large"
                )
            fields = codec.decode_fields(text)
            match fields["type"]:
                case "playback.report":
                    report = msgspec.convert(fields, _Report)
                    session.outbox.acknowledge(report.seq)
                    session.playback_report(report.item_id, report.played_ms, final=report.final)
                case "ping":
                    session.outbox.acknowledge(_sequence(fields))
                    session.tell(to_browser({"type": "pong"}))
                case "session.end":
                    session.end(EndReason.HUNG_UP)
                case _:
                    session.client_event(codec.client_event(fields))
        except DecodeError as error:
            session.tell(_error(error))
        except msgspec.ValidationError as error:
            session.tell(_error(DecodeError(str(error), code="invalid_type")))


def _sequence(fields: JsonObject) -> int:
    seq = fields.get("seq", 0)
    if not isinstance(seq, int):
        raise DecodeError("Invalid type for 'seq': expected an integer.", code="invalid_type", param="seq")
    return seq


def _error(error: VoiceAppError) -> SendBrowser:
    event = codec.error_event("", code=error.code, message=error.message, param=getattr(error, "param", None))
    return SendBrowser(codec.encode(event).decode())
