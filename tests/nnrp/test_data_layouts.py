"""The structures that carry work: which values go together."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.nnrp.data_layouts import (
    Control,
    Descriptor,
    DropReason,
    FrameSubmit,
    ObjectReference,
    PartialResult,
    Prelude,
    ResultDrop,
    ResultPush,
    RetryAfter,
    Scheduling,
)
from voiceapp.nnrp.layouts import Layout, WireError


@pytest.mark.parametrize(
    "lawful",
    [
        FrameSubmit(operation_id=1),
        ResultPush(),
        ResultPush(result_class=2, reused_frame_id=9),
        ResultPush(result_flags=1, reused_frame_id=9),
        ResultPush(payload_kind_bitmap=1, tile_count=3, covered_tile_count=3),
        ResultPush(
            payload_kind_bitmap=1, result_class=1, tile_count=3, covered_tile_count=2, dropped_tile_count=1
        ),
        PartialResult(operation_id=1, result_sequence=1, body_bytes=5),
        Control(reason_code=0x8000, source_role=0x80),
        Scheduling(priority_delta=-3),
        ResultDrop(drop_reason_code=DropReason.DEADLINE_EXPIRED),
        RetryAfter(retry_after_ms=5),
        Prelude(
            object_reference_bytes=2 * ObjectReference.FORMAT.size, descriptor_bytes=Descriptor.FORMAT.size
        ),
        Descriptor(payload_kind=64),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_together_passes(lawful: Layout) -> None:
    lawful.check()
    assert type(lawful).unpack(lawful.pack()) == lawful


@pytest.mark.parametrize(
    ("layout", "fields", "words"),
    [
        (FrameSubmit, {"operation_id": 0}, "operation"),
        (ResultPush, {"result_class": 2}, "stale"),
        (ResultPush, {"reused_frame_id": 9}, "stale"),
        (ResultPush, {"tile_count": 1}, "describes tensors but has none"),
        (ResultPush, {"payload_kind_bitmap": 1, "tile_count": 3}, "account for every tile"),
        (ResultPush, {"payload_kind_bitmap": 1, "result_class": 1, "tile_count": 1, "covered_tile_count": 1},
         "partial but lacks no tile"),
        (Control, {"reason_code": 9}, "unknown reason_code"),
        (Control, {"source_role": 8}, "unknown source_role"),
        (Control, {"reserved": 1}, "reserved that is not 0"),
        (Control, {"flags": 4}, "unknown bits in flags"),
        (ResultDrop, {"drop_reason_code": 10}, "unknown drop_reason_code"),
        (Prelude, {"descriptor_bytes": 1}, "cuts a structure in two"),
        (Prelude, {"object_reference_bytes": 1}, "cuts a structure in two"),
        (Prelude, {"extension_descriptor_bytes": 8}, "cuts a structure in two"),
        (Prelude, {"body_flags": 1}, "body_flags that is not 0"),
        (Descriptor, {"payload_kind": 3}, "unknown payload_kind"),
        (ObjectReference, {"object_kind": 10}, "unknown object_kind"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(layout: type[Layout], fields: dict[str, Any], words: str) -> None:
    with pytest.raises(WireError, match=words):
        layout(**fields).check()


@pytest.mark.parametrize("layout", [PartialResult, Control, ResultDrop, RetryAfter])
def test_the_body_is_as_long_as_they_say(layout: type[Layout]) -> None:
    assert layout.TAIL is not None
    [name] = layout.TAIL
    assert layout(**{name: 7}).tail_bytes == 7
