"""The page's socket, ``/ws/voice/``."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from channels.exceptions import StopConsumer

from voiceapp.config import VoiceConfig, voice_config
from voiceapp.conversation.actions import SendBrowser
from voiceapp.errors import AudioFormatError, DecodeError, Refusal, VoiceAppError
from voiceapp.protocol import codec, page
from voiceapp.protocol.page import CloseCode, Notice, Ping, PlaybackReport, Pong, SessionEnd, SessionOutput
from voiceapp.relay.browser.admission import admit_or_refuse
from voiceapp.relay.browser.login import Login
from voiceapp.relay.browser.start import StartRequest, begin, read_start
from voiceapp.relay.process.sessions import DRAIN_S
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.serving.budget import Pace
from voiceapp.serving.consumer import SocketConsumer
from voiceapp.serving.refusals import refusals
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

MAX_TEXT_CHARS = 1024 * 1024
"""Longest text message of a page."""
PACE: Final = Pace(messages_a_s=250, messages_at_once=2_000, bytes_a_s=512 * 1024, bytes_at_once=4 * 1024**2)
"""What a page may send. A voice takes 50 messages and 48,000 bytes a second; a page that comes back sends
10 s of it at once, with up to 64 events."""
FIRST_MESSAGE_S = 10.0
CLOSE_S = 5.0
"""How long a page may take to read the last messages of a session."""


class VoiceConsumer(SocketConsumer):
    """One socket of the page: starts a live session or comes back to it, attaches to it, detaches.

    Anybody signed in may open one. ``scope`` has ``user`` and ``session``, see ``login_stack``.
    """

    pace = PACE

    def __init__(self) -> None:
        self.config: VoiceConfig = voice_config()
        self._login: Login
        self._session: LiveSession | None = None
        self._sender: asyncio.Task[None] | None = None
        self._first_message: asyncio.Task[None] | None = None
        self._released: tuple[int, str] | None = None
        self._stopping = False

    # -- beginning ----------------------------------------------------------------------------------

    async def websocket_connect(self, message: JsonObject) -> None:
        """Accept the socket of somebody who is signed in, from a page of this site; refuse others by HTTP."""
        self._login = await admit_or_refuse(self.scope, self.send)
        await self.send({"type": "websocket.accept"})
        self._first_message = self.start(self._await_first_message())

    async def _await_first_message(self) -> None:
        await asyncio.sleep(FIRST_MESSAGE_S)
        raise Refusal("no_start", "The page did not start a session.", close_code=CloseCode.BAD_START)

    async def _begin(self, first: str) -> None:
        """Begin or find the session that the first message asks for, and attach to it."""
        if self._first_message is not None:
            self._first_message.cancel()
        request = StartRequest(self, self._login, self.config, self._own_address())
        self._session, answer = await begin(read_start(first), request)
        if answer is not None:
            # Before everything that follows, and without a number of its own.
            await self.send({"type": "websocket.send", "text": page.write(answer)})
        self._sender = self.start(self._deliver(self._session))
        if self._released is not None:
            self.release(*self._released)

    def _own_address(self) -> tuple[str, int] | None:
        server = self.scope.get("server")
        return (server[0], server[1]) if server and server[1] else None

    # -- ending -------------------------------------------------------------------------------------

    async def failed(self, error: BaseException) -> bool:
        """Tell a page that is refused why; any other fault is the server's to report."""
        if not isinstance(error, Refusal):
            return False
        notice = Notice(code=error.code, message=error.message, level="error")
        with suppress(StopConsumer):
            await self.send({"type": "websocket.send", "text": page.write(notice)})
            await self.send({"type": "websocket.close", "code": error.close_code, "reason": error.code})
        return True

    async def too_fast(self, over_s: float) -> None:
        """End the conversation of a page that sends more than one needs; nothing more of it is received."""
        sentence = (
            f"Closed a page's socket with {CloseCode.TOO_FAST:d}: user {self._login.user_id} sends too much."
        )
        refusals().note(f"too fast {self._login.user_id}", sentence)
        session = self._session
        if session is None or not session.attached_to(self):
            raise Refusal("too_fast", CloseCode.TOO_FAST.words, close_code=CloseCode.TOO_FAST)
        session.end(EndReason.TOO_FAST)
        await asyncio.Event().wait()

    async def websocket_disconnect(self, message: JsonObject) -> None:
        """Let the session wait for the page's next socket, and hold nothing of it.

        A task that was cancelled keeps what it was cancelled in, which is this consumer.
        """
        session, self._session = self._session, None
        self._sender = self._first_message = None
        if session is not None:
            session.detach(self)

    async def cancelled(self) -> None:
        """Let the session be kept: Daphne stops."""
        self._stopping = True
        session = self._session
        if session is not None and session.attached_to(self):
            session.end(EndReason.DRAIN)
            await asyncio.shield(asyncio.wait_for(session.finished.wait(), DRAIN_S))

    def release(self, close_code: int, reason: str) -> None:
        """The session lets this socket go."""
        self._released = self._released or (close_code, reason)
        if self._session is not None and self._sender is not None and not self._stopping:
            self._stopping = True
            self.start(self._farewell(self._session, self._sender, *self._released))

    async def _farewell(
        self, session: LiveSession, sender: asyncio.Task[None], code: int, reason: str
    ) -> None:
        """Let the page read how it ended, then close; one that does not read is not waited for long."""
        try:
            async with asyncio.timeout(CLOSE_S):
                if session.finished.is_set():
                    await session.outbox.drained(sender)
                sender.cancel()
                await self.send({"type": "websocket.close", "code": code, "reason": reason})
        except TimeoutError:
            logger.info("session %s: the page did not read to the end", session.id)
        raise StopConsumer

    # -- down ---------------------------------------------------------------------------------------

    async def _deliver(self, session: LiveSession) -> None:
        """Send what is due until the session is over or another socket took it."""
        while session.attached_to(self):
            message = await session.outbox.due()
            if message is None:
                return
            if message.text is not None:
                await self.send({"type": "websocket.send", "text": message.text})
            else:
                await self.send({"type": "websocket.send", "bytes": message.data})

    # -- up -----------------------------------------------------------------------------------------

    async def websocket_receive(self, message: JsonObject) -> None:
        """Take a frame of the microphone or an event; the first message begins a session."""
        session = self._session
        if session is None:
            await self._begin(message.get("text") or "")
            return
        if not session.attached_to(self):
            # What an old socket still brings comes again by the new one.
            return
        data = message.get("bytes")
        if data is None:
            self._text(session, message.get("text") or "")
            return
        try:
            session.hear(data)
        except AudioFormatError as error:
            session.tell(_error(error))

    def _text(self, session: LiveSession, text: str) -> None:
        event_id: str | None = None
        try:
            if len(text) > MAX_TEXT_CHARS:
                raise DecodeError(
                    f"A message may have {MAX_TEXT_CHARS} characters at most.", code="message_too_large"
                )
            fields = codec.decode_fields(text)
            event_id = codec.event_id_of(fields)
            message = page.read(fields)
            match message:
                case PlaybackReport():
                    session.outbox.acknowledge(message.seq)
                    session.playback_report(message.item_id, message.played_ms, final=message.final)
                case Ping():
                    session.outbox.acknowledge(message.seq)
                    session.tell(SendBrowser(Pong()))
                case SessionOutput():
                    session.perform(session.conversation.speak_answers(on=message.audio))
                case SessionEnd():
                    session.end(EndReason.HUNG_UP)
                case _:
                    session.client_event(message)
        except (DecodeError, AudioFormatError) as error:
            session.tell(_error(error, event_id or getattr(error, "event_id", None)))


def _error(error: VoiceAppError, event_id: str | None = None) -> SendBrowser:
    param = getattr(error, "param", None)
    event = codec.error_event(
        "", code=error.code, message=error.message, param=param, client_event_id=event_id
    )
    return SendBrowser(event)
