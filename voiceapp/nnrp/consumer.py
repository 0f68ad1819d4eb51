"""``/nnrp``: chat completions over NNRP/1.

One binary WebSocket message is one packet. The state machine of ``voiceapp.nnrp.connection`` decides, this
performs: one task reads, one writes, and one works on each operation.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from channels.exceptions import StopConsumer

from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.nnrp.backing import Backing
from voiceapp.nnrp.connection import TOO_MANY, TOO_SLOW, UNAUTHORIZED, ConnectionState, ServerConnection
from voiceapp.nnrp.layouts import ErrorCode, WireError
from voiceapp.nnrp.operations import (
    Action,
    Drain,
    End,
    Operation,
    OperationState,
    Reschedule,
    SendPacket,
    Start,
    Stop,
)
from voiceapp.nnrp.packet_queue import PacketQueue
from voiceapp.nnrp.profile import ProfileError
from voiceapp.nnrp.work import Work
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.records.store.writer import StoreUnavailable
from voiceapp.serving.consumer import SocketConsumer
from voiceapp.serving.scope import refuse_upgrade
from voiceapp.types import JsonObject, Part, Scope
from voiceapp.types import Send as SendMessage

logger = logging.getLogger(__name__)

StartTask = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

PATH: Final = "/nnrp"
MAX_CONNECTIONS: Final = 500
"""Connections of one process."""
MAX_TOKEN_CONNECTIONS: Final = 32
"""Connections of one API token in one process."""
ADVICE: Final = "Give an API token: Authorization: Bearer va_… or ?token=va_…"
HELLO_S: Final = 10.0
"""How long a client may take to say CLIENT_HELLO."""
SEND_S: Final = 30.0
"""How long a client may leave a packet unread."""
DRAIN_S: Final = 10.0
"""How long operations may go on when the server stops."""


class Connections:
    """All connections of this process: how many there may be, and how they end with it."""

    def __init__(self, backing: Backing) -> None:
        self.backing = backing
        self._open: set[_Connection] = set()
        self._by_token: Counter[int] = Counter()
        self._stopping = False

    def check_room(self, holder: TokenHolder) -> None:
        """Raise ``Refusal`` where a token's holder may open no connection now."""
        if self._stopping or len(self) >= MAX_CONNECTIONS:
            sentence = "The server has too many connections, or is stopping."
            raise Refusal("too_many_connections", sentence, status=503, close_code=TOO_MANY)
        if self._by_token[holder.token_id] >= MAX_TOKEN_CONNECTIONS:
            sentence = f"A token may hold {MAX_TOKEN_CONNECTIONS} connections at once."
            raise Refusal("too_many_connections", sentence, status=429, close_code=TOO_MANY)

    def add(self, connection: _Connection, token_id: int) -> None:
        """Count a connection in."""
        self._open.add(connection)
        self._by_token[token_id] += 1

    def remove(self, connection: _Connection, token_id: int) -> None:
        """Count a connection out."""
        self._open.discard(connection)
        self._by_token[token_id] -= 1
        self._by_token += Counter()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._open)

    async def drain(self) -> None:
        """Begin nothing new, let operations end, then close every connection. Takes ``DRAIN_S`` and a bit."""
        self._stopping = True
        await asyncio.gather(*(connection.drain() for connection in list(self._open)))


class NnrpConsumer(SocketConsumer):
    """One client's WebSocket, counted ``among`` the process's connections or others."""

    fault_code, fault_reason = 4011, "internal_error"

    def __init__(self, among: Connections | None = None) -> None:
        self._connections = connections() if among is None else among
        self._connection: _Connection | None = None
        self._token_id = 0

    async def websocket_connect(self, message: JsonObject) -> None:
        """Take in whoever brings a token that counts."""
        try:
            holder = await self._connections.backing.admit(self.scope)
            if holder is None:
                raise Refusal("not_authorized", ADVICE, status=401, close_code=UNAUTHORIZED)
            self._connections.check_room(holder)
        except VoiceAppError as refusal:
            body = {"error": {"code": refusal.code, "message": refusal.message}}
            await refuse_upgrade(self.scope, self.send, refusal, body)
            raise StopConsumer from None
        connection = _Connection(self.scope, self.base_send, self.start, self._connections.backing)
        self._connections.add(connection, holder.token_id)
        self._connection, self._token_id = connection, holder.token_id
        # The client may be gone by now.
        await self.send({"type": "websocket.accept"})
        connection.open()

    async def websocket_receive(self, message: JsonObject) -> None:
        """Take one packet."""
        if self._connection is not None:
            await self._connection.receive(message)

    async def websocket_disconnect(self, message: JsonObject) -> None:
        """Count the connection out."""
        if self._connection is not None:
            self._connection.close()
            self._connections.remove(self._connection, self._token_id)


class _Connection:
    """What one client does, and what is worked on for it.

    ``send`` sends an ASGI message; ``start`` runs work in a task that ends with the connection.
    """

    def __init__(self, scope: Scope, send: SendMessage, start: StartTask, backing: Backing) -> None:
        self._scope, self._send, self._start, self._backing = scope, send, start, backing
        self._machine = ServerConnection()
        self._outbox = PacketQueue()
        self._hello: asyncio.TimerHandle | None = None
        self._tasks: dict[Operation, asyncio.Task[None]] = {}
        self._work: dict[Operation, Work] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._over = asyncio.Event()

    def open(self) -> None:
        """Begin to send, and to wait for the client's hello."""
        self._hello = asyncio.get_running_loop().call_later(HELLO_S, self._no_hello)
        self._start(self._deliver())

    def close(self) -> None:
        """The client is gone or was sent away."""
        if self._hello is not None:
            self._hello.cancel()
        self._over.set()

    def _no_hello(self) -> None:
        if self._machine.state is ConnectionState.NEW:
            message = f"CLIENT_HELLO did not come within {HELLO_S:g} seconds."
            self._perform(self._machine.fault(WireError(message, ErrorCode.INVALID_STATE, fatal=True)))

    async def drain(self) -> None:
        """Let what is under way end, then say goodbye."""
        self._machine.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._quiet.wait()
        self._perform(self._machine.farewell())
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._over.wait()

    # -- in and out ---------------------------------------------------------------------------------------

    async def receive(self, message: JsonObject) -> None:
        """Take one message, and wait until there is room for what it may bring."""
        data = message.get("bytes")
        if data is None:
            error = WireError("Packets are binary messages.", ErrorCode.MALFORMED_HEADER)
            self._perform(self._machine.fault(error))
        else:
            self._perform(self._machine.receive(data))
        # Whoever does not read the answers need not ask on.
        await self._outbox.room()

    async def _deliver(self) -> None:
        try:
            while True:
                item = await self._outbox.next()
                async with asyncio.timeout(SEND_S):
                    if isinstance(item, End):
                        await self._send(
                            {"type": "websocket.close", "code": item.code, "reason": item.reason}
                        )
                        raise StopConsumer
                    await self._send({"type": "websocket.send", "bytes": item})
        except TimeoutError:
            logger.info("an NNRP client read too slowly")
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(1.0):
                    await self._send({"type": "websocket.close", "code": TOO_SLOW, "reason": "too_slow"})
        except OSError:
            logger.debug("an NNRP client is gone")
        raise StopConsumer

    def _perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case SendPacket(data=data):
                    self._outbox.put(data)
                case Start(operation=operation):
                    self._quiet.clear()
                    self._tasks[operation] = self._start(self._serve(operation))
                case Stop(operation=operation):
                    if operation in self._tasks:
                        self._tasks[operation].cancel()
                case Reschedule(operation=operation):
                    if operation in self._work:
                        self._work[operation].reschedule()
                case Drain(session_id=session_id, timeout_ms=timeout_ms):
                    loop = asyncio.get_running_loop()
                    loop.call_later(timeout_ms / 1000, self._drained, session_id)
                case End():
                    self._outbox.put(action)

    def _drained(self, session_id: int) -> None:
        self._perform(self._machine.drained(session_id))

    # -- operations ---------------------------------------------------------------------------------------

    async def _serve(self, operation: Operation) -> None:
        """Answer one operation. It is cancelled once the operation has ended otherwise."""
        work: Work | None = None
        try:
            # A token may have been switched off since the connection began.
            holder = await self._backing.admit(self._scope)
            if holder is None:
                error = WireError("The API token no longer counts.", ErrorCode.AUTH_FAILED, fatal=True)
                self._perform(self._machine.fault(error))
                return
            work = self._work[operation] = Work(
                operation.request,
                self._backing,
                holder,
                lambda event: self._tell(operation, event),
                name=f"{operation.header.session_id}_{operation.operation_id}",
                deadline=lambda: operation.deadline_unix_ms,
            )
            began = asyncio.get_running_loop().time()
            status, event = await work.run()
            await self._room(operation)
            total_ms = int((asyncio.get_running_loop().time() - began) * 1000)
            times = {"total_ms": total_ms, "queue_ms": work.queue_ms}
            self._perform(self._machine.result(operation, status, event, **times))
        except StoreUnavailable as away:
            # The token could not be looked up; the next operation may be luckier.
            failed = ProfileError(away.message, code=away.code, kind="server_error")
            self._perform(self._machine.result(operation, failed.result_status, failed.event))
        finally:
            self._work.pop(operation, None)
            self._tasks.pop(operation, None)
            if not self._tasks:
                self._quiet.set()
            if work is not None:
                await work.settle()

    async def _tell(self, operation: Operation, event: JsonObject) -> None:
        await self._room(operation)
        self._outbox.put(self._machine.partial(operation, event))

    async def _room(self, operation: Operation) -> None:
        await self._outbox.room()
        if operation.state is not OperationState.RUNNING:
            # Something below caught the cancellation that the end of the operation brought.
            raise asyncio.CancelledError


connections: Final = Part[Connections]("table of NNRP connections")
