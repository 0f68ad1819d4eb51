"""The openai-compatible profile: requests, replies, and the server's side of a connection."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chat_server import calls, chunk, ending, fragment, text
from tests.contracts import ToolCalls
from voiceapp.errors import LocalProtocolError, RemoteProtocolError
from voiceapp.nnrp import connection, data_layouts, layouts, operations, profile, wire
from voiceapp.nnrp.connection import ServerConnection, State
from voiceapp.nnrp.data_layouts import (
    Control,
    Descriptor,
    DropReason,
    FrameSubmit,
    ResultPush,
    Scheduling,
    Status,
)
from voiceapp.nnrp.layouts import ErrorCode, Scope
from voiceapp.nnrp.operations import Drain, End, Operation, Reschedule, Send, Start, Stop
from voiceapp.nnrp.profile import ProfileError
from voiceapp.nnrp.replies import MAX_REPLY_CHARS, Reply
from voiceapp.nnrp.wire import Frame, MessageType
from voiceapp.protocol.tool_calls import ToolCallFault

CONTRACT = ToolCalls()
FAULT = ToolCallFault(type="server_error", code="gone", message="It is gone.")


def envelope(**changes: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    fields = {"schema_version": "openai-compatible/1", "operation": "chat.completions.create", "body": body}
    return {**fields, **changes}


def body(**changes: Any) -> dict[str, Any]:
    return envelope(body={**envelope()["body"], **changes})


# -- requests -----------------------------------------------------------------------------------------------


def test_a_request_is_read_with_its_policy() -> None:
    policy = {"timeout_ms": 5, "diagnostics": True, "cancel_after_events": 2, "unknown": 1}
    asked = envelope(request_id="r", nnrp=policy)
    asked["body"] |= {"stream": True, "stream_options": {"include_usage": True}}
    request = profile.read_envelope(json.dumps(asked).encode())
    assert request == profile.Request(asked["body"], "r", 5, 2, True)
    assert request.streaming
    assert request.usage_wanted
    plain = profile.read_envelope(json.dumps(envelope()).encode())
    assert plain == profile.Request(envelope()["body"])
    assert not plain.streaming
    assert not plain.usage_wanted


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (envelope(schema_version="openai-compatible/2"), "unsupported_schema_version"),
        (envelope(schema_version=None), "unsupported_schema_version"),
        (envelope(operation="responses.create"), "unsupported_operation"),
        (envelope(operation=7), "unsupported_operation"),
        (envelope(body=None), "invalid_body"),
        (envelope(body=[]), "invalid_body"),
        (body(model=None), "missing_model"),
        (body(model=""), "missing_model"),
        (body(messages=None), "missing_messages"),
        (body(messages=[]), "missing_messages"),
        (body(messages=["hello"]), "invalid_body"),
        (body(stream=1), "invalid_body"),
        (body(stream_options=[]), "invalid_body"),
        (body(n=2), "invalid_body"),
        (envelope(request_id=None), "invalid_request_id"),
        (envelope(request_id=""), "invalid_request_id"),
        (envelope(request_id=7), "invalid_request_id"),
        (envelope(request_id="x" * (profile.MAX_REQUEST_ID_CHARS + 1)), "invalid_request_id"),
        (envelope(nnrp=[]), "invalid_nnrp_policy"),
        (envelope(nnrp={"timeout_ms": 0}), "invalid_nnrp_policy"),
        (envelope(nnrp={"timeout_ms": True}), "invalid_nnrp_policy"),
        (envelope(nnrp={"timeout_ms": 1.5}), "invalid_nnrp_policy"),
        (envelope(nnrp={"timeout_ms": profile.MAX_TIMEOUT_MS + 1}), "invalid_nnrp_policy"),
        (envelope(nnrp={"cancel_after_events": -1}), "invalid_nnrp_policy"),
        (envelope(nnrp={"diagnostics": "yes"}), "invalid_nnrp_policy"),
        ([], "invalid_submit_body"),
        ("text", "invalid_submit_body"),
        (envelope(body={"model": "m", "messages": [{}], "deep": [[]] * 1}), None),
    ],
)
def test_each_fault_of_a_request_has_its_code(asked: Any, code: str | None) -> None:
    payload = json.dumps(asked).encode()
    if code is None:
        profile.read_envelope(payload)
        return
    with pytest.raises(ProfileError) as caught:
        profile.read_envelope(payload)
    assert caught.value.code == code
    assert caught.value.event["error"]["code"] == code


MANY = b'{"a":[' + b"[]," * (profile.MAX_CONTAINERS + 1) + b"[]]}"


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"{", b"[" * 100_000, b'{"a":' * 200 + b"1" + b"}" * 200, b"NaN", MANY]
)
def test_what_is_no_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(ProfileError) as caught:
        profile.read_envelope(payload)
    assert caught.value.code == "invalid_submit_body"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["schema_version", "operation", "body", "model", "messages", "nnrp", "stream"]
                )
                | st.text(),
                inner,
            )
        ),
    )
)
def test_any_json_is_either_a_request_or_a_fault_with_a_code(value: Any) -> None:
    for asked in (value, envelope(body=value), envelope(nnrp=value), body(stream_options=value, n=value)):
        try:
            profile.read_envelope(msgspec.json.encode(asked))
        except ProfileError as error:
            assert error.event["error"]["type"] == "invalid_request_error"  # noqa: PT017 - either may happen


@pytest.mark.parametrize(
    "changes",
    [
        {"profile_id": 2},
        {"payload_kind": 32},
        {"schema_id": 1},
        {"schema_version": 1},
        {"stream_semantics": 2},
        {"descriptor_flags": 1},
    ],
)
def test_a_payload_that_is_described_otherwise_is_refused(changes: dict[str, int]) -> None:
    descriptor = msgspec.structs.replace(Descriptor(), **changes)
    packed = wire.pack_body([Frame(descriptor, json.dumps(envelope()).encode())])
    with pytest.raises(ProfileError) as caught:
        profile.read_submit(FrameSubmit(operation_id=1, payload_kind_bitmap=descriptor.payload_kind), packed)
    assert caught.value.code == "invalid_submit_body"


def test_a_submit_holds_exactly_one_payload() -> None:
    frame = Frame(Descriptor(), json.dumps(envelope()).encode())
    for frames in ([], [frame, frame]):
        metadata = FrameSubmit(
            operation_id=1, payload_kind_bitmap=0x10 if frames else 0, payload_frame_count=len(frames)
        )
        with pytest.raises(ProfileError) as caught:
            profile.read_submit(metadata, wire.pack_body(frames))
        assert caught.value.code == "invalid_submit_body"


def test_results_are_read_as_they_were_written() -> None:
    event = profile.completed_event({"id": "é\udc80 \ud83d\ude00"})
    metadata, packed = profile.write_result(Status.OK, event, total_ms=70_000)
    assert metadata.server_total_ms == 65_535
    assert profile.read_result(metadata, packed) == profile.completed_event({"id": "é\ufffd 😀"})
    empty, packed = profile.write_result(Status.OK, None)
    assert (empty.payload_kind_bitmap, empty.payload_frame_count) == (0, 0)
    assert profile.read_result(empty, packed) is None


# -- replies ------------------------------------------------------------------------------------------------

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_text_calls_and_usage_become_events_and_one_body() -> None:
    reply = Reply("r", with_usage=True)
    chunks = [
        chunk(),
        text("Wait"),
        text(" here."),
        calls(fragment(0, id="a", name="look", arguments='{"x":')),
        calls(fragment(0, arguments="1}")),
        ending(),
        chunk(usage=USAGE),
    ]
    events = [event for one in chunks for event in reply.feed(one)] + reply.finish()
    assert [event["type"].removeprefix("response.") for event in events] == [
        "output_text.delta",
        "output_text.delta",
        "tool_call.started",
        "tool_call.delta",
        "tool_call.delta",
        "tool_call.completed",
        "usage",
    ]
    for event in events:
        if event["type"] in CONTRACT.schemas:
            CONTRACT.check(event)
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}}
    assert reply.body() == {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Wait here.",
                    "refusal": None,
                    "tool_calls": [call],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }


def test_usage_and_chunks_are_told_only_to_who_wants_them() -> None:
    quiet, chatty = Reply("r", with_usage=False), Reply("r", with_usage=False, with_chunks=True)
    assert quiet.feed(text("a")) == [profile.text_event(0, "a")]
    assert chatty.feed(text("a")) == [{**profile.text_event(0, "a"), "openai_chunk": text("a")}]
    assert quiet.feed(chunk(usage=USAGE)) == []
    assert quiet.usage == USAGE


def test_a_refusal_is_text_and_kept_as_a_refusal() -> None:
    reply = Reply("r", with_usage=False)
    said = chunk({"index": 0, "delta": {"refusal": "No."}, "finish_reason": "stop"})
    assert reply.feed(said) == [profile.text_event(0, "No.")]
    assert reply.body()["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": "No."}


@pytest.mark.parametrize(
    ("chunks", "code"),
    [
        ([], "missing_terminal_event"),
        ([chunk(), chunk(usage=USAGE)], "missing_terminal_event"),
        ([calls(fragment(0, id="a", arguments="{}")), ending()], "tool_call_without_name"),
    ],
)
def test_a_stream_that_is_not_whole_is_a_fault(chunks: list[dict[str, Any]], code: str) -> None:
    reply = Reply("r", with_usage=False)
    for one in chunks:
        reply.feed(one)
    with pytest.raises(RemoteProtocolError) as caught:
        reply.finish()
    assert caught.value.code == code


def test_a_stream_that_does_not_say_why_it_ended_is_taken_for_whole() -> None:
    reply = Reply("r", with_usage=False)
    reply.feed(text("a"))
    assert reply.finish() == []
    assert reply.body()["choices"][0]["finish_reason"] == "stop"


def test_a_reply_has_a_bound_and_its_tool_calls_end_with_it() -> None:
    reply = Reply("r", with_usage=False)
    (started,) = reply.feed(calls(fragment(0, id="a", name="f")))
    with pytest.raises(RemoteProtocolError) as caught:
        reply.feed(text("x" * (MAX_REPLY_CHARS + 1)))
    assert caught.value.code == "reply_too_long"
    (failed,) = reply.abort(FAULT)
    CONTRACT.check(failed)
    assert (started["call_id"], failed["type"]) == ("a", "response.tool_call.error")


def test_the_longest_reply_fits_a_packet() -> None:
    reply = Reply("r", with_usage=False)
    reply.feed(text("\x01" * MAX_REPLY_CHARS, finish_reason="stop"))
    metadata, packed = profile.write_result(Status.OK, profile.completed_event(reply.body()))
    wire.encode(MessageType.RESULT_PUSH, metadata, packed)


# -- a connection -------------------------------------------------------------------------------------------


Packets = list[wire.Packet]


class Peer:
    """A client's view of a server connection: writes packets, reads the answers."""

    def __init__(self, *, ready: bool = True) -> None:
        self.server = ServerConnection()
        self.started: list[Operation] = []
        self.stopped: list[Operation] = []
        self.others: list[Any] = []
        if ready:
            (ack,) = self.send(MessageType.CLIENT_HELLO, layouts.ClientHello())
            assert ack.type is MessageType.SERVER_HELLO_ACK

    def take(self, actions: list[Any]) -> Packets:
        packets = []
        for action in actions:
            match action:
                case Send(data=data):
                    packets.append(wire.decode(data))
                case Start(operation=operation):
                    self.started.append(operation)
                case Stop(operation=operation):
                    self.stopped.append(operation)
                case _:
                    self.others.append(action)
        return packets

    def send(self, kind: MessageType, metadata: Any = None, payload: bytes = b"", **ids: int) -> Packets:
        return self.take(self.server.receive(wire.encode(kind, metadata, payload, **ids)))

    def open(self, **fields: int) -> int:
        (ack,) = self.send(MessageType.SESSION_OPEN, layouts.SessionOpen(**fields))
        assert isinstance(ack.metadata, layouts.SessionOpenAck)
        assert ack.metadata.session_status == layouts.SessionStatus.OPENED
        assert ack.header.session_id == ack.metadata.session_id
        return ack.metadata.session_id

    def submit(self, session_id: int, operation_id: int, frame_id: int, **changes: Any) -> Packets:
        metadata, payload = profile.write_submit(operation_id, envelope(**changes))
        return self.send(
            MessageType.FRAME_SUBMIT, metadata, payload, session_id=session_id, frame_id=frame_id
        )


def error_of(packet: wire.Packet) -> tuple[ErrorCode, Scope, bool]:
    assert isinstance(packet.metadata, layouts.Error)
    assert packet.body
    return (
        ErrorCode(packet.metadata.error_code),
        Scope(packet.metadata.error_scope),
        bool(packet.metadata.fatal),
    )


def terminal_of(packet: wire.Packet) -> dict[str, Any]:
    assert isinstance(packet.metadata, ResultPush)
    event = profile.read_result(packet.metadata, packet.body)
    assert event is not None
    return event


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
    assert peer.server.idle
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
    (error,) = peer.send(MessageType.CLIENT_HELLO, hello, bytes(hello.tail_bytes))
    assert error_of(error) == (code, Scope.CONNECTION, True)
    assert peer.server.state is State.CLOSED
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


@settings(max_examples=60)
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
    assert peer.server.idle
