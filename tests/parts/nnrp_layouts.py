"""NNRP's structures: published examples of them, and every one with lawful values."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from tests.parts.contracts import load
from voiceapp.nnrp import data_layouts, layouts
from voiceapp.nnrp.data_layouts import Descriptor
from voiceapp.nnrp.layouts import Layout


class EarlyDescriptor(Layout, frozen=True):
    """The shape that a typed payload's descriptor had before preview 4, which has none of it on the wire."""

    FORMAT = struct.Struct("<HHIII")
    ZERO = ("reserved0",)
    VALUES = {"payload_kind": Descriptor.VALUES["payload_kind"]}
    payload_kind: int = 0x10
    profile_id: int = 0
    offset: int = 0
    length: int = 0
    reserved0: int = 0


CASES: dict[str, dict[str, str]] = {
    case["id"]: case["parameters"]
    for name in ("common-header-core", "nnrp1-baseline-core", "typed-payload-core")
    for case in load(f"nnrp/{name}.json")["cases"]
    if "parameters" in case
}

STRUCTURES: dict[str, type[Layout]] = {
    "l0.control.client_hello.golden": layouts.ClientHello,
    "l0.control.session_patch_ack.golden": layouts.SessionPatchAck,
    "l0.frame_submit.metadata.golden": data_layouts.FrameSubmit,
    "l0.result_push.metadata.golden": data_layouts.ResultPush,
    "l0.body_region.prelude.golden": data_layouts.Prelude,
    "l0.object_reference.block.golden": data_layouts.ObjectReference,
    "l0.typed_payload.descriptor.golden": EarlyDescriptor,
    "l0.typed_payload.descriptor.current.golden": Descriptor,
}

ALL: list[type[Layout]] = sorted(
    {cls for base in Layout.__subclasses__() for cls in [base, *base.__subclasses__()]},
    key=lambda cls: cls.__name__,
)


def widths(layout: type[Layout]) -> list[tuple[str, int, bool]]:
    sizes = {"B": 8, "H": 16, "h": 16, "I": 32, "Q": 64}
    letters = "".join(
        letter * int(count or 1) for count, letter in _tokens(layout.FORMAT.format.removeprefix("<"))
    )
    return [
        (name, sizes[letter], letter == "h")
        for name, letter in zip(layout.__struct_fields__, letters, strict=True)
    ]


def _tokens(text: str) -> list[tuple[str, str]]:
    found, count = [], ""
    for letter in text:
        if letter.isdigit():
            count += letter
        else:
            found.append((count, letter))
            count = ""
    return found


def values(layout: type[Layout]) -> st.SearchStrategy[Layout]:
    """Structures whose every field is one that may be."""
    fields: dict[str, st.SearchStrategy[int]] = {}
    for name, bits, signed in widths(layout):
        if name in layout.ZERO:
            fields[name] = st.just(0)
        elif name in layout.VALUES:
            fields[name] = st.sampled_from(sorted(layout.VALUES[name]))
        elif name in layout.MASKS:
            fields[name] = st.integers(0, layout.MASKS[name])
        else:
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            fields[name] = st.sampled_from([low, 0, 1, high]) | st.integers(low, high)
    return st.builds(layout, **fields)
