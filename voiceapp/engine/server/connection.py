"""One client of the embedded engine: performs the session's actions and feeds it with facts."""

from __future__ import annotations

import asyncio
import logging
import secrets
import string
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

from channels.exceptions import StopConsumer

from voiceapp.engine.hearing.listener import Listener
from voiceapp.engine.inference.loading import models
from voiceapp.engine.inference.weights import ModelError
from voiceapp.engine.server.faults import FaultScript, deliver
from voiceapp.engine.session.actions import (
    Action,
    AwaitIdle,
    CancelReply,
    Close,
    EndIdle,
    ReplyFact,
    SendEvent,
    Spoken,
    StartReply,
)
from voiceapp.engine.session.buffer import MAX_BYTES
from voiceapp.engine.session.config import Kind
from voiceapp.engine.session.session import EngineSession
from voiceapp.engine.speaking.reply import ReplyProduction
from voiceapp.errors import DecodeError
from voiceapp.protocol import codec
from voiceapp.protocol.dialects import Dialect, Half, from_ga, to_ga
from voiceapp.protocol.events import Event, ResponseDone
from voiceapp.text.provider import TextProvider
from voiceapp.tools.mcp.client import McpClient
from voiceapp.tools.mcp.messages import CallMcpTool, ListMcpTools
from voiceapp.types import JsonObject
from voiceapp.types import Send as SendMessage

logger = logging.getLogger(__name__)

StartTask = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

SESSION_MINUTES: Final = 60
# An append of the largest size in base64, and its envelope.
_MAX_MESSAGE_CHARS: Final = MAX_BYTES * 4 // 3 + 4096
# A client that reads no faster gets no more speech for a while, and beyond the second mark is let go.
_ENOUGH_UNSENT_BYTES: Final = 1024 * 1024
_MAX_UNSENT_BYTES: Final = 32 * 1024 * 1024
WRITE_S: Final = 30.0
"""How long a client may leave unread what it was sent; one that never reads is never reported as gone."""
_SLOW_CLIENT: Final = 4014
_ALPHABET: Final = string.ascii_letters + string.digits


def new_id(prefix: str) -> str:
    """Return an id such as the service's: 21 letters and digits, 16 for calls."""
    length = 16 if prefix == "call" else 21
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(length))}"


class Connection:
    """One accepted socket, from ``session.created`` to its end.

    ``send`` sends an ASGI message; ``start`` runs work in a task that ends with the socket, and that ends the
    socket by raising ``StopConsumer``.
    """

    def __init__(
        self,
        send: SendMessage,
        start: StartTask,
        *,
        dialect: Dialect,
        provider: TextProvider,
        model: str,
        kind: Kind,
        preset: dict[str, Any] | None,
        may_close_1001: bool,
        faults: FaultScript | None = None,
        mcp: McpClient | None = None,
    ) -> None:
        self._send = send
        self._start = start
        self._dialect = dialect
        self._provider = provider
        self._may_close_1001 = may_close_1001
        self._faults = faults or FaultScript()
        self._mcp = mcp or McpClient(private_allowed=False)
        self._life_s = self._faults.life_s or SESSION_MINUTES * 60
        self._session = EngineSession(
            session_id=new_id("sess"),
            conversation_id=new_id("conv"),
            model=model,
            expires_at=int(time.time() + self._life_s),
            new_id=new_id,
            kind=kind,
            preset=preset,
            # In the preview the address decides, in GA the first update may.
            kind_is_fixed=dialect is not Dialect.GA,
            has_mcp=dialect is not Dialect.PREVIEW,
        )
        self._listener = Listener(self._session, self._perform, self._prepare, self._faults.next_turn_is_lost)
        self._unsent: deque[bytes | Close] = deque()
        self._unsent_bytes = 0
        self._to_send = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._replies: dict[str, asyncio.Task[None]] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._prepared: tuple[ReplyProduction, asyncio.Task[None]] | None = None

    def open(self) -> None:
        """Begin the session: say ``session.created`` and listen."""
        self._start(self._send_all())
        self._start(self._hear())
        self._start(self._expire())
        self._perform(self._session.open(name_conversation=self._dialect is Dialect.CONTRACT))

    def close(self) -> None:
        """The socket is gone, and all tasks have ended."""
        self._end_idle()
        self._replies.clear()
        self._prepared = None
        # It holds this connection, as the parts of the session hold the session.
        del self._listener
        vars(self._session).clear()

    # -- in ---------------------------------------------------------------------------------------------

    async def receive(self, message: JsonObject) -> None:
        """Take one message of the client's, and wait until there is room for the next."""
        self._take(message)
        await self._listener.room()

    def _take(self, message: dict[str, Any]) -> None:
        """Take one message of the client's; whatever is wrong with it, the session goes on."""
        event_id: str | None = None
        try:
            text = message.get("text")
            if text is None:
                raise DecodeError(
                    "Expected a text WebSocket message; binary frames are not supported.",
                    code="invalid_event",
                )
            if len(text) > _MAX_MESSAGE_CHARS:
                raise _too_long()
            fields = codec.decode_fields(text)
            event_id = codec.event_id_of(fields)
            for ga_fields in to_ga(fields, self._dialect, Half.CLIENT):
                self._perform(self._session.receive(codec.client_event(ga_fields)))
        except DecodeError as error:
            self._perform(self._session.refuse(error, event_id or error.event_id))

    # -- out --------------------------------------------------------------------------------------------

    def _perform(self, actions: list[Action]) -> None:  # noqa: C901 - a table
        for action in actions:
            match action:
                case SendEvent(event=event):
                    self._queue(event)
                    if self._faults.rate_limits and isinstance(event, ResponseDone):
                        self._queue(self._faults.limits(new_id("event"), event.response))
                case StartReply():
                    self._start_reply(action)
                case CancelReply(response_id=response_id):
                    if task := self._replies.pop(response_id, None):
                        task.cancel()
                case ListMcpTools() | CallMcpTool():
                    self._start(self._ask_mcp(action))
                case AwaitIdle(idle_ms=idle_ms):
                    self._await_idle(idle_ms)
                case EndIdle():
                    self._end_idle()
                case Close():
                    self._unsent.append(action)
                    self._to_send.set()
                case _:
                    self._listener.order(action)

    def _queue(self, event: Event) -> None:
        for data in self._encode(event):
            self._unsent.append(data)
            self._unsent_bytes += len(data)
        if self._unsent_bytes > _ENOUGH_UNSENT_BYTES:
            self._drained.clear()
        if self._unsent_bytes > _MAX_UNSENT_BYTES:
            self._unsent.clear()
            self._unsent.append(Close(_SLOW_CLIENT, "The client does not read."))
        self._to_send.set()

    def _encode(self, event: Event) -> list[bytes]:
        if self._dialect is Dialect.GA:
            return [codec.encode(event)]
        fields = codec.to_fields(event)
        # The one event that has no id in GA has one in the contract file.
        fields.setdefault("event_id", new_id("event"))
        return [codec.encode_fields(one) for one in from_ga(fields, self._dialect, Half.SERVER)]

    async def _send_all(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            while self._unsent:
                message = self._unsent.popleft()
                if isinstance(message, Close):
                    await self._close(message)
                await self._transmit({"type": "websocket.send", "text": message.decode()})
                self._faults.sent()
                self._unsent_bytes -= len(message)
                if self._unsent_bytes <= _ENOUGH_UNSENT_BYTES:
                    self._drained.set()

    async def _until_drained(self) -> None:
        await self._drained.wait()

    async def _close(self, close: Close) -> NoReturn:
        code = close.code if close.code != 1001 or self._may_close_1001 else 1000
        await self._transmit({"type": "websocket.close", "code": code, "reason": close.reason})
        raise StopConsumer

    async def _transmit(self, message: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(WRITE_S):
                await self._send(message)
        except TimeoutError:
            logger.info("An engine's client does not read; it is let go")
            raise StopConsumer from None
        except OSError:
            # How ASGI servers say that the client went before it is reported as gone.
            raise StopConsumer from None

    async def _expire(self) -> None:
        await asyncio.sleep(self._life_s)
        self._perform(self._session.expire(SESSION_MINUTES))

    # -- hearing ----------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        try:
            ready = await models().ready()
        except ModelError as error:
            await self._listener.fail(error.code, error.message)
        else:
            await self._listener.run(ready)

    # -- silence ----------------------------------------------------------------------------------------

    def _await_idle(self, idle_ms: int) -> None:
        self._end_idle()
        heard_s = max(0.0, self._listener.echo.until_s - self._loop.time())
        self._idle = self._loop.call_later(heard_s + idle_ms / 1000, self._report_idle)

    def _end_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _report_idle(self) -> None:
        self._perform(self._session.idle())

    # -- replies ----------------------------------------------------------------------------------------

    def _prepare(self, transcript: str | None) -> None:
        """Begin a reply to words that may be the last of a turn; ``None`` drops it."""
        if self._prepared is not None:
            self._prepared[1].cancel()
            self._prepared = None
        if transcript is not None and self._session.may_reply:
            work = ReplyProduction(self._provider, *self._session.preview(transcript))
            self._prepared = (work, self._start(work.run()))

    def _start_reply(self, start: StartReply) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None and (prepared[0].request, prepared[0].speaking) == (
            start.request,
            start.speaking,
        ):
            work, making = prepared
        else:
            if prepared is not None:
                prepared[1].cancel()
            work = ReplyProduction(self._provider, start.request, start.speaking)
            making = self._start(work.run())
        task = self._start(self._deliver(start.response_id, work, making))
        self._replies[start.response_id] = task

    async def _deliver(self, response_id: str, work: ReplyProduction, making: asyncio.Task[None]) -> None:
        def take(fact: ReplyFact) -> None:
            if isinstance(fact, Spoken) and work.speaking is not None:
                self._listener.echo.spoken(fact.audio, work.speaking.audio_format, self._loop.time())
            self._perform(self._session.reply_progressed(response_id, fact))

        try:
            await deliver(work, self._faults.next_reply(), take, self._until_drained)
        finally:
            making.cancel()
            self._replies.pop(response_id, None)

    async def _ask_mcp(self, action: ListMcpTools | CallMcpTool) -> None:
        self._perform(self._session.mcp_answered(await self._mcp.perform(action)))


def _too_long() -> DecodeError:
    return DecodeError(
        f"Invalid 'audio': string too long. Expected at most {MAX_BYTES} bytes of audio.",
        code="string_above_max_length",
        param="audio",
    )
