"""NNRP packets: headers, bodies and extensions both ways, and what malformed bytes become."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nnrp.core import packet as peer

from tests.parts.nnrp_layouts import CASES, STRUCTURES, values
from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import data_layouts, wire
from voiceapp.nnrp.data_layouts import Descriptor
from voiceapp.nnrp.layouts import ErrorCode, Scope, WireError
from voiceapp.nnrp.wire import Frame, Header, MessageType

PACKETS = ["l0.flow_update.packet.golden", "l0.result_hint.packet.golden"]


# -- published bytes ------------------------------------------------------------------------------------


def test_every_published_example_is_used() -> None:
    others = {"l0.header.fixed_shape.golden", "l0.typed_payload.frame_regions.golden", *PACKETS}
    assert set(CASES) == {*STRUCTURES, *others}


def test_the_published_header_is_read_and_written_back() -> None:
    raw = bytes.fromhex(CASES["l0.header.fixed_shape.golden"]["header_hex"])
    header = Header.unpack(raw)
    assert header.pack() == raw
    assert (header.message_type, header.metadata_bytes, header.body_bytes) == (0x10, 48, 4096)
    assert (header.session_id, header.frame_id, header.view_id, header.route_id) == (7, 11, 2, 0)
    assert (header.flags, header.trace_id) == (0x21, 123456789)


@pytest.mark.parametrize("case", PACKETS)
def test_a_published_packet_is_read_and_written_back(case: str) -> None:
    raw = bytes.fromhex(CASES[case]["packet_hex"])
    packet = wire.decode(raw)
    assert rewritten(packet) == raw


def rewritten(packet: wire.Packet) -> bytes:
    fields = msgspec.structs.asdict(packet.header)
    ids = {
        name: fields[name] for name in ("flags", "session_id", "frame_id", "view_id", "route_id", "trace_id")
    }
    return wire.encode(packet.type, packet.metadata, packet.body, **ids)


# -- round trips ----------------------------------------------------------------------------------------


HEADERS = st.builds(
    Header,
    message_type=st.integers(0, 255),
    flags=st.integers(0, wire.FLAGS_MASK),
    metadata_bytes=st.integers(0, 2**32 - 1),
    body_bytes=st.integers(0, 2**32 - 1),
    session_id=st.integers(0, 2**32 - 1),
    frame_id=st.integers(0, 2**32 - 1),
    view_id=st.integers(0, 2**16 - 1),
    route_id=st.integers(0, 2**16 - 1),
    trace_id=st.integers(0, 2**64 - 1),
)


@given(HEADERS)
def test_headers_survive_the_way_there_and_back(header: Header) -> None:
    assert Header.unpack(header.pack()) == header


FRAMES = st.lists(
    st.builds(
        Frame,
        descriptor=st.builds(
            Descriptor,
            profile_id=st.integers(0, 2**16 - 1),
            payload_kind=st.sampled_from([2, 4, 8, 16, 32, 64]),
            descriptor_flags=st.integers(0, 15),
            schema_id=st.integers(0, 2**32 - 1),
            stream_semantics=st.integers(0, 2),
        ),
        payload=st.binary(max_size=20),
    ),
    max_size=4,
)


@given(FRAMES)
def test_bodies_survive_and_the_independent_peer_reads_the_same(frames: list[Frame]) -> None:
    body = wire.pack_body(frames)
    kinds = 0
    for frame in frames:
        kinds |= frame.descriptor.payload_kind
    found = wire.unpack_body(body, kind_bitmap=kinds, frame_count=len(frames))
    assert [frame.payload for frame in found] == [frame.payload for frame in frames]
    assert wire.pack_body(found) == body
    view = peer.unpack_body(body)
    assert bytes(view.typed_payload_frame_region) == b"".join(frame.payload for frame in frames)


# -- what is not lawful ---------------------------------------------------------------------------------


def submit(body: bytes = b"", **header: int) -> bytes:
    ids = {"session_id": 7, "frame_id": 3, **header}
    return wire.encode(MessageType.FRAME_SUBMIT, data_layouts.FrameSubmit(operation_id=1), body, **ids)


def changed(packet: bytes, at: int, form: str, value: int) -> bytes:
    raw = bytearray(packet)
    struct.pack_into("<" + form, raw, at, value)
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "code", "scope"),
    [
        (b"", ErrorCode.MALFORMED_HEADER, Scope.CONNECTION),
        (submit()[:39], ErrorCode.MALFORMED_HEADER, Scope.CONNECTION),
        (b"HTTP" + submit()[4:], ErrorCode.MALFORMED_HEADER, Scope.CONNECTION),
        (changed(submit(), 4, "B", 2), ErrorCode.UNSUPPORTED_VERSION, Scope.CONNECTION),
        (changed(submit(), 5, "B", 1), ErrorCode.UNSUPPORTED_VERSION, Scope.CONNECTION),
        (changed(submit(), 6, "B", 0xEE), ErrorCode.MALFORMED_HEADER, Scope.FRAME),
        (changed(submit(), 6, "B", 0x41), ErrorCode.UNSUPPORTED_CAPABILITY, Scope.FRAME),
        (changed(submit(), 7, "B", 48), ErrorCode.MALFORMED_HEADER, Scope.FRAME),
        (changed(submit(), 8, "I", 0x40), ErrorCode.MALFORMED_HEADER, Scope.FRAME),
        (changed(submit(), 12, "I", 71), ErrorCode.MALFORMED_HEADER, Scope.FRAME),
        (changed(submit(), 12, "I", 2**32 - 1), ErrorCode.LIMIT_EXCEEDED, Scope.FRAME),
        (changed(submit(), 16, "I", wire.MAX_BODY_BYTES + 1), ErrorCode.LIMIT_EXCEEDED, Scope.FRAME),
        (submit() + b"x", ErrorCode.MALFORMED_HEADER, Scope.FRAME),
        (changed(submit(), 40 + 40, "Q", 0), ErrorCode.MALFORMED_BODY, Scope.FRAME),
        (changed(submit(), 40 + 36, "I", 1), ErrorCode.MALFORMED_BODY, Scope.FRAME),
        (changed(submit(), 40 + 64, "I", 0x80), ErrorCode.MALFORMED_BODY, Scope.FRAME),
        (changed(submit(), 40, "H", 1), ErrorCode.MALFORMED_BODY, Scope.FRAME),
        (changed(submit(frame_id=0), 40, "H", 1), ErrorCode.MALFORMED_BODY, Scope.SESSION),
        (changed(submit(session_id=0), 40, "H", 1), ErrorCode.MALFORMED_BODY, Scope.CONNECTION),
        (changed(submit(b"x"), 6, "B", 0x20), ErrorCode.MALFORMED_BODY, Scope.FRAME),
    ],
)
def test_a_malformed_packet_says_what_is_wrong_and_with_what(
    raw: bytes, code: ErrorCode, scope: Scope
) -> None:
    with pytest.raises(WireError) as caught:
        wire.decode(raw)
    assert (caught.value.error_code, caught.value.scope) == (code, scope)


def test_a_body_must_be_as_long_as_its_metadata_says() -> None:
    packet = wire.encode(MessageType.CANCEL, data_layouts.Control(operation_id=1, diagnostic_bytes=2), b"no")
    assert wire.decode(packet).body == b"no"
    with pytest.raises(WireError) as caught:
        wire.decode(changed(packet, 40 + 20, "I", 3))
    assert caught.value.error_code is ErrorCode.MALFORMED_BODY


ONE = wire.pack_body([Frame(Descriptor(), b"{}")])


@pytest.mark.parametrize(
    ("body", "kinds", "count", "code"),
    [
        (b"", 0x10, 1, ErrorCode.MALFORMED_BODY),
        (ONE[:31], 0x10, 1, ErrorCode.MALFORMED_BODY),
        (ONE[:-1], 0x10, 1, ErrorCode.MALFORMED_BODY),
        (ONE + b" ", 0x10, 1, ErrorCode.MALFORMED_BODY),
        (ONE, 0x10, 2, ErrorCode.MALFORMED_BODY),
        (ONE, 0x10, 2**16 - 1, ErrorCode.LIMIT_EXCEEDED),
        (ONE, 0x12, 1, ErrorCode.MALFORMED_BODY),
        (changed(ONE, 24, "I", 1), 0x10, 1, ErrorCode.MALFORMED_BODY),
        (changed(ONE, 8, "I", 23), 0x10, 1, ErrorCode.MALFORMED_BODY),
        (changed(ONE, 32 + 16, "I", 1), 0x10, 1, ErrorCode.MALFORMED_BODY),
        (changed(ONE, 32 + 20, "I", 2**32 - 1), 0x10, 1, ErrorCode.MALFORMED_BODY),
        (changed(ONE, 32 + 2, "B", 0x30), 0x30, 1, ErrorCode.MALFORMED_BODY),
        (changed(changed(ONE, 12, "I", 0), 0, "I", 2), 0x10, 1, ErrorCode.UNSUPPORTED_CAPABILITY),
        (changed(changed(ONE, 8, "I", 0), 12, "I", 26), 0, 0, ErrorCode.MALFORMED_BODY),
    ],
)
def test_a_malformed_body_says_what_is_wrong(body: bytes, kinds: int, count: int, code: ErrorCode) -> None:
    with pytest.raises(WireError) as caught:
        wire.unpack_body(body, kind_bitmap=kinds, frame_count=count)
    assert caught.value.error_code is code


def test_an_empty_body_has_no_payloads() -> None:
    assert wire.pack_body([]) == bytes(32)
    assert wire.unpack_body(bytes(32), kind_bitmap=0, frame_count=0) == []


def extension(kind: int, flags: int, payload: bytes) -> bytes:
    return struct.pack("<HHI", kind, flags, len(payload)) + payload + bytes(-len(payload) % 8)


def test_extensions_are_read_and_only_critical_ones_must_be_known() -> None:
    wire.check_extensions(b"")
    wire.check_extensions(extension(0x0101, 1, bytes(8)) + extension(0x7777, 0, b"abc"))
    with pytest.raises(WireError) as caught:
        wire.check_extensions(extension(0x7777, 1, b"abc"))
    assert caught.value.error_code is ErrorCode.UNSUPPORTED_CAPABILITY
    for block in (
        b"x",
        extension(1, 0, b"abc")[:-1],
        extension(1, 2, b""),
        extension(1, 0, b"a")[:-1] + b"x",
    ):
        with pytest.raises(WireError) as caught:
            wire.check_extensions(block)
        assert caught.value.error_code is ErrorCode.MALFORMED_BODY


@given(st.data())
def test_no_bytes_raise_anything_else(data: st.DataObject) -> None:
    """Lawful packets with bytes changed, cut off or added, and bytes that are nothing at all."""
    kind = data.draw(st.sampled_from(list(MessageType)))
    layout = wire.METADATA[kind]
    metadata = None if layout is None else data.draw(values(layout))
    body = data.draw(st.binary(max_size=64) | FRAMES.map(wire.pack_body))
    raw = bytearray(wire.encode(kind, metadata, body, session_id=data.draw(st.integers(0, 3))))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)))):
        raw[at] = value
    cut = data.draw(st.none() | st.integers(0, len(raw)))
    for packet in (bytes(raw), bytes(raw[:cut]), bytes(raw) + body, body):
        try:
            found = wire.decode(packet)
        except WireError:
            continue
        assert rewritten(found) == packet
        for count in (0, 1, 2):
            try:
                wire.unpack_body(found.body, kind_bitmap=0x10, frame_count=count)
            except WireError:
                continue


def test_what_would_break_the_format_is_not_written() -> None:
    wrong: list[Any] = [
        lambda: wire.encode(MessageType.PING, data_layouts.ResultHint()),
        lambda: wire.encode(MessageType.RESULT_HINT),
        lambda: wire.encode(MessageType.PING, session_id=-1),
        lambda: data_layouts.ResultHint(reason=2**32).pack(),
        lambda: submit(bytes(wire.MAX_BODY_BYTES + 1)),
    ]
    for write in wrong:
        with pytest.raises(LocalProtocolError):
            write()
