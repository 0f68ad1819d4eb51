"""A small client of ``/nnrp`` for programs, the command line and tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import websockets

from voiceapp.errors import (
    RemoteProtocolError,
    UpstreamClosed,
    UpstreamRefused,
    UpstreamTimeout,
)
from voiceapp.nnrp import layouts, profile, wire
from voiceapp.nnrp.data_layouts import Control, DropReason, PartialResult, ResultDrop, ResultPush
from voiceapp.nnrp.wire import MessageType, Packet
from voiceapp.protocol import tool_calls
from voiceapp.protocol.tool_calls import ToolCallOrder
from voiceapp.types import JsonObject

CONNECT_S: Final = 15.0
ANSWER_S: Final = 30.0
"""How long the server may take to answer a handshake; results may take as long as they need."""
MAX_WAITING: Final = 1_024
"""Events of one operation that may wait for whoever asked; beyond, the connection is not read on."""


class OperationDropped(Exception):
    """An operation ended without a result; ``reason`` is a ``DropReason``, or another number."""

    def __init__(self, reason: int) -> None:
        name = DropReason(reason).name.lower() if reason in set(DropReason) else str(reason)
        super().__init__(f"The operation was dropped ({name}).")
        self.reason = reason


class NnrpClient:
    """One connection; use ``connect``. Sessions and operations may run at the same time."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self._socket = socket
        self._control: asyncio.Queue[Packet] = asyncio.Queue(MAX_WAITING)
        self._opening = asyncio.Lock()
        self._results: dict[tuple[int, int], asyncio.Queue[Packet | Exception]] = {}
        self._closings: dict[int, asyncio.Future[None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self.errors: list[Packet] = []
        """ERROR packets that were about no operation of ours."""

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read())
        try:
            await self._send(MessageType.CLIENT_HELLO, layouts.ClientHello())
            await self._answer(MessageType.SERVER_HELLO_ACK)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()

    async def open_session(self, *, max_operations: int = 16) -> ClientSession:
        """Open a session; raise ``RemoteProtocolError`` where the server refuses."""
        async with self._opening:
            # Answers come in order and name no request.
            asked = layouts.SessionOpen(max_in_flight_operations=max_operations)
            await self._send(MessageType.SESSION_OPEN, asked)
            packet = await self._answer(MessageType.SESSION_OPEN_ACK)
        ack = packet.metadata
        assert isinstance(ack, layouts.SessionOpenAck)
        if ack.session_status != layouts.SessionStatus.OPENED:
            raise RemoteProtocolError(
                f"The server opens no session (code {ack.session_error_code:#x}).", code="session_refused"
            )
        return ClientSession(self, ack.session_id)

    # -- for sessions -------------------------------------------------------------------------------------

    async def _send(
        self, kind: MessageType, metadata: layouts.Layout | None = None, body: bytes = b"", **ids: Any
    ) -> None:
        try:
            await self._socket.send(wire.encode(kind, metadata, body, **ids))
        except websockets.ConnectionClosed as error:
            raise _closed(error) from None

    async def _answer(self, kind: MessageType) -> Packet:
        reader = self._reader
        assert reader is not None
        waiting = asyncio.ensure_future(self._control.get())
        try:
            await asyncio.wait({waiting, reader}, timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                if reader.done():
                    reader.result()
                raise UpstreamTimeout(f"The server did not answer within {ANSWER_S:g} seconds.")
            packet = waiting.result()
        finally:
            waiting.cancel()
        if packet.type is MessageType.ERROR:
            raise _error_in(packet)
        if packet.type is not kind:
            raise RemoteProtocolError(f"{packet.type.name} came instead of {kind.name}.", code="nnrp_order")
        return packet

    async def _read(self) -> None:
        error: Exception = UpstreamClosed("The server closed the connection.")
        try:
            async for message in self._socket:
                if isinstance(message, str):
                    raise RemoteProtocolError("The server sent text.", code="nnrp_text")
                await self._take(wire.decode(message))
        except websockets.ConnectionClosed as closed:
            error = _closed(closed)
        except RemoteProtocolError as broken:
            error = broken
        finally:
            for queue in self._results.values():
                # Whoever waits must hear of it even where the queue is full.
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(error)
            for closing in self._closings.values():
                if not closing.done():
                    closing.set_exception(error)
        try:
            raise error
        finally:
            del error

    async def _take(self, packet: Packet) -> None:
        header = packet.header
        queue = self._results.get((header.session_id, header.frame_id))
        match packet.type:
            case MessageType.SERVER_HELLO_ACK | MessageType.SESSION_OPEN_ACK:
                await self._control.put(packet)
            case MessageType.PARTIAL_RESULT | MessageType.RESULT_PUSH | MessageType.RESULT_DROP_REASON:
                if queue is not None:
                    await queue.put(packet)
            case MessageType.SESSION_CLOSE_ACK:
                closing = self._closings.pop(header.session_id, None)
                if closing is not None and not closing.done():
                    closing.set_result(None)
            case MessageType.PING:
                await self._socket.send(wire.encode(MessageType.PONG))
            case MessageType.ERROR:
                metadata = packet.metadata
                assert isinstance(metadata, layouts.ErrorPacket)
                if queue is not None:
                    await queue.put(packet)
                elif metadata.fatal:
                    raise _error_in(packet)
                else:
                    self.errors.append(packet)
                    del self.errors[:-100]
            case _:
                pass


class ClientSession:
    """One session of a connection."""

    def __init__(self, client: NnrpClient, session_id: int) -> None:
        self.session_id = session_id
        self._client = client
        self._count = 0

    async def start(
        self, body: JsonObject, *, request_id: str = "", policy: JsonObject | None = None
    ) -> Running:
        """Submit a chat request: ``body`` as for chat completions, ``policy`` the envelope's ``nnrp``."""
        envelope: JsonObject = {
            "schema_version": profile.SCHEMA_VERSION,
            "operation": profile.OPERATION,
            "body": body,
        }
        if request_id:
            envelope["request_id"] = request_id
        if policy:
            envelope["nnrp"] = policy
        return await self.submit(envelope)

    async def submit(self, envelope: JsonObject) -> Running:
        """Submit an envelope as it is."""
        self._count += 1
        running = Running(self._client, self.session_id, self._count)
        metadata, body = profile.write_submit(self._count, envelope)
        try:
            await self._client._send(
                MessageType.FRAME_SUBMIT, metadata, body, session_id=self.session_id, frame_id=self._count
            )
        except BaseException:
            running._forget()
            raise
        return running

    async def close(self) -> None:
        """Close the session; operations that are under way are dropped."""
        closing = self._client._closings.setdefault(
            self.session_id, asyncio.get_running_loop().create_future()
        )
        close = layouts.SessionClose(in_flight_policy=1, last_operation_id=self._count)
        await self._client._send(MessageType.SESSION_CLOSE, close, session_id=self.session_id)
        async with asyncio.timeout(ANSWER_S):
            await closing


class Running:
    """One operation under way."""

    def __init__(self, client: NnrpClient, session_id: int, number: int) -> None:
        self._client = client
        self._ids: dict[str, Any] = {"session_id": session_id, "frame_id": number}
        self._operation_id = number
        self._queue: asyncio.Queue[Packet | Exception] = asyncio.Queue(MAX_WAITING)
        self._client._results[session_id, number] = self._queue
        self._sequence = 0
        self._order = ToolCallOrder(RemoteProtocolError)

    async def cancel(self) -> None:
        """Ask the server to give the operation up; ``events`` then ends with ``Dropped``."""
        await self._client._send(
            MessageType.CANCEL, Control(self._operation_id, control_sequence=1, reason_code=1), **self._ids
        )

    async def events(self) -> AsyncGenerator[JsonObject]:
        """Return each event, the last of which is a terminal one.

        Raises ``Dropped`` where there is no result, ``RemoteProtocolError`` for an ERROR packet or a server
        that breaks the rules, and ``UpstreamClosed`` where the connection ended before.
        """
        try:
            while True:
                packet = await self._queue.get()
                if isinstance(packet, Exception):
                    try:
                        raise packet
                    finally:
                        del packet
                match packet.metadata:
                    case PartialResult() as metadata:
                        yield self._partial(metadata, packet.body)
                    case ResultPush() as result:
                        event = profile.read_result(result, packet.body)
                        yield profile.completed_event({}) if event is None else event
                        return
                    case ResultDrop(drop_reason_code=reason):
                        raise OperationDropped(reason)
                    case _:
                        raise _error_in(packet)
        finally:
            self._forget()

    async def result(self) -> JsonObject:
        """Return the terminal event; raise as ``events`` does."""
        last: JsonObject = {}
        async for event in self.events():
            last = event
        return last

    def _partial(self, metadata: PartialResult, body: bytes) -> JsonObject:
        self._sequence += 1
        if (metadata.operation_id, metadata.result_sequence) != (self._operation_id, self._sequence):
            raise RemoteProtocolError("A partial result is out of order.", code="nnrp_order")
        event = profile.read_event(body)
        if tool_calls.is_tool_call(event):
            self._order.take(tool_calls.read(event))
        return event

    def _forget(self) -> None:
        self._client._results.pop((self._ids["session_id"], self._ids["frame_id"]), None)


@asynccontextmanager
async def connect(url: str, token: str) -> AsyncIterator[NnrpClient]:
    """Connect to ``ws://…/nnrp`` with an API token.

    Raises ``UpstreamRefused`` or ``UpstreamTimeout`` where there is no connection.
    """
    try:
        socket = await websockets.connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            max_size=wire.MAX_PACKET_BYTES,
            open_timeout=CONNECT_S,
        )
    except websockets.InvalidStatus as error:
        status = error.response.status_code
        answer = "refused the token" if status == 401 else f"refused with status {status}"
        raise UpstreamRefused(f"The server {answer}.") from None
    except TimeoutError:
        raise UpstreamTimeout("The server cannot be reached in time.") from None
    except (OSError, websockets.InvalidHandshake, websockets.InvalidURI) as error:
        raise UpstreamRefused(f"The server cannot be reached: {error}") from None
    async with NnrpClient(socket) as client:
        yield client


def _error_in(packet: Packet) -> RemoteProtocolError:
    """Return what an ERROR packet says."""
    metadata = packet.metadata
    if not isinstance(metadata, layouts.ErrorPacket):
        return RemoteProtocolError(f"{packet.type.name} came unexpectedly.", code="nnrp_order")
    known = metadata.error_code in set(layouts.ErrorCode)
    name = layouts.ErrorCode(metadata.error_code).name.lower() if known else str(metadata.error_code)
    return RemoteProtocolError(packet.body.decode("utf-8", "replace"), code=f"nnrp_{name}")


def _closed(error: websockets.ConnectionClosed) -> UpstreamClosed:
    reason = error.rcvd.reason if error.rcvd else ""
    return UpstreamClosed(f"The server closed the connection ({reason or 'no reason'}).")
