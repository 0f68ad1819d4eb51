"""The structures of NNRP/1 preview 4 that carry work: submits, results, their bodies, and control of them."""

from __future__ import annotations

import struct
from enum import IntEnum

from voiceapp.nnrp.layouts import KINDS_MASK, Layout

_TENSOR = 1
_STALE, _PARTIAL = 1, 4
_CLASS_PARTIAL, _CLASS_STALE = 1, 2


class FlowUpdate(Layout, frozen=True):
    """FLOW_UPDATE."""

    FORMAT = struct.Struct("<BBBBHHHHQIII")
    ZERO = ("reserved0", "reserved1")
    MASKS = {"flags": 0x0F}
    VALUES = {"scope_kind": range(3), "update_reason": range(5), "backpressure_level": range(3)}
    scope_kind: int = 1
    update_reason: int = 0
    backpressure_level: int = 0
    reserved0: int = 0
    connection_credit: int = 0
    session_credit: int = 0
    operation_credit: int = 0
    reserved1: int = 0
    operation_id: int = 0
    retry_after_ms: int = 0
    credit_epoch: int = 0
    flags: int = 0


class ResultHint(Layout, frozen=True):
    """RESULT_HINT."""

    FORMAT = struct.Struct("<IIII")
    VALUES = {"applied_budget_policy": range(5), "congestion_state": range(4), "reason": range(5)}
    applied_budget_policy: int = 0
    congestion_state: int = 0
    reason: int = 0
    retry_after_ms: int = 0


class FrameSubmit(Layout, frozen=True):
    """FRAME_SUBMIT: one operation."""

    FORMAT = struct.Struct("<HHHHHHBBBBHHIIIIIQIBBBBIIIHH")
    ZERO = ("reserved0", "reserved1", "reserved2", "reserved3", "reserved4")
    MASKS = {"budget_policy": 0x0F, "payload_kind_bitmap": KINDS_MASK}
    VALUES = {
        "input_profile": range(3),
        "tile_index_mode": range(4),
        "submit_mode": range(3),
        "loss_tolerance_policy": (0, 1, 2, 3, 0xFF),
    }
    TAIL = None
    src_width: int = 0
    src_height: int = 0
    tile_width: int = 0
    tile_height: int = 0
    tile_count: int = 0
    section_count: int = 0
    frame_class: int = 0
    input_profile: int = 0
    tile_index_mode: int = 1
    reserved0: int = 0
    latency_budget_ms: int = 0
    target_fps_x100: int = 0
    retry_of_frame: int = 0
    tile_base_id: int = 0
    camera_bytes: int = 0
    tile_index_bytes: int = 0
    reserved1: int = 0
    operation_id: int = 0
    reserved2: int = 0
    submit_mode: int = 0
    budget_policy: int = 0
    loss_tolerance_policy: int = 0xFF
    reserved3: int = 0
    object_ref_mask: int = 0
    dependency_frame_id: int = 0
    payload_kind_bitmap: int = 0x10
    payload_frame_count: int = 1
    reserved4: int = 0

    def check(self) -> None:
        """See ``Layout``; what describes tensors must be 0 where there are none."""
        super().check()
        if not self.operation_id:
            raise self.broken("has the operation id 0")
        if self.payload_kind_bitmap & _TENSOR:
            return
        tensor = (self.src_width, self.src_height, self.tile_width, self.tile_height, self.tile_count)
        rest = (self.section_count, self.input_profile, self.tile_base_id, self.camera_bytes)
        if any((*tensor, *rest, self.tile_index_bytes)):
            raise self.broken("describes tensors but has none")


class Status(IntEnum):
    """``status_code`` of a RESULT_PUSH."""

    OK = 200
    CANCELLED = 499
    FAILED = 500
    OVERLOAD = 503
    TIMEOUT = 504


class ResultPush(Layout, frozen=True):
    """RESULT_PUSH: the end of an operation."""

    FORMAT = struct.Struct("<HHHHHHHHHHIIQQBBHIHHIHH")
    ZERO = ("reserved0", "reserved1", "reserved2", "reserved3", "reserved4", "reserved5")
    MASKS = {"result_flags": 0x07, "applied_budget_policy": 0x0F, "payload_kind_bitmap": KINDS_MASK}
    VALUES = {"result_class": range(4)}
    TAIL = None
    status_code: int = Status.OK
    result_flags: int = 0
    section_count: int = 0
    tile_count: int = 0
    active_profile_id: int = 0
    reserved0: int = 0
    inference_ms: int = 0
    queue_ms: int = 0
    server_total_ms: int = 0
    reserved1: int = 0
    tile_base_id: int = 0
    tile_index_bytes: int = 0
    reserved2: int = 0
    reserved3: int = 0
    result_class: int = 0
    applied_budget_policy: int = 0
    reserved4: int = 0
    reused_frame_id: int = 0
    covered_tile_count: int = 0
    dropped_tile_count: int = 0
    payload_kind_bitmap: int = 0x10
    payload_frame_count: int = 1
    reserved5: int = 0

    def check(self) -> None:
        """See ``Layout``; stale results name the frame that they reuse, partial tensors what they lack."""
        super().check()
        stale = self.result_class == _CLASS_STALE or bool(self.result_flags & _STALE)
        if stale != bool(self.reused_frame_id):
            raise self.broken("is stale without a reused frame, or the other way round")
        tiles = (self.tile_count, self.covered_tile_count, self.dropped_tile_count)
        if not self.payload_kind_bitmap & _TENSOR:
            if any((*tiles, self.section_count, self.tile_base_id, self.tile_index_bytes)):
                raise self.broken("describes tensors but has none")
            return
        partial = self.result_class == _CLASS_PARTIAL or self.result_flags & _PARTIAL
        if partial and not self.dropped_tile_count:
            raise self.broken("is partial but lacks no tile")
        if self.covered_tile_count + self.dropped_tile_count != self.tile_count:
            raise self.broken("does not account for every tile")


class PartialResult(Layout, frozen=True):
    """PARTIAL_RESULT; ``result_sequence`` counts from 1."""

    FORMAT = struct.Struct("<QQQQII")
    MASKS = {"flags": 0x03}
    TAIL = ("body_bytes",)
    operation_id: int = 0
    result_sequence: int = 0
    object_id: int = 0
    delta_sequence: int = 0
    body_bytes: int = 0
    flags: int = 0


CLIENT, SERVER = 1, 2
"""Roles, as in ``source_role``."""
_REASONS = (*range(9), *range(0x8000, 0x10000))
_DROP_REASONS = (*range(10), *range(0x8000, 0x10000))
_ROLES = (*range(8), *range(0x80, 0x100))


class Control(Layout, frozen=True):
    """CANCEL and ABORT; operation 0 is all of a session."""

    FORMAT = struct.Struct("<QQHBBIQ")
    ZERO = ("reserved",)
    MASKS = {"flags": 0x03}
    VALUES = {"reason_code": frozenset(_REASONS), "source_role": frozenset(_ROLES)}
    TAIL = ("diagnostic_bytes",)
    operation_id: int = 0
    control_sequence: int = 0
    reason_code: int = 0
    source_role: int = CLIENT
    flags: int = 0
    diagnostic_bytes: int = 0
    reserved: int = 0


class Scheduling(Layout, frozen=True):
    """PRIORITY_UPDATE, DEADLINE and EXPIRE_AT; ``deadline_unix_ms`` is a time of day, 0 for none."""

    FORMAT = struct.Struct("<QQHhQI")
    MASKS = {"flags": 0x03}
    operation_id: int = 0
    control_sequence: int = 0
    priority_class: int = 0
    priority_delta: int = 0
    deadline_unix_ms: int = 0
    flags: int = 0


class DropReason(IntEnum):
    """Why there will be no result."""

    DEADLINE_EXPIRED = 1
    SUPERSEDED = 2
    PEER_CANCELLED = 3
    BACKPRESSURE = 4
    TRANSPORT_CLOSED = 8


class ResultDrop(Layout, frozen=True):
    """RESULT_DROP_REASON: the end of an operation that has no result."""

    FORMAT = struct.Struct("<QQHBBIQ")
    ZERO = ("reserved",)
    MASKS = {"flags": 0x03}
    VALUES = {"drop_reason_code": frozenset(_DROP_REASONS), "source_role": frozenset(_ROLES)}
    TAIL = ("diagnostic_bytes",)
    operation_id: int = 0
    result_sequence: int = 0
    drop_reason_code: int = DropReason.PEER_CANCELLED
    source_role: int = SERVER
    flags: int = 0
    diagnostic_bytes: int = 0
    reserved: int = 0


class RetryAfter(Layout, frozen=True):
    """RETRY_AFTER; scope 0 is the connection."""

    FORMAT = struct.Struct("<QQIIHBBI")
    MASKS = {"flags": 0x03}
    VALUES = {"reason_code": frozenset(_REASONS), "source_role": frozenset(_ROLES)}
    TAIL = ("diagnostic_bytes",)
    scope_id: int = 0
    control_sequence: int = 0
    retry_after_ms: int = 0
    jitter_ms: int = 0
    reason_code: int = 0
    source_role: int = SERVER
    flags: int = 0
    diagnostic_bytes: int = 0


# -- bodies -----------------------------------------------------------------------------------------------


class Prelude(Layout, frozen=True):
    """The beginning of a submit's or result's body: how long each of its regions is."""

    FORMAT = struct.Struct("<8I")
    ZERO = ("body_flags", "reserved")
    inline_object_bytes: int = 0
    object_reference_bytes: int = 0
    descriptor_bytes: int = 0
    payload_bytes: int = 0
    extension_descriptor_bytes: int = 0
    extension_payload_bytes: int = 0
    body_flags: int = 0
    reserved: int = 0

    def check(self) -> None:
        """See ``Layout``; regions of structures hold whole ones."""
        super().check()
        if (
            self.object_reference_bytes % ObjectReference.FORMAT.size
            or self.descriptor_bytes % Descriptor.FORMAT.size
            or self.extension_descriptor_bytes % 16
        ):
            raise self.broken("cuts a structure in two")


_ONE_KIND = frozenset(1 << bit for bit in range(7))
SNAPSHOT = 1
"""``stream_semantics`` of a payload that stands for itself."""


class Descriptor(Layout, frozen=True):
    """Describes one typed payload; ``offset`` counts from the region's beginning."""

    FORMAT = struct.Struct("<HBBIIHHII")
    ZERO = ("reserved0",)
    MASKS = {"descriptor_flags": 0x0F}
    VALUES = {"payload_kind": _ONE_KIND}
    profile_id: int = 0
    payload_kind: int = 0x10
    descriptor_flags: int = 0
    schema_id: int = 0
    schema_version: int = 0
    stream_semantics: int = SNAPSHOT
    reserved0: int = 0
    offset: int = 0
    length: int = 0


class ObjectReference(Layout, frozen=True):
    """Names an object that the receiver keeps."""

    FORMAT = struct.Struct("<HHIQQ")
    ZERO = ("ref_flags",)
    VALUES = {"object_kind": range(1, 10)}
    object_kind: int = 1
    ref_flags: int = 0
    cache_namespace: int = 0
    cache_key_hi: int = 0
    cache_key_lo: int = 0
