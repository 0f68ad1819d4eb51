"""Requests and results of the openai-compatible profile."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.contracts import ToolCalls
from tests.parts.nnrp_peer import envelope
from voiceapp.nnrp import profile, wire
from voiceapp.nnrp.data_layouts import Descriptor, FrameSubmit, Status
from voiceapp.nnrp.profile import ProfileError
from voiceapp.nnrp.wire import Frame

CONTRACT = ToolCalls()


def body(**changes: Any) -> dict[str, Any]:
    return envelope(body={**envelope()["body"], **changes})


def test_a_request_is_read_with_its_policy() -> None:
    policy = {"timeout_ms": 5, "diagnostics": True, "cancel_after_events": 2, "unknown": 1}
    asked = envelope(request_id="r", nnrp=policy)
    asked["body"] |= {"stream": True, "stream_options": {"include_usage": True}}
    request = profile.read_envelope(json.dumps(asked).encode())
    assert request == profile.SubmitRequest(asked["body"], "r", 5, 2, True)
    assert request.streaming
    assert request.usage_wanted
    plain = profile.read_envelope(json.dumps(envelope()).encode())
    assert plain == profile.SubmitRequest(envelope()["body"])
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
