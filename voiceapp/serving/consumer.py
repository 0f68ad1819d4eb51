"""The base of the product's Channels consumers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, ClassVar, Final

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from voiceapp.serving.budget import Budget, Pace
from voiceapp.types import JsonObject, Receive, Scope, Send

logger = logging.getLogger(__name__)

MESSAGES_A_TURN: Final = 8
"""Most take less than 0.1 ms each; a voice sends so many in 160 ms."""

PROGRAM_PACE: Final = Pace(
    messages_a_s=2_000, messages_at_once=20_000, bytes_a_s=8 * 1024**2, bytes_at_once=64 * 1024**2
)
"""What a program may send: 40 voices' worth of messages, and three of the longest messages at once."""


class SocketConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types.
    """A Channels consumer of one WebSocket whose messages reach it without a detour.

    Channels' ``AsyncConsumer.dispatch`` closes old database connections before every message, and that is a
    hop to another thread: about 125 µs, more than all the rest of relaying 20 ms of audio, and a wait for
    whatever else that thread does. Here ``__call__`` hands audio and text straight to ``websocket_receive``;
    everything else takes Channels' ``dispatch``. After every ``MESSAGES_A_TURN`` messages other tasks run:
    a server returns what has arrived already without waiting, and thousands of tiny messages in one read of
    a socket would otherwise all be handled before anybody's audio goes on. Then the consumer's ``pace`` is
    looked at as well: whoever sends more is ``too_fast``.

    A consumer has the usual methods ``websocket_connect``, ``websocket_receive`` and
    ``websocket_disconnect``. The last one is called exactly once, after all of the consumer's tasks have
    ended, whatever ended the connection: the client, ``StopConsumer``, a fault, or the server, which cancels.
    No channel of a channel layer is made for it: none of these consumers is in a group.
    """

    fault_code: ClassVar[int | None] = None
    """Close code for a fault of ours; ``None`` leaves it to the server, which is told of the fault."""

    fault_reason: ClassVar[str] = ""

    pace: ClassVar[Pace] = PROGRAM_PACE

    scope: Scope
    base_send: Send

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the socket until something ends it."""
        self.scope, self.base_send = scope, send
        self._tasks: set[asyncio.Task[Any]] = set()
        self._over: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._goodbye: JsonObject = {"type": "websocket.disconnect", "code": 1006}
        self.start(self._receive_all(receive))
        try:
            try:
                error = await self._over
            except asyncio.CancelledError:
                await self.cancelled()
                raise
            finally:
                await self._end_tasks()
            try:
                if not isinstance(error, StopConsumer) and not await self.failed(error):
                    raise error
            finally:
                # Its traceback would hold this call, and so the consumer, until a full collection.
                del error
        finally:
            # Likewise, where a task of the consumer has raised it.
            del self._over
            with suppress(StopConsumer):
                await self.websocket_disconnect(self._goodbye)

    async def _receive_all(self, receive: Receive) -> None:
        budget, time_s = Budget(self.pace), asyncio.get_running_loop().time
        count = size = 0
        while True:
            message = await receive()
            if message["type"] == "websocket.receive":
                data = message.get("bytes")
                size += len(message.get("text") or "" if data is None else data)
                await self.websocket_receive(message)
            elif message["type"] == "websocket.disconnect":
                self._goodbye = message
                raise StopConsumer
            else:
                await self.dispatch(message)
            count += 1
            if count % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)
                if over_s := budget.spend(time_s(), MESSAGES_A_TURN, size):
                    await self.too_fast(over_s)
                size = 0

    # -- for consumers --------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` in a task that ends with the connection; what it raises ends the connection.

        ``StopConsumer`` ends it in order.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def send(self, message: JsonObject) -> None:
        """Send one message; raise ``StopConsumer`` where the client is gone."""
        try:
            await self.base_send(message)
        except OSError:
            raise StopConsumer from None

    async def websocket_connect(self, message: JsonObject) -> None:
        """Accept the socket, or refuse it and raise ``StopConsumer``."""
        raise NotImplementedError

    async def websocket_receive(self, message: JsonObject) -> None:
        """Take one message, which has ``bytes`` or ``text``; the next one is not received meanwhile."""
        raise NotImplementedError

    async def websocket_disconnect(self, message: JsonObject) -> None:
        """Let go of everything: the connection is over."""

    async def too_fast(self, over_s: float) -> None:
        """Wait until a client that sends more than its pace has its budget back, or end the connection.

        Meanwhile nothing is received, so that the server reads no more of the socket.
        """
        await asyncio.sleep(over_s)

    async def cancelled(self) -> None:
        """Do what is to be done when the server cancels the consumer; its tasks run on meanwhile.

        Daphne sends no lifespan events: this is how it says that it stops.
        """

    async def failed(self, error: BaseException) -> bool:
        """Say goodbye after something has raised ``error``; return ``False`` to leave that to the server."""
        if self.fault_code is None:
            return False
        logger.error("%s failed", type(self).__name__, exc_info=error)
        goodbye: JsonObject = {"type": "websocket.close", "code": self.fault_code}
        if self.fault_reason:
            goodbye["reason"] = self.fault_reason
        try:
            await self.base_send(goodbye)
        except Exception:
            # Servers raise what they like for a client who is gone, and for codes that they do not know.
            logger.debug("The client was gone before its socket could be closed")
        return True

    # -- tasks ----------------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not self._over.done():
            self._over.set_result(error)

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
