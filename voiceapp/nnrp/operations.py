"""What a server's connection holds, sessions and their operations, and what it asks of whoever drives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import wire
from voiceapp.nnrp.layouts import Layout, SessionClose, SessionOpen, SessionOpenAck, SessionStatus
from voiceapp.nnrp.profile import SubmitRequest
from voiceapp.nnrp.wire import Header, MessageType
from voiceapp.protocol.tool_calls import ToolCallOrder

MAX_SESSIONS: Final = 64
"""Sessions of one connection."""
MAX_OPERATIONS: Final = 64
"""Operations at once on one connection."""
MAX_SESSION_OPERATIONS: Final = 16
"""Operations at once in one session, unless its client wants fewer."""
MAX_REMEMBERED: Final = 256
"""Operations of a session that are remembered after their end, so that a late cancel is no fault."""
MAX_WAITING_DEADLINES: Final = 64
"""Deadlines of a session that may come before their operations."""


class OperationState(Enum):
    """How far an operation has come: it is answered by partial events, then by exactly one end."""

    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Operation:
    """One submit being answered; ``header`` is its packet's, whose ids every answer carries.

    ``deadline_unix_ms`` is a time of day, 0 for none.
    """

    operation_id: int
    header: Header
    request: SubmitRequest
    deadline_unix_ms: int = 0
    sequence: int = 0
    state: OperationState = OperationState.RUNNING
    order: ToolCallOrder = field(default_factory=lambda: ToolCallOrder(LocalProtocolError))


def answer(
    header: Header, message_type: MessageType, metadata: Layout | None = None, body: bytes = b""
) -> bytes:
    """Return a packet that answers the one whose header is given: it repeats all of its ids."""
    return wire.encode(
        message_type,
        metadata,
        body,
        session_id=header.session_id,
        frame_id=header.frame_id,
        view_id=header.view_id,
        route_id=header.route_id,
        trace_id=header.trace_id,
    )


@dataclass(slots=True, eq=False)
class ServerSession:
    """One session; ``closing`` is the SESSION_CLOSE that waits for its operations, and its header."""

    session_id: int
    max_operations: int
    closing: tuple[Header, SessionClose] | None = None
    last_operation_id: int = 0
    operations: dict[int, Operation] = field(default_factory=dict)
    by_frame: dict[int, Operation] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    """Operation to frame, oldest first."""
    deadlines: dict[int, int] = field(default_factory=dict)
    """Operation to deadline, for operations still to come, oldest first."""

    def add(self, operation: Operation) -> None:
        """Take in a new operation."""
        self.operations[operation.operation_id] = operation
        self.by_frame[operation.header.frame_id] = operation
        self.last_operation_id = operation.operation_id

    def remove(self, operation: Operation) -> None:
        """Forget an operation that has ended, all but its ids."""
        operation.state = OperationState.ENDED
        del self.operations[operation.operation_id]
        del self.by_frame[operation.header.frame_id]
        self.remember(operation.operation_id, operation.header.frame_id)

    def remember(self, operation_id: int, frame_id: int) -> None:
        """Note the ids of an operation that has ended."""
        self.ended.pop(operation_id, None)
        self.ended[operation_id] = frame_id
        if len(self.ended) > MAX_REMEMBERED:
            del self.ended[next(iter(self.ended))]

    def expect(self, operation_id: int, deadline_unix_ms: int) -> None:
        """Note the deadline of an operation that has not been submitted."""
        self.deadlines.pop(operation_id, None)
        self.deadlines[operation_id] = deadline_unix_ms
        if len(self.deadlines) > MAX_WAITING_DEADLINES:
            del self.deadlines[next(iter(self.deadlines))]


_PROFILES: Final = (0, 2)
_SCHEMAS: Final = ((0, 0), (0x1001, 3))
_NO_PROFILE, _NO_SCHEMA, _NO_RESUME, _TOO_MANY = 0x10002, 0x10003, 0x10006, 0x10007


def refusal(asked: SessionOpen, *, room: bool) -> SessionOpenAck | None:
    """Return the answer to a SESSION_OPEN that cannot be granted; ``room`` says whether one more may be."""
    status, error_code = SessionStatus.REJECTED, 0
    if asked.profile_id not in _PROFILES:
        error_code = _NO_PROFILE
    elif (asked.schema_id, asked.schema_version) not in _SCHEMAS:
        error_code = _NO_SCHEMA
    elif asked.resume_token_bytes:
        error_code = _NO_RESUME
    elif not room:
        status, error_code = SessionStatus.RETRY_LATER, _TOO_MANY
    else:
        return None
    return _ack(asked, session_status=status, session_error_code=error_code)


def grant(asked: SessionOpen, session: ServerSession) -> SessionOpenAck:
    """Return the answer to a SESSION_OPEN that made ``session``."""
    return _ack(
        asked,
        session_id=session.session_id,
        granted_operation_credit=session.max_operations,
        max_in_flight_operations=session.max_operations,
        lease_ttl_ms=asked.lease_ttl_hint_ms,
        server_session_tag=session.session_id,
    )


def _ack(asked: SessionOpen, **answer: int) -> SessionOpenAck:
    return SessionOpenAck(
        accepted_profile_id=asked.profile_id,
        accepted_priority_class=asked.priority_class,
        schema_id=asked.schema_id,
        schema_version=asked.schema_version,
        **answer,
    )


# -- actions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendPacket:
    """Send a packet."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Start:
    """Begin to work on an operation."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Stop:
    """Give up the work on an operation, which has ended."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Reschedule:
    """An operation's deadline has changed."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Drain:
    """Call ``ServerConnection.drained`` for a session after so many milliseconds."""

    session_id: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """Close the WebSocket; nothing comes after it."""

    code: int
    reason: str


Action = SendPacket | Start | Stop | Reschedule | Drain | End
