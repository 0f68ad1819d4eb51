"""The server's side of one connection as a state machine: packets in, actions out.

It knows neither sockets nor clocks. Whoever drives it performs the actions in order, works on the operations
that are started, and hands what comes of them to ``partial``, ``result`` and ``drop``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import layouts, profile, wire
from voiceapp.nnrp.data_layouts import (
    Control,
    DropReason,
    FrameSubmit,
    PartialResult,
    ResultDrop,
    Scheduling,
    Status,
)
from voiceapp.nnrp.layouts import ErrorCode, Scope, WireError
from voiceapp.nnrp.operations import (
    MAX_OPERATIONS,
    MAX_SESSION_OPERATIONS,
    MAX_SESSIONS,
    Action,
    Drain,
    End,
    Operation,
    OperationState,
    Reschedule,
    SendPacket,
    ServerSession,
    Start,
    Stop,
    answer,
    grant,
    refusal,
)
from voiceapp.nnrp.profile import STRUCTURED_EVENT, ProfileError
from voiceapp.nnrp.wire import Header, MessageType, Packet
from voiceapp.protocol import tool_calls
from voiceapp.types import JsonObject

MAX_FAULTS: Final = 64
"""Faulty packets that a connection may bring before it is closed."""
MAX_DRAIN_MS: Final = 30_000
"""Longest wait for the operations of a session that is being closed."""

NORMAL, UNAUTHORIZED, FAULTY, TOO_SLOW, TOO_MANY, STOPPING = 1000, 4001, 4002, 4008, 4009, 4015
"""Close codes of the WebSocket."""


class ConnectionState(Enum):
    """How far a connection has come."""

    NEW = "new"
    READY = "ready"
    CLOSED = "closed"


TRANSITIONS: Final[Mapping[tuple[ConnectionState, MessageType], str]] = {
    (ConnectionState.NEW, MessageType.CLIENT_HELLO): "_hello",
    (ConnectionState.NEW, MessageType.CLOSE): "_close",
    (ConnectionState.READY, MessageType.PING): "_ping",
    (ConnectionState.READY, MessageType.PONG): "_ignore",
    (ConnectionState.READY, MessageType.CLOSE): "_close",
    (ConnectionState.READY, MessageType.SESSION_OPEN): "_open_session",
    (ConnectionState.READY, MessageType.SESSION_CLOSE): "_close_session",
    (ConnectionState.READY, MessageType.FRAME_SUBMIT): "_submit",
    (ConnectionState.READY, MessageType.FRAME_CANCEL): "_cancel_frame",
    (ConnectionState.READY, MessageType.CANCEL): "_cancel",
    (ConnectionState.READY, MessageType.ABORT): "_cancel",
    (ConnectionState.READY, MessageType.DEADLINE): "_deadline",
    (ConnectionState.READY, MessageType.EXPIRE_AT): "_deadline",
    # Advice that has no bearing here: results are sent as fast as the socket takes them.
    (ConnectionState.READY, MessageType.PRIORITY_UPDATE): "_ignore",
    (ConnectionState.READY, MessageType.FLOW_UPDATE): "_ignore",
}
"""What a packet does, by the connection's state; any other is a fault of the client."""


class ServerConnection:
    """One client's connection; ``state`` says how far it has come, ``faults`` counts bad packets."""

    def __init__(self) -> None:
        self.state = ConnectionState.NEW
        self.faults = 0
        self.stopping = False
        self._sessions: dict[int, ServerSession] = {}
        self._next_session = 1

    # -- in -----------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Action]:
        """Take one binary message of the client."""
        if self.state is ConnectionState.CLOSED:
            return []
        try:
            packet = wire.decode(data)
            name = TRANSITIONS.get((self.state, packet.type))
            if name is None:
                raise packet.header.error(
                    f"{packet.type.name} may not come on a connection that is {self.state.value}.",
                    ErrorCode.INVALID_STATE,
                )
            actions: list[Action] = getattr(self, name)(packet)
        except WireError as error:
            return self.fault(error)
        return actions

    def fault(self, error: WireError) -> list[Action]:
        """Answer a fault of the client with an ERROR packet; the last straw closes the connection."""
        self.faults += 1
        fatal = error.fatal or self.state is ConnectionState.NEW or self.faults >= MAX_FAULTS
        text = error.message.encode()
        metadata = layouts.ErrorPacket(
            error.error_code,
            Scope.CONNECTION if fatal else error.scope,
            int(fatal),
            0,
            error.session_id,
            error.frame_id,
            error.view_id,
            len(text),
        )
        known = error.session_id if error.session_id in self._sessions else 0
        frame = error.frame_id if known else 0
        actions: list[Action] = [
            SendPacket(wire.encode(MessageType.ERROR, metadata, text, session_id=known, frame_id=frame))
        ]
        if fatal:
            code = UNAUTHORIZED if error.error_code is ErrorCode.AUTH_FAILED else FAULTY
            actions += [*self._stop_all(), End(code, error.code)]
        return actions

    def _hello(self, packet: Packet) -> list[Action]:
        hello = packet.metadata
        assert isinstance(hello, layouts.ClientHello)
        if not hello.min_version <= wire.VERSION <= hello.max_version or not hello.wire_format_bitmap & 1:
            raise packet.header.error("This server speaks NNRP/1 alone.", ErrorCode.UNSUPPORTED_VERSION)
        if not hello.payload_kind_bitmap & STRUCTURED_EVENT:
            raise packet.header.error(
                "This server speaks in structured events alone.", ErrorCode.UNSUPPORTED_CAPABILITY
            )
        try:
            wire.check_extensions(packet.body[hello.auth_bytes :])
        except WireError as error:
            raise packet.header.error(error.message, error.error_code) from None
        self.state = ConnectionState.READY
        ack = layouts.ServerHelloAck(
            accepted_profile_bitmap=hello.profile_bitmap & 2,
            accepted_payload_kind_bitmap=STRUCTURED_EVENT,
            max_lane_count=1,
            max_concurrent_frames=MAX_OPERATIONS,
            max_body_bytes=profile.MAX_REQUEST_BYTES,
        )
        return [SendPacket(wire.encode(MessageType.SERVER_HELLO_ACK, ack, trace_id=packet.header.trace_id))]

    def _ping(self, packet: Packet) -> list[Action]:
        return [SendPacket(answer(packet.header, MessageType.PONG))]

    def _ignore(self, packet: Packet) -> list[Action]:
        return []

    def _close(self, packet: Packet) -> list[Action]:
        return [*self._stop_all(), End(NORMAL, "")]

    # -- sessions -----------------------------------------------------------------------------------------

    def _open_session(self, packet: Packet) -> list[Action]:
        asked = packet.metadata
        assert isinstance(asked, layouts.SessionOpen)
        trace_id = packet.header.trace_id
        refused = refusal(asked, room=not self.stopping and len(self._sessions) < MAX_SESSIONS)
        if refused is not None:
            return [SendPacket(wire.encode(MessageType.SESSION_OPEN_ACK, refused, trace_id=trace_id))]
        session_id = self._free_id(asked.requested_session_id)
        most = min(asked.max_in_flight_operations or MAX_SESSION_OPERATIONS, MAX_SESSION_OPERATIONS)
        session = self._sessions[session_id] = ServerSession(session_id, most)
        ack = wire.encode(
            MessageType.SESSION_OPEN_ACK, grant(asked, session), session_id=session_id, trace_id=trace_id
        )
        return [SendPacket(ack)]

    def _free_id(self, wanted: int) -> int:
        if wanted and wanted not in self._sessions:
            return wanted
        while self._next_session in self._sessions:
            self._next_session = self._next_session % 0xFFFFFFFF + 1
        found = self._next_session
        self._next_session = self._next_session % 0xFFFFFFFF + 1
        return found

    def _session(self, header: Header) -> ServerSession:
        session = self._sessions.get(header.session_id)
        if session is None:
            raise header.error("There is no such session.", ErrorCode.INVALID_STATE)
        return session

    def _close_session(self, packet: Packet) -> list[Action]:
        session, close = self._session(packet.header), packet.metadata
        assert isinstance(close, layouts.SessionClose)
        if session.closing is not None:
            raise packet.header.error("The session is being closed.", ErrorCode.INVALID_STATE)
        session.closing = packet.header, close
        if not session.operations:
            return self._closed(session)
        if close.in_flight_policy or not close.drain_timeout_ms:
            return self.drained(session.session_id)
        return [Drain(session.session_id, min(close.drain_timeout_ms, MAX_DRAIN_MS))]

    def drained(self, session_id: int) -> list[Action]:
        """A session's time to end its operations is over: the rest of them are dropped."""
        session = self._sessions.get(session_id)
        if session is None or session.closing is None:
            return []
        return self._give_up(session.operations.values(), DropReason.PEER_CANCELLED)

    def _closed(self, session: ServerSession) -> list[Action]:
        """Say that a session is over, once it is."""
        if session.closing is None or session.operations:
            return []
        header, _ = session.closing
        del self._sessions[session.session_id]
        ack = layouts.SessionCloseAck(last_operation_id=session.last_operation_id)
        return [SendPacket(answer(header, MessageType.SESSION_CLOSE_ACK, ack))]

    # -- operations ---------------------------------------------------------------------------------------

    def _submit(self, packet: Packet) -> list[Action]:
        header, metadata = packet.header, packet.metadata
        assert isinstance(metadata, FrameSubmit)
        session = self._session(header)
        if session.closing is not None:
            raise header.error("The session is being closed.", ErrorCode.INVALID_STATE)
        if not header.frame_id or header.frame_id in session.by_frame:
            raise header.error("A submit needs a frame id that is not in use.", ErrorCode.INVALID_STATE)
        if len(packet.body) > profile.MAX_REQUEST_BYTES:
            raise header.error(
                f"A submit may have {profile.MAX_REQUEST_BYTES} bytes at most.", ErrorCode.LIMIT_EXCEEDED
            )
        try:
            self._admit(session, metadata.operation_id)
            request = profile.read_submit(metadata, packet.body)
        except ProfileError as error:
            # A duplicate's answer is told from the first one's by its frame alone, so nothing is remembered.
            result, body = profile.write_result(error.result_status, error.event)
            return [SendPacket(answer(header, MessageType.RESULT_PUSH, result, body))]
        except WireError as error:
            raise header.error(error.message, error.error_code) from None
        deadline = session.deadlines.pop(metadata.operation_id, 0)
        operation = Operation(metadata.operation_id, header, request, deadline)
        session.add(operation)
        return [Start(operation)]

    def _admit(self, session: ServerSession, operation_id: int) -> None:
        if operation_id in session.operations:
            raise ProfileError("An operation of this id is under way.", code="duplicate_operation_id")
        total = sum(len(one.operations) for one in self._sessions.values())
        if len(session.operations) >= session.max_operations or total >= MAX_OPERATIONS:
            limits = f"{session.max_operations} in this session, {MAX_OPERATIONS} on this connection"
            raise ProfileError(
                f"Too many operations at once: {limits}.", code="adapter_operation_limit", kind="server_error"
            )
        if self.stopping:
            raise ProfileError("The server is stopping.", code="backend_overload", kind="server_error")

    def _cancel_frame(self, packet: Packet) -> list[Action]:
        session, frame_id = self._session(packet.header), packet.header.frame_id
        operation = session.by_frame.get(frame_id)
        if operation is not None:
            return self._give_up([operation], DropReason.PEER_CANCELLED)
        if frame_id in session.ended.values():
            return []
        raise packet.header.error("There is no such frame.", ErrorCode.INVALID_STATE)

    def _cancel(self, packet: Packet) -> list[Action]:
        session, control = self._session(packet.header), packet.metadata
        assert isinstance(control, Control)
        if control.operation_id:
            found = self._named(session, packet.header, control.operation_id)
            return [] if found is None else self._give_up([found], DropReason.PEER_CANCELLED)
        return self._give_up(session.operations.values(), DropReason.PEER_CANCELLED)

    def _deadline(self, packet: Packet) -> list[Action]:
        session, asked = self._session(packet.header), packet.metadata
        assert isinstance(asked, Scheduling)
        if not asked.operation_id:
            raise packet.header.error("A deadline names an operation.", ErrorCode.MALFORMED_BODY)
        if asked.operation_id not in session.operations:
            # It may come before its operation, or too late.
            if session.ended.get(asked.operation_id) != packet.header.frame_id:
                session.expect(asked.operation_id, asked.deadline_unix_ms)
            return []
        operation = self._named(session, packet.header, asked.operation_id)
        assert operation is not None
        operation.deadline_unix_ms = asked.deadline_unix_ms
        return [Reschedule(operation)]

    def _named(self, session: ServerSession, header: Header, operation_id: int) -> Operation | None:
        """Return the operation that a packet names, ``None`` for one that has ended."""
        operation = session.operations.get(operation_id)
        if operation is not None and operation.header.frame_id == header.frame_id:
            return operation
        if operation is None and session.ended.get(operation_id) == header.frame_id:
            return None
        raise header.error("Operation and frame do not belong together.", ErrorCode.INVALID_STATE)

    # -- out ----------------------------------------------------------------------------------------------

    def partial(self, operation: Operation, event: JsonObject) -> bytes:
        """Return the packet that brings a partial event of a running operation."""
        if operation.state is not OperationState.RUNNING or event["type"] in profile.TERMINAL:
            raise LocalProtocolError("A partial event comes before the terminal one.", code="nnrp_order")
        if tool_calls.is_tool_call(event):
            operation.order.take(tool_calls.read(event))
        operation.sequence += 1
        body = profile.to_json(event)
        metadata = PartialResult(
            operation.operation_id, operation.sequence, 0, operation.sequence, len(body), 0
        )
        return answer(operation.header, MessageType.PARTIAL_RESULT, metadata, body)

    def result(
        self, operation: Operation, status: Status, event: JsonObject, *, total_ms: int = 0, queue_ms: int = 0
    ) -> list[Action]:
        """End an operation with its one terminal event."""
        if operation.state is not OperationState.RUNNING or event["type"] not in profile.TERMINAL:
            raise LocalProtocolError("An operation ends once, with a terminal event.", code="nnrp_order")
        metadata, body = profile.write_result(status, event, total_ms=total_ms, queue_ms=queue_ms)
        packet = answer(operation.header, MessageType.RESULT_PUSH, metadata, body)
        return [SendPacket(packet), *self._ended(operation)]

    def drop(self, operation: Operation, reason: DropReason) -> list[Action]:
        """End an operation without a result."""
        if operation.state is not OperationState.RUNNING:
            raise LocalProtocolError("An operation ends once.", code="nnrp_order")
        metadata = ResultDrop(operation.operation_id, operation.sequence, reason)
        packet = answer(operation.header, MessageType.RESULT_DROP_REASON, metadata)
        return [SendPacket(packet), *self._ended(operation)]

    def _give_up(self, operations: Iterable[Operation], reason: DropReason) -> list[Action]:
        """Stop the work on operations that are still running, and say so."""
        return [
            action
            for operation in list(operations)
            for action in (Stop(operation), *self.drop(operation, reason))
        ]

    def _ended(self, operation: Operation) -> list[Action]:
        session = self._sessions[operation.header.session_id]
        session.remove(operation)
        return self._closed(session)

    def stop(self) -> None:
        """The server is stopping: begin nothing new."""
        self.stopping = True

    def farewell(self) -> list[Action]:
        """Drop what is still under way and close the connection."""
        if self.state is ConnectionState.CLOSED:
            return []
        running = [one for session in self._sessions.values() for one in session.operations.values()]
        dropped = self._give_up(running, DropReason.TRANSPORT_CLOSED)
        close = SendPacket(wire.encode(MessageType.CLOSE))
        return [*dropped, close, *self._stop_all(), End(STOPPING, "server_stopping")]

    def _stop_all(self) -> list[Action]:
        """The connection is over: every operation ends unheard."""
        self.state = ConnectionState.CLOSED
        actions: list[Action] = []
        for session in self._sessions.values():
            for operation in list(session.operations.values()):
                session.remove(operation)
                actions.append(Stop(operation))
        self._sessions.clear()
        return actions
