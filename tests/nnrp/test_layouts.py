"""The fixed-width structures: the published bytes both ways, and round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.nnrp_layouts import ALL, CASES, STRUCTURES, EarlyDescriptor, values
from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import data_layouts, layouts
from voiceapp.nnrp.layouts import ErrorCode, Layout, Scope, WireError

HANDSHAKE: list[tuple[type[Layout], str]] = [
    (
        layouts.ClientHello,
        "01010100030000007300000000000000000000000000000000000000000000000000010000000000000000000000"
        "f40100000000000000000000000000000000",
    ),
    (
        layouts.ServerHelloAck,
        "010000000000000002000000730000000000000000000000000000000000000000000000000000000000000000000000"
        "010004000000f4010000000000000004c0d40100000000000000000000000000",
    ),
    (
        layouts.SessionOpen,
        "00000000020001000110000003000000f401000004000000307500000000000000000000000000000000000000000000",
    ),
    (
        layouts.SessionOpenAck,
        "010000000200010001100000030000000200040030750000c0d401000000000000000000010000000000000000000000"
        "0000000000000000",
    ),
    (layouts.SessionClose, "010000000000000007000000000000000000000001000000"),
    (layouts.SessionCloseAck, "02000000070000000000000000000000"),
]


@pytest.mark.parametrize("case", STRUCTURES)
def test_a_published_structure_is_read_and_written_back(case: str) -> None:
    (text,) = CASES[case].values()
    raw = bytes.fromhex(text)
    assert STRUCTURES[case].unpack(raw).pack() == raw


@pytest.mark.parametrize(("layout", "text"), HANDSHAKE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_real_handshake_is_read_and_written_back(layout: type[Layout], text: str) -> None:
    raw = bytes.fromhex(text)
    assert layout.unpack(raw).pack() == raw


def test_published_payload_regions_are_read_and_written_back() -> None:
    case = CASES["l0.typed_payload.frame_regions.golden"]
    region, payload = bytes.fromhex(case["descriptor_region_hex"]), bytes.fromhex(case["payload_hex"])
    step = EarlyDescriptor.FORMAT.size
    found = [EarlyDescriptor.unpack(region[at : at + step]) for at in range(0, len(region), step)]
    assert b"".join(one.pack() for one in found) == region
    parts = [payload[one.offset : one.offset + one.length] for one in found]
    assert parts == [b"tok", b"au", b"video", b"evt"]


@given(st.data())
def test_structures_survive_the_way_there_and_back(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(ALL))
    value = data.draw(values(layout))
    raw = value.pack()
    try:
        value.check()
    except WireError:
        with pytest.raises(WireError):
            layout.unpack(raw)
    else:
        assert layout.unpack(raw) == value


@pytest.mark.parametrize("layout", ALL, ids=lambda layout: layout.__name__)
def test_a_structure_is_as_long_as_its_format_and_no_longer(layout: type[Layout]) -> None:
    size = layout.FORMAT.size
    assert len(layout().pack()) == size
    for wrong in (b"", bytes(size - 1), bytes(size + 1)):
        with pytest.raises(WireError) as broken:
            layout.unpack(wrong)
        assert broken.value.error_code is ErrorCode.MALFORMED_BODY


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"error_scope": 3}, "unknown error_scope"),
        ({"fatal": 2}, "unknown fatal"),
    ],
)
def test_a_value_that_may_not_be_is_named(changes: dict[str, int], words: str) -> None:
    with pytest.raises(WireError, match=words):
        layouts.ErrorPacket(**changes).check()


def test_the_length_of_the_body_is_what_the_structure_says() -> None:
    assert layouts.ErrorPacket(diagnostic_bytes=7).tail_bytes == 7
    assert layouts.ClientHello(auth_bytes=2, control_extension_bytes=3).tail_bytes == 5
    assert data_layouts.FrameSubmit().tail_bytes is None


@pytest.mark.parametrize(
    ("ids", "scope"),
    [
        ({}, Scope.CONNECTION),
        ({"frame_id": 3}, Scope.CONNECTION),
        ({"session_id": 7}, Scope.SESSION),
        ({"session_id": 7, "frame_id": 3}, Scope.FRAME),
    ],
)
def test_an_error_is_about_as_little_as_its_ids_allow(ids: dict[str, int], scope: Scope) -> None:
    error = WireError("It is so.", ErrorCode.INVALID_STATE, fatal=False, **ids)
    assert (error.scope, error.code) == (scope, "nnrp_invalid_state")


def test_a_number_that_does_not_fit_its_field_is_not_written() -> None:
    with pytest.raises(LocalProtocolError) as refused:
        layouts.ErrorPacket(error_code=2**32).pack()
    assert refused.value.code == "nnrp_range"
