"""A connection of ``/nnrp`` as a state machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.examples import examples
from tests.parts.nnrp_peer import Packets, Peer, envelope, error_of, terminal_of
from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import connection, data_layouts, layouts, operations, profile, wire
from voiceapp.nnrp.connection import ConnectionState
from voiceapp.nnrp.data_layouts import Control, DropReason, ResultPush, Scheduling, Status
from voiceapp.nnrp.layouts import ErrorCode, Scope
from voiceapp.nnrp.operations import Drain, End, Reschedule
from voiceapp.nnrp.wire import MessageType


def test_an_operation_is_answered_by_partial_events_and_one_terminal_one() -> None:
    peer = Peer()
    session = peer.open()
    ids = {"view_id": 3, "route_id": 4, "trace_id": 5}
    metadata, payload = profile.write_submit(9, envelope())
    peer.send(MessageType.FRAME_SUBMIT, metadata, payload, session_id=session, frame_id=2, **ids)
    (operation,) = peer.started
    for number in (1, 2):
        packet = wire.decode(peer.server.partial(operation, profile.text_event(0, "a")))
        assert isinstance(packet.metadata, data_layouts.PartialResult)
        assert (packet.metadata.operation_id, packet.metadata.result_sequence) == (9, number)
        assert packet.body == b'{"type":"response.output_text.delta","index":0,"delta":"a"}'
        assert (packet.header.session_id, packet.header.frame_id, packet.header.view_id) == (session, 2, 3)
    (last,) = peer.take(peer.server.result(operation, Status.OK, profile.completed_event({})))
    assert terminal_of(last) == {"type": "response.completed", "body": {}}
    assert (last.header.route_id, last.header.trace_id) == (4, 5)
    assert operation.state is operations.OperationState.ENDED
    for again in (
        lambda: peer.server.partial(operation, profile.text_event(0, "a")),
        lambda: peer.server.result(operation, Status.OK, profile.completed_event({})),
        lambda: peer.server.drop(operation, DropReason.PEER_CANCELLED),
    ):
        with pytest.raises(LocalProtocolError):
            again()


def test_only_partial_events_are_sent_as_such_and_tool_calls_in_order() -> None:
    peer = Peer()
    peer.submit(peer.open(), 1, 1)
    (operation,) = peer.started
    delta = {"type": "response.tool_call.delta", "index": 0, "item_id": "i", "call_id": "c"}
    for event in (profile.cancelled_event("x"), {**delta, "arguments_delta": "{"}):
        with pytest.raises(LocalProtocolError):
            peer.server.partial(operation, event)
    with pytest.raises(LocalProtocolError):
        peer.server.result(operation, Status.OK, profile.text_event(0, "a"))


@pytest.mark.parametrize("way", ["cancel", "abort", "frame", "session"])
def test_a_cancel_ends_the_operation_without_a_result(way: str) -> None:
    peer = Peer()
    session = peer.open()
    peer.submit(session, 9, 2)
    ids: dict[str, Any] = {"session_id": session, "frame_id": 2}

    def cancel() -> Packets:
        match way:
            case "frame":
                return peer.send(MessageType.FRAME_CANCEL, **ids)
            case "session":
                return peer.send(MessageType.CANCEL, Control(), session_id=session)
        kind = MessageType.CANCEL if way == "cancel" else MessageType.ABORT
        return peer.send(kind, Control(operation_id=9), **ids)

    (drop,) = cancel()
    assert isinstance(drop.metadata, data_layouts.ResultDrop)
    assert (drop.metadata.operation_id, drop.metadata.drop_reason_code) == (9, 3)
    assert drop.header.frame_id == 2
    assert peer.stopped == peer.started
    # A second one, or one that crossed the result on its way, is no fault.
    assert cancel() == []
    assert peer.server.faults == 0


@pytest.mark.parametrize(
    ("kind", "metadata", "frame"),
    [
        (MessageType.CANCEL, Control(operation_id=9), 3),
        (MessageType.CANCEL, Control(operation_id=8), 2),
        (MessageType.FRAME_CANCEL, None, 3),
        (MessageType.DEADLINE, Scheduling(operation_id=9), 3),
    ],
)
def test_operation_and_frame_must_belong_together(kind: MessageType, metadata: Any, frame: int) -> None:
    peer = Peer()
    session = peer.open()
    peer.submit(session, 9, 2)
    (error,) = peer.send(kind, metadata, session_id=session, frame_id=frame)
    assert error_of(error) == (ErrorCode.INVALID_STATE, Scope.FRAME, False)
    assert not peer.stopped


def test_faults_of_requests_are_results_and_leave_the_session_as_it_was() -> None:
    peer = Peer()
    session = peer.open(max_in_flight_operations=2)
    (answer,) = peer.submit(session, 1, 1, operation="responses.create")
    assert terminal_of(answer)["error"]["code"] == "unsupported_operation"
    peer.submit(session, 1, 2)
    (answer,) = peer.submit(session, 1, 3)
    assert terminal_of(answer)["error"]["code"] == "duplicate_operation_id"
    assert answer.header.frame_id == 3
    peer.submit(session, 2, 4)
    (answer,) = peer.submit(session, 3, 5)
    assert terminal_of(answer)["error"]["code"] == "adapter_operation_limit"
    assert isinstance(answer.metadata, ResultPush)
    assert answer.metadata.status_code == Status.OVERLOAD
    assert len(peer.started) == 2
    (error,) = peer.submit(session, 4, 2)
    assert error_of(error) == (ErrorCode.INVALID_STATE, Scope.FRAME, False)
    assert not peer.stopped


def test_a_connection_and_its_sessions_have_bounds() -> None:
    peer = Peer()
    sessions = [peer.open(max_in_flight_operations=60_000) for _ in range(operations.MAX_SESSIONS)]
    assert len(set(sessions)) == operations.MAX_SESSIONS
    (ack,) = peer.send(MessageType.SESSION_OPEN, layouts.SessionOpen())
    assert isinstance(ack.metadata, layouts.SessionOpenAck)
    assert ack.metadata.session_status == layouts.SessionStatus.RETRY_LATER
    assert ack.metadata.session_id == 0
    for number in range(operations.MAX_OPERATIONS):
        session = sessions[number // operations.MAX_SESSION_OPERATIONS]
        assert peer.submit(session, number + 1, number + 1) == []
    for session in (sessions[0], sessions[-1]):
        (answer,) = peer.submit(session, 1000, 1000)
        assert terminal_of(answer)["error"]["code"] == "adapter_operation_limit"


def test_sessions_are_given_the_id_that_they_want_if_it_is_free() -> None:
    peer = Peer()
    assert peer.open(requested_session_id=7) == 7
    assert peer.open(requested_session_id=7) == 1
    assert [peer.open() for _ in range(6)] == [2, 3, 4, 5, 6, 8]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"profile_id": 1}, 0x10002),
        ({"schema_id": 5}, 0x10003),
        ({"resume_token_bytes": 2, "session_flags": 1}, 0x10006),
    ],
)
def test_a_session_that_cannot_be_had_is_refused(fields: dict[str, int], code: int) -> None:
    payload = bytes(fields.get("resume_token_bytes", 0))
    (ack,) = Peer().send(MessageType.SESSION_OPEN, layouts.SessionOpen(**fields), payload)
    assert isinstance(ack.metadata, layouts.SessionOpenAck)
    assert (ack.metadata.session_status, ack.metadata.session_id) == (layouts.SessionStatus.REJECTED, 0)
    assert ack.metadata.session_error_code == code


def test_closing_a_session_waits_for_its_operations_as_long_as_asked() -> None:
    peer = Peer()
    first, second = peer.open(), peer.open()
    peer.submit(first, 1, 1)
    peer.submit(first, 2, 2)
    peer.submit(second, 1, 1)
    assert (
        peer.send(MessageType.SESSION_CLOSE, layouts.SessionClose(drain_timeout_ms=99), session_id=first)
        == []
    )
    assert peer.others == [Drain(first, 99)]
    (error,) = peer.submit(first, 3, 3)
    assert error_of(error) == (ErrorCode.INVALID_STATE, Scope.FRAME, False)
    peer.take(peer.server.result(peer.started[0], Status.OK, profile.completed_event({})))
    drop, ack = peer.take(peer.server.drained(first))
    assert drop.type is MessageType.RESULT_DROP_REASON
    assert ack.metadata == layouts.SessionCloseAck(last_operation_id=2)
    assert ack.header.session_id == first
    assert peer.stopped == [peer.started[1]]
    assert peer.server.drained(first) == []
    drop, ack = peer.send(
        MessageType.SESSION_CLOSE, layouts.SessionClose(in_flight_policy=1), session_id=second
    )
    assert (drop.type, ack.type) == (MessageType.RESULT_DROP_REASON, MessageType.SESSION_CLOSE_ACK)
    (error,) = peer.submit(second, 9, 9)
    assert error_of(error) == (ErrorCode.INVALID_STATE, Scope.FRAME, False)
    assert error.header.session_id == 0


def test_a_deadline_may_come_before_and_after_its_operation() -> None:
    peer = Peer()
    session = peer.open()
    ids: dict[str, Any] = {"session_id": session, "frame_id": 2}
    peer.send(MessageType.DEADLINE, Scheduling(operation_id=9, deadline_unix_ms=5), **ids)
    peer.submit(session, 9, 2)
    assert peer.started[0].deadline_unix_ms == 5
    peer.send(MessageType.EXPIRE_AT, Scheduling(operation_id=9, deadline_unix_ms=6), **ids)
    assert peer.others == [Reschedule(peer.started[0])]
    assert peer.started[0].deadline_unix_ms == 6


def test_a_submit_that_is_too_long_is_refused() -> None:
    peer = Peer()
    session = peer.open()
    said = [{"role": "user", "content": "x" * profile.MAX_REQUEST_BYTES}]
    (error,) = peer.submit(session, 1, 1, body={"model": "m", "messages": said})
    assert error_of(error) == (ErrorCode.LIMIT_EXCEEDED, Scope.FRAME, False)
    assert not peer.started


def test_pings_are_answered_and_advice_is_not() -> None:
    peer = Peer()
    (pong,) = peer.send(MessageType.PING, session_id=4, trace_id=8)
    assert (pong.type, pong.header.session_id, pong.header.trace_id) == (MessageType.PONG, 4, 8)
    assert peer.send(MessageType.FLOW_UPDATE, data_layouts.FlowUpdate()) == []
    assert peer.send(MessageType.PRIORITY_UPDATE, Scheduling(operation_id=1)) == []


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (layouts.ClientHello(min_version=2, max_version=3), ErrorCode.UNSUPPORTED_VERSION),
        (layouts.ClientHello(wire_format_bitmap=2), ErrorCode.UNSUPPORTED_VERSION),
        (layouts.ClientHello(payload_kind_bitmap=0x63), ErrorCode.UNSUPPORTED_CAPABILITY),
        (layouts.ClientHello(control_extension_bytes=1), ErrorCode.MALFORMED_BODY),
    ],
)
def test_a_client_that_speaks_something_else_is_told_so(hello: layouts.ClientHello, code: ErrorCode) -> None:
    peer = Peer(ready=False)
    (error,) = peer.send(MessageType.CLIENT_HELLO, hello, bytes(hello.tail_bytes or 0))
    assert error_of(error) == (code, Scope.CONNECTION, True)
    assert peer.server.state is ConnectionState.CLOSED
    assert isinstance(peer.others[0], End)


def test_a_faulty_packet_harms_neither_its_session_nor_others_until_there_are_too_many() -> None:
    peer = Peer()
    session = peer.open()
    peer.submit(session, 1, 1)
    for _ in range(connection.MAX_FAULTS - 1):
        (error,) = peer.take(peer.server.receive(b"NNRP"))
        assert error_of(error) == (ErrorCode.MALFORMED_HEADER, Scope.CONNECTION, False)
    assert not peer.stopped
    (error,) = peer.take(peer.server.receive(b"NNRP"))
    assert error_of(error) == (ErrorCode.MALFORMED_HEADER, Scope.CONNECTION, True)
    assert peer.stopped == peer.started
    assert peer.server.receive(wire.encode(MessageType.PING)) == []


def test_a_stopping_server_begins_nothing_and_says_goodbye() -> None:
    peer = Peer()
    session = peer.open()
    peer.submit(session, 1, 1)
    peer.server.stop()
    (answer,) = peer.submit(session, 2, 2)
    assert terminal_of(answer)["error"]["code"] == "backend_overload"
    (ack,) = peer.send(MessageType.SESSION_OPEN, layouts.SessionOpen())
    assert isinstance(ack.metadata, layouts.SessionOpenAck)
    assert ack.metadata.session_status == layouts.SessionStatus.RETRY_LATER
    drop, close = peer.take(peer.server.farewell())
    assert isinstance(drop.metadata, data_layouts.ResultDrop)
    assert drop.metadata.drop_reason_code == DropReason.TRANSPORT_CLOSED
    assert close.type is MessageType.CLOSE
    assert peer.others[-1] == End(connection.STOPPING, "server_stopping")


CLIENT_PACKETS = st.one_of(
    st.builds(
        lambda kind, metadata, session, frame: wire.encode(
            kind, metadata, session_id=session, frame_id=frame
        ),
        st.sampled_from([MessageType.CANCEL, MessageType.ABORT]),
        st.builds(Control, operation_id=st.integers(0, 3)),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    st.builds(
        lambda operation, session, frame, asked: wire.encode(
            MessageType.FRAME_SUBMIT,
            *profile.write_submit(operation, asked),
            session_id=session,
            frame_id=frame,
        ),
        st.integers(1, 3),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([envelope(), envelope(), envelope(nnrp=7)]),
    ),
    st.builds(
        lambda policy, wait, session: wire.encode(
            MessageType.SESSION_CLOSE, layouts.SessionClose(0, policy, 0, wait), session_id=session
        ),
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    st.builds(
        lambda session, frame: wire.encode(MessageType.FRAME_CANCEL, session_id=session, frame_id=frame),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    st.just(wire.encode(MessageType.SESSION_OPEN, layouts.SessionOpen())),
    st.just(wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello())),
    st.just(b"no packet"),
)


@settings(max_examples=examples(60))
@given(st.lists(CLIENT_PACKETS | st.sampled_from(["answer", "finish", "drain"]), max_size=40))
def test_whatever_comes_every_operation_ends_once(script: list[bytes | str]) -> None:
    peer = Peer()
    peer.open()
    ended: Packets = []
    for step in script:
        running = [one for one in peer.started if one.state is operations.OperationState.RUNNING]
        if isinstance(step, bytes):
            # A result that comes at once is that of a submit which was not begun.
            packets = peer.take(peer.server.receive(step))
            ended += [one for one in packets if one.type is MessageType.RESULT_DROP_REASON]
        elif step == "drain":
            ended += peer.take([action for number in (1, 2, 3) for action in peer.server.drained(number)])
        elif running and step == "answer":
            peer.server.partial(running[0], profile.text_event(0, "a"))
        elif running:
            ended += peer.take(peer.server.result(running[-1], Status.OK, profile.completed_event({})))
    ended += peer.take(peer.server.farewell())
    kinds = Counter(packet.type for packet in ended)
    assert kinds[MessageType.RESULT_PUSH] + kinds[MessageType.RESULT_DROP_REASON] == len(peer.started)
    assert all(operation.state is operations.OperationState.ENDED for operation in peer.started)
    assert len(set(map(id, peer.stopped))) == len(peer.stopped)
