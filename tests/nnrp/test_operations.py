"""Sessions of a connection: which are granted, and what is remembered of their operations."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.nnrp import wire
from voiceapp.nnrp.layouts import SessionOpen, SessionStatus
from voiceapp.nnrp.operations import (
    MAX_REMEMBERED,
    MAX_WAITING_DEADLINES,
    Operation,
    OperationState,
    ServerSession,
    answer,
    grant,
    refusal,
)
from voiceapp.nnrp.profile import SubmitRequest
from voiceapp.nnrp.wire import Header, MessageType


def header(frame_id: int = 3) -> Header:
    return Header(message_type=0x10, session_id=7, frame_id=frame_id, view_id=2, route_id=1, trace_id=99)


def operation(number: int = 1) -> Operation:
    return Operation(number, header(frame_id=100 + number), SubmitRequest({"model": "m"}))


def test_an_answer_repeats_all_ids_of_what_it_answers() -> None:
    packet = wire.decode(answer(header(), MessageType.PONG))
    assert packet.type is MessageType.PONG
    found = packet.header
    assert (found.session_id, found.frame_id, found.view_id, found.route_id, found.trace_id) == (
        7,
        3,
        2,
        1,
        99,
    )


def test_an_operation_is_known_by_both_of_its_ids_until_it_ends() -> None:
    session, first = ServerSession(7, 4), operation()
    session.add(first)
    assert session.operations == {1: first}
    assert session.by_frame == {101: first}
    session.remove(first)
    assert first.state is OperationState.ENDED
    assert not session.operations
    assert not session.by_frame
    assert session.ended == {1: 101}
    assert session.last_operation_id == 1


def test_only_the_latest_operations_are_remembered() -> None:
    session = ServerSession(7, 4)
    for number in range(MAX_REMEMBERED + 2):
        session.remember(number, 100 + number)
    assert len(session.ended) == MAX_REMEMBERED
    assert min(session.ended) == 2
    # One that is remembered again is the latest.
    session.remember(2, 102)
    session.remember(MAX_REMEMBERED + 2, 0)
    assert 2 in session.ended
    assert 3 not in session.ended


def test_only_so_many_deadlines_may_come_before_their_operations() -> None:
    session = ServerSession(7, 4)
    for number in range(MAX_WAITING_DEADLINES + 1):
        session.expect(number, 1_000 + number)
    assert len(session.deadlines) == MAX_WAITING_DEADLINES
    assert 0 not in session.deadlines
    session.expect(1, 5)
    assert list(session.deadlines.items())[-1] == (1, 5)


@pytest.mark.parametrize(
    ("fields", "room", "status", "code"),
    [
        ({"profile_id": 1}, True, SessionStatus.REJECTED, 0x10002),
        ({"schema_id": 0x1001, "schema_version": 2}, True, SessionStatus.REJECTED, 0x10003),
        ({"resume_token_bytes": 8}, True, SessionStatus.REJECTED, 0x10006),
        ({}, False, SessionStatus.RETRY_LATER, 0x10007),
    ],
)
def test_a_session_that_cannot_be_granted_is_told_why(
    fields: dict[str, Any], room: bool, status: SessionStatus, code: int
) -> None:
    asked = SessionOpen(**fields)
    refused = refusal(asked, room=room)
    assert refused is not None
    assert (refused.session_status, refused.session_error_code) == (status, code)
    assert (refused.schema_id, refused.schema_version) == (asked.schema_id, asked.schema_version)


def test_a_lawful_session_is_granted_with_its_credit() -> None:
    asked = SessionOpen(lease_ttl_hint_ms=500)
    assert refusal(asked, room=True) is None
    granted = grant(asked, ServerSession(7, 4))
    assert granted.session_status == SessionStatus.OPENED
    assert (granted.session_id, granted.max_in_flight_operations, granted.lease_ttl_ms) == (7, 4, 500)
