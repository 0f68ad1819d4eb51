"""``/nnrp``: chat completions over NNRP/1, a plain ASGI application.

One binary WebSocket message is one packet. The state machine of ``voiceapp.nnrp.connection`` decides, this
performs: one task reads, one writes, and one works on each operation.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from django.dispatch import receiver

from voiceapp.nnrp.backing import Backing, TokenBacking
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
from voiceapp.nnrp.work import Work
from voiceapp.serving.scope import in_turns, refuse_upgrade
from voiceapp.signals import server_stopping
from voiceapp.types import JsonObject, Receive
from voiceapp.types import Send as SendMessage

logger = logging.getLogger(__name__)

Message = dict[str, Any]

PATH: Final = "/nnrp"
MAX_CONNECTIONS: Final = 500
"""Connections of one process."""
MAX_TOKEN_CONNECTIONS: Final = 32
"""Connections of one API token in one process."""
HELLO_S: Final = 10.0
"""How long a client may take to say CLIENT_HELLO."""
SEND_S: Final = 30.0
"""How long a client may leave a packet unread."""
DRAIN_S: Final = 10.0
"""How long operations may go on when the server stops."""
FAILED: Final = 4011
"""Close code of a connection that a fault of ours ended."""


class NnrpApp:
    """The ASGI application; it owns its connections."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._connections: set[_Connection] = set()
        self._by_token: Counter[int] = Counter()
        self._stopping = False

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        """Serve one WebSocket."""
        receive = in_turns(receive)
        if (await receive())["type"] != "websocket.connect":
            return
        holder = await self._backing.admit(scope)
        if holder is None:
            await _refuse(scope, send, 401, UNAUTHORIZED, "not_authorized")
            return
        if self._stopping or self.connections >= MAX_CONNECTIONS:
            await _refuse(scope, send, 503, TOO_MANY, "too_many_connections")
            return
        if self._by_token[holder.token_id] >= MAX_TOKEN_CONNECTIONS:
            await _refuse(scope, send, 429, TOO_MANY, "too_many_connections")
            return
        connection = _Connection(scope, receive, send, self._backing)
        self._connections.add(connection)
        self._by_token[holder.token_id] += 1
        try:
            # The client may be gone by now.
            with suppress(OSError):
                await send({"type": "websocket.accept"})
                await connection.run()
        finally:
            self._connections.discard(connection)
            self._by_token[holder.token_id] -= 1
            self._by_token += Counter()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._connections)

    async def drain(self) -> None:
        """Begin nothing new, let operations end, then close every connection. Takes ``DRAIN_S`` and a bit."""
        self._stopping = True
        try:
            await asyncio.gather(*(connection.drain() for connection in list(self._connections)))
        finally:
            # The process ends, but one in which tests run does not.
            self._stopping = False


async def _refuse(scope: Message, send: SendMessage, status: int, close_code: int, code: str) -> None:
    text = {
        401: "Give an API token: Authorization: Bearer va_… or ?token=va_…",
        429: f"A token may hold {MAX_TOKEN_CONNECTIONS} connections at once.",
        503: "The server has too many connections, or is stopping.",
    }[status]
    body = {"error": {"code": code, "message": text}}
    await refuse_upgrade(scope, send, status, body, close_code=close_code, reason=code)


class _Connection:
    """One client's WebSocket."""

    def __init__(self, scope: Message, receive: Receive, send: SendMessage, backing: Backing) -> None:
        self._scope, self._receive, self._send, self._backing = scope, receive, send, backing
        self._machine = ServerConnection()
        self._outbox = PacketQueue()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[Operation, asyncio.Task[None]] = {}
        self._work: dict[Operation, Work] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Serve until the client is gone or was sent away."""
        hello = asyncio.get_running_loop().call_later(HELLO_S, self._no_hello)
        try:
            async with asyncio.TaskGroup() as self._group:
                ends = {self._group.create_task(self._listen()), self._group.create_task(self._deliver())}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in [*ends, *self._tasks.values()]:
                    task.cancel()
        except* Exception:
            logger.exception("an NNRP connection failed")
            with suppress(OSError, RuntimeError):
                await self._send({"type": "websocket.close", "code": FAILED, "reason": "internal_error"})
        finally:
            hello.cancel()
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

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
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
                        return
                    await self._send({"type": "websocket.send", "bytes": item})
        except TimeoutError:
            logger.info("an NNRP client read too slowly")
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(1.0):
                    await self._send({"type": "websocket.close", "code": TOO_SLOW, "reason": "too_slow"})
        except OSError:
            # The reader hears of it as well.
            return

    def _perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case SendPacket(data=data):
                    self._outbox.put(data)
                case Start(operation=operation):
                    assert self._group is not None
                    self._quiet.clear()
                    self._tasks[operation] = self._group.create_task(self._serve(operation))
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
        except Exception:
            logger.exception("operation %d could not be answered", operation.operation_id)
            error = WireError("The server failed.", ErrorCode.INTERNAL_ERROR, fatal=True)
            self._perform(self._machine.fault(error))
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


nnrp_socket = NnrpApp(TokenBacking())
"""What serves ``/nnrp``."""


@receiver(server_stopping)
async def _stop(**_: Any) -> None:
    await nnrp_socket.drain()
