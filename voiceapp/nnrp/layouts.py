"""The fixed-width structures of NNRP/1 preview 4, one class each, fields in wire order, little-endian.

Reserved fields are fields too, so that what was read is written back byte for byte. Names say the unit where
there is one; lengths are in bytes. The header is ``voiceapp.nnrp.wire``'s.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import ClassVar, Self

import msgspec

from voiceapp.errors import LocalProtocolError, RemoteProtocolError


class ErrorCode(IntEnum):
    """What an ERROR packet says went wrong."""

    UNSUPPORTED_VERSION = 1
    AUTH_FAILED = 2
    INVALID_STATE = 3
    MALFORMED_HEADER = 4
    MALFORMED_BODY = 5
    UNSUPPORTED_CAPABILITY = 6
    LIMIT_EXCEEDED = 7
    FRAME_EXPIRED = 8
    FRAME_CANCELLED = 9
    CACHE_MISS = 10
    SERVER_BUSY = 11
    INTERNAL_ERROR = 12


class Scope(IntEnum):
    """How much of a connection an ERROR packet is about."""

    CONNECTION = 0
    SESSION = 1
    FRAME = 2


class WireError(RemoteProtocolError):
    """A packet breaks the wire format, or its sender the order of things; becomes an ERROR packet."""

    def __init__(
        self,
        message: str,
        error_code: ErrorCode,
        *,
        session_id: int = 0,
        frame_id: int = 0,
        view_id: int = 0,
        fatal: bool = False,
    ) -> None:
        super().__init__(message, code=f"nnrp_{error_code.name.lower()}")
        self.error_code = error_code
        self.session_id, self.frame_id, self.view_id = session_id, frame_id, view_id
        self.fatal = fatal

    @property
    def scope(self) -> Scope:
        """The narrowest scope that the packet's ids allow."""
        if not self.session_id:
            return Scope.CONNECTION
        return Scope.FRAME if self.frame_id else Scope.SESSION


KINDS_MASK = 0x7F
"""Tensor, token, audio, video, structured event, tool delta, opaque bytes."""


class Layout(msgspec.Struct, frozen=True):
    """Base of all structures.

    ``ZERO`` names fields that must be 0, ``MASKS`` the bits that a field may have, ``VALUES`` the values,
    ``TAIL`` those that add up to the length of the packet's body: ``None`` where it says that itself.
    """

    FORMAT: ClassVar[struct.Struct]
    ZERO: ClassVar[Collection[str]] = ()
    MASKS: ClassVar[Mapping[str, int]] = {}
    VALUES: ClassVar[Mapping[str, Collection[int]]] = {}
    TAIL: ClassVar[Collection[str] | None] = ()

    def pack(self) -> bytes:
        """Return the bytes; raise ``LocalProtocolError`` where a number does not fit its field."""
        try:
            return self.FORMAT.pack(*msgspec.structs.astuple(self))
        except struct.error as error:
            raise LocalProtocolError(f"{type(self).__name__}: {error}", code="nnrp_range") from None

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> Self:
        """Return the structure that ``data`` is; raise ``WireError`` (malformed body) where it is none."""
        if len(data) != cls.FORMAT.size:
            raise cls.broken(f"has {len(data)} bytes instead of {cls.FORMAT.size}")
        found = cls(*cls.FORMAT.unpack(data))
        found.check()
        return found

    def check(self) -> None:
        """Raise ``WireError`` where a value may not be."""
        for name in self.ZERO:
            if getattr(self, name):
                raise self.broken(f"has a {name} that is not 0")
        for name, mask in self.MASKS.items():
            if getattr(self, name) & ~mask:
                raise self.broken(f"has unknown bits in {name}")
        for name, values in self.VALUES.items():
            if getattr(self, name) not in values:
                raise self.broken(f"has an unknown {name}")

    @classmethod
    def broken(cls, what: str) -> WireError:
        """Return the error for a structure that is wrong."""
        return WireError(f"{cls.__name__} {what}.", ErrorCode.MALFORMED_BODY)

    @property
    def tail_bytes(self) -> int | None:
        """How long the body must be; ``None`` where the structure does not say."""
        return None if self.TAIL is None else sum(getattr(self, name) for name in self.TAIL)


class ClientHello(Layout, frozen=True):
    """CLIENT_HELLO."""

    FORMAT = struct.Struct("<BBHIIIIIIHHHHIIHHHHIII")
    TAIL = ("auth_bytes", "control_extension_bytes")
    min_version: int = 1
    max_version: int = 1
    wire_format_bitmap: int = 1
    profile_bitmap: int = 3
    payload_kind_bitmap: int = 0x73
    codec_bitmap: int = 0
    compression_bitmap: int = 0
    dtype_bitmap: int = 0
    layout_bitmap: int = 0
    cache_digest_bitmap: int = 0
    cache_object_bitmap: int = 0
    cache_namespace_count: int = 0
    max_lane_count: int = 1
    max_cache_entries: int = 0
    max_cache_bytes: int = 0
    target_cadence_x100: int = 0
    latency_budget_ms: int = 500
    quality_tier: int = 0
    degrade_policy: int = 0
    requested_session_id: int = 0
    auth_bytes: int = 0
    control_extension_bytes: int = 0


class ServerHelloAck(Layout, frozen=True):
    """SERVER_HELLO_ACK."""

    FORMAT = struct.Struct("<BBBBIIIIIIIIIIIHHHHHHIIIII")
    ZERO = ("reserved0",)
    TAIL = ("control_extension_bytes",)
    selected_version: int = 1
    selected_wire_format: int = 0
    auth_status: int = 0
    reserved0: int = 0
    session_id: int = 0
    accepted_profile_bitmap: int = 0
    accepted_payload_kind_bitmap: int = 0
    accepted_codec_bitmap: int = 0
    accepted_compression_bitmap: int = 0
    accepted_dtype_bitmap: int = 0
    accepted_layout_bitmap: int = 0
    cache_digest_bitmap: int = 0
    cache_object_bitmap: int = 0
    max_cache_entries: int = 0
    max_cache_bytes: int = 0
    max_lane_count: int = 1
    max_concurrent_frames: int = 0
    target_cadence_x100: int = 0
    latency_budget_ms: int = 0
    quality_tier: int = 0
    degrade_policy: int = 0
    max_body_bytes: int = 0
    token_ttl_ms: int = 0
    retry_after_ms: int = 0
    control_extension_bytes: int = 0
    server_flags: int = 0


class SessionPatchAck(Layout, frozen=True):
    """SESSION_PATCH_ACK."""

    FORMAT = struct.Struct("<HHIIIHHIHHQIII")
    ZERO = ("reserved0",)
    VALUES = {"ack_status": range(3), "reject_reason": range(6)}
    TAIL = ("profile_patch_ack_bytes",)
    ack_status: int = 0
    reject_reason: int = 0
    applied_patch_mask: int = 0
    rejected_patch_mask: int = 0
    retry_after_ms: int = 0
    effective_profile_id: int = 0
    reserved0: int = 0
    effective_target_cadence_x100: int = 0
    effective_quality_tier: int = 0
    effective_degrade_policy: int = 0
    effective_lane_mask: int = 0
    effective_codec_bitmap: int = 0
    effective_compression_bitmap: int = 0
    profile_patch_ack_bytes: int = 0


class SessionOpen(Layout, frozen=True):
    """SESSION_OPEN; profile and schema are those of token deltas unless others are asked for."""

    FORMAT = struct.Struct("<IHBBIIIHHIIIIQ")
    ZERO = ("reserved0",)
    MASKS = {"session_flags": 0x0F}
    VALUES = {"priority_class": range(3)}
    TAIL = ("resume_token_bytes", "auth_bytes", "session_extension_bytes")
    requested_session_id: int = 0
    profile_id: int = 2
    priority_class: int = 1
    session_flags: int = 0
    schema_id: int = 0x1001
    schema_version: int = 3
    default_deadline_ms: int = 0
    max_in_flight_operations: int = 4
    reserved0: int = 0
    lease_ttl_hint_ms: int = 30_000
    resume_token_bytes: int = 0
    auth_bytes: int = 0
    session_extension_bytes: int = 0
    client_session_tag: int = 0


class SessionStatus(IntEnum):
    """What became of a SESSION_OPEN."""

    OPENED = 0
    REJECTED = 1
    RETRY_LATER = 2
    RESUMED = 3


class SessionOpenAck(Layout, frozen=True):
    """SESSION_OPEN_ACK."""

    FORMAT = struct.Struct("<IHBBIIHHIIIIQIII")
    MASKS = {"session_flags_ack": 0x1F}
    VALUES = {"session_status": range(4)}
    TAIL = ("resume_token_bytes", "session_extension_bytes")
    session_id: int = 0
    accepted_profile_id: int = 2
    accepted_priority_class: int = 1
    session_status: int = SessionStatus.OPENED
    schema_id: int = 0x1001
    schema_version: int = 3
    granted_operation_credit: int = 0
    max_in_flight_operations: int = 0
    lease_ttl_ms: int = 0
    resume_window_ms: int = 0
    resume_token_bytes: int = 0
    session_extension_bytes: int = 0
    server_session_tag: int = 0
    route_scope_id: int = 0
    session_error_code: int = 0
    session_flags_ack: int = 0


class SessionClose(Layout, frozen=True):
    """SESSION_CLOSE; ``in_flight_policy`` is 0 to let operations end and 1 to abort them."""

    FORMAT = struct.Struct("<HBBIQII")
    ZERO = ("reserved0",)
    VALUES = {"close_reason": range(6), "in_flight_policy": range(2)}
    close_reason: int = 0
    in_flight_policy: int = 0
    reserved0: int = 0
    drain_timeout_ms: int = 0
    last_operation_id: int = 0
    session_error_code: int = 0
    session_close_tag: int = 0


CLOSED = 2
"""``close_status`` of a session that is over."""


class SessionCloseAck(Layout, frozen=True):
    """SESSION_CLOSE_ACK."""

    FORMAT = struct.Struct("<BBHQI")
    ZERO = ("reserved0", "reserved1")
    VALUES = {"close_status": range(4)}
    close_status: int = CLOSED
    reserved0: int = 0
    reserved1: int = 0
    last_operation_id: int = 0
    session_error_code: int = 0


class ErrorPacket(Layout, frozen=True):
    """ERROR; the body is a sentence for people."""

    FORMAT = struct.Struct("<8I")
    VALUES = {"error_scope": range(3), "fatal": range(2)}
    TAIL = ("diagnostic_bytes",)
    error_code: int = ErrorCode.INTERNAL_ERROR
    error_scope: int = Scope.CONNECTION
    fatal: int = 0
    retry_after_ms: int = 0
    session_id: int = 0
    frame_id: int = 0
    view_id: int = 0
    diagnostic_bytes: int = 0
