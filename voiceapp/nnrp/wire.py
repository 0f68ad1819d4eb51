"""Bytes to packets and back: NNRP/1 preview 4, one packet for each binary WebSocket message.

A packet is a header of 40 bytes, fixed-width metadata and a body. Whatever is wrong with one, reading it
raises ``WireError`` and nothing else; the error knows what goes into the ERROR packet.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from voiceapp.errors import LocalProtocolError
from voiceapp.nnrp import data_layouts as data
from voiceapp.nnrp import layouts
from voiceapp.nnrp.data_layouts import Descriptor, Prelude
from voiceapp.nnrp.layouts import ErrorCode, Layout, WireError

MAGIC: Final = b"NNRP"
VERSION: Final = 1
WIRE_FORMAT: Final = 0
HEADER: Final = struct.Struct("<4sBBBBIIIIIHHQ")
FLAGS_MASK: Final = 0x3F

MAX_METADATA_BYTES: Final = 256
"""No packet of this version has as many."""
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Longest body, of a result; submits have a shorter one."""
MAX_PACKET_BYTES: Final = HEADER.size + MAX_METADATA_BYTES + MAX_BODY_BYTES
MAX_FRAMES: Final = 16
"""Typed payloads of one body; the profile allows one."""


class MessageType(IntEnum):
    """What a packet is, as far as this profile goes."""

    CLIENT_HELLO = 0x01
    SERVER_HELLO_ACK = 0x02
    SESSION_PATCH_ACK = 0x04
    CLOSE = 0x05
    ERROR = 0x06
    SESSION_OPEN = 0x07
    SESSION_OPEN_ACK = 0x08
    SESSION_CLOSE = 0x09
    SESSION_CLOSE_ACK = 0x0A
    FRAME_SUBMIT = 0x10
    FRAME_CANCEL = 0x11
    RESULT_PUSH = 0x12
    FLOW_UPDATE = 0x17
    RESULT_HINT = 0x18
    PING = 0x20
    PONG = 0x21
    CANCEL = 0x30
    ABORT = 0x31
    PRIORITY_UPDATE = 0x32
    DEADLINE = 0x33
    EXPIRE_AT = 0x34
    PARTIAL_RESULT = 0x38
    RESULT_DROP_REASON = 0x40
    RETRY_AFTER = 0x49


METADATA: Final[Mapping[MessageType, type[Layout] | None]] = {
    MessageType.CLIENT_HELLO: layouts.ClientHello,
    MessageType.SERVER_HELLO_ACK: layouts.ServerHelloAck,
    MessageType.SESSION_PATCH_ACK: layouts.SessionPatchAck,
    MessageType.CLOSE: None,
    MessageType.ERROR: layouts.ErrorPacket,
    MessageType.SESSION_OPEN: layouts.SessionOpen,
    MessageType.SESSION_OPEN_ACK: layouts.SessionOpenAck,
    MessageType.SESSION_CLOSE: layouts.SessionClose,
    MessageType.SESSION_CLOSE_ACK: layouts.SessionCloseAck,
    MessageType.FRAME_SUBMIT: data.FrameSubmit,
    MessageType.FRAME_CANCEL: None,
    MessageType.RESULT_PUSH: data.ResultPush,
    MessageType.FLOW_UPDATE: data.FlowUpdate,
    MessageType.RESULT_HINT: data.ResultHint,
    MessageType.PING: None,
    MessageType.PONG: None,
    MessageType.CANCEL: data.Control,
    MessageType.ABORT: data.Control,
    MessageType.PRIORITY_UPDATE: data.Scheduling,
    MessageType.DEADLINE: data.Scheduling,
    MessageType.EXPIRE_AT: data.Scheduling,
    MessageType.PARTIAL_RESULT: data.PartialResult,
    MessageType.RESULT_DROP_REASON: data.ResultDrop,
    MessageType.RETRY_AFTER: data.RetryAfter,
}
"""The metadata of each message type; ``None`` where a packet is a header and nothing else."""

_OTHERS: Final = frozenset(
    {0x03, *range(0x13, 0x17), *range(0x19, 0x1D), *range(0x35, 0x38), *range(0x39, 0x40), *range(0x41, 0x49)}
)
"""Message types of the protocol that this profile has no use for."""


class Header(msgspec.Struct, frozen=True):
    """The fields of a packet's header; ``message_type`` is a number, known here or not."""

    message_type: int
    flags: int = 0
    metadata_bytes: int = 0
    body_bytes: int = 0
    session_id: int = 0
    frame_id: int = 0
    view_id: int = 0
    route_id: int = 0
    trace_id: int = 0

    def pack(self) -> bytes:
        """Return the 40 bytes; raise ``LocalProtocolError`` where a number does not fit its field."""
        first, *rest = msgspec.structs.astuple(self)
        try:
            return HEADER.pack(MAGIC, VERSION, WIRE_FORMAT, first, HEADER.size, *rest)
        except struct.error as error:
            raise LocalProtocolError(f"header: {error}", code="nnrp_range") from None

    @classmethod
    def unpack(cls, packet: bytes | memoryview) -> Header:
        """Return the header that a packet begins with."""
        if len(packet) < HEADER.size:
            raise WireError(
                f"A packet has {HEADER.size} bytes at least, this one {len(packet)}.",
                ErrorCode.MALFORMED_HEADER,
            )
        magic, version, wire_format, message_type, length, *rest = HEADER.unpack_from(packet)
        if magic != MAGIC:
            raise WireError("A packet begins with the letters NNRP.", ErrorCode.MALFORMED_HEADER)
        if version != VERSION or wire_format != WIRE_FORMAT:
            raise WireError("This server speaks NNRP/1 alone.", ErrorCode.UNSUPPORTED_VERSION)
        header = cls(message_type, *rest)
        if length != HEADER.size:
            raise header.error("The header's length must be 40.", ErrorCode.MALFORMED_HEADER)
        if header.flags & ~FLAGS_MASK:
            raise header.error("The header has unknown flags.", ErrorCode.MALFORMED_HEADER)
        return header

    def error(self, message: str, code: ErrorCode, *, fatal: bool = False) -> WireError:
        """Return an error about this packet."""
        return WireError(
            message,
            code,
            session_id=self.session_id,
            frame_id=self.frame_id,
            view_id=self.view_id,
            fatal=fatal,
        )


class Packet(msgspec.Struct, frozen=True):
    """A whole packet; ``metadata`` is ``None`` for types that are a header and nothing else."""

    header: Header
    metadata: Layout | None
    body: bytes

    @property
    def type(self) -> MessageType:
        """What it is."""
        return MessageType(self.header.message_type)


def encode(
    message_type: MessageType,
    metadata: Layout | None = None,
    body: bytes = b"",
    *,
    flags: int = 0,
    session_id: int = 0,
    frame_id: int = 0,
    view_id: int = 0,
    route_id: int = 0,
    trace_id: int = 0,
) -> bytes:
    """Return a packet's bytes; raise ``LocalProtocolError`` where it would not be one."""
    if type(metadata) is not (METADATA[message_type] or type(None)):
        raise LocalProtocolError(f"{message_type.name} has other metadata.", code="nnrp_metadata")
    packed = b"" if metadata is None else metadata.pack()
    if len(body) > MAX_BODY_BYTES:
        raise LocalProtocolError(
            f"A body may have {MAX_BODY_BYTES} bytes at most.", code="nnrp_limit_exceeded"
        )
    header = Header(
        message_type, flags, len(packed), len(body), session_id, frame_id, view_id, route_id, trace_id
    )
    return header.pack() + packed + body


def decode(packet: bytes | memoryview) -> Packet:
    """Return the packet that ``packet`` is, checked as far as one packet can be; raise ``WireError``."""
    view = memoryview(packet)
    header = Header.unpack(view)
    if header.metadata_bytes > MAX_METADATA_BYTES:
        raise header.error("The metadata is too long.", ErrorCode.LIMIT_EXCEEDED)
    if header.body_bytes > MAX_BODY_BYTES:
        raise header.error(f"A body may have {MAX_BODY_BYTES} bytes at most.", ErrorCode.LIMIT_EXCEEDED)
    if len(view) != HEADER.size + header.metadata_bytes + header.body_bytes:
        raise header.error("The packet is not as long as its header says.", ErrorCode.MALFORMED_HEADER)
    if header.message_type not in METADATA:
        if header.message_type in _OTHERS:
            raise header.error("This server has no use for this message.", ErrorCode.UNSUPPORTED_CAPABILITY)
        raise header.error("There is no such message type.", ErrorCode.MALFORMED_HEADER)
    message_type = MessageType(header.message_type)
    end = HEADER.size + header.metadata_bytes
    body = bytes(view[end:])
    try:
        metadata = _metadata(METADATA[message_type], view[HEADER.size : end], len(body))
    except WireError as error:
        raise header.error(f"{message_type.name}: {error.message}", error.error_code) from None
    return Packet(header, metadata, body)


def _metadata(layout: type[Layout] | None, raw: memoryview, body_bytes: int) -> Layout | None:
    if layout is None:
        if raw or body_bytes:
            raise WireError("The packet must be a header alone.", ErrorCode.MALFORMED_BODY)
        return None
    metadata = layout.unpack(raw)
    promised = metadata.tail_bytes
    if promised is not None and promised != body_bytes:
        raise layout.broken(f"promises {promised} bytes of body where there are {body_bytes}")
    return metadata


# -- bodies of submits and results --------------------------------------------------------------------------


class Frame(msgspec.Struct, frozen=True):
    """One typed payload; its descriptor's ``offset`` and ``length`` are set when it is packed."""

    descriptor: Descriptor
    payload: bytes


def pack_body(frames: Sequence[Frame]) -> bytes:
    """Return a body that holds typed payloads and nothing else."""
    descriptors, offset = [], 0
    for frame in frames:
        length = len(frame.payload)
        descriptors.append(msgspec.structs.replace(frame.descriptor, offset=offset, length=length).pack())
        offset += length
    prelude = Prelude(descriptor_bytes=len(frames) * Descriptor.FORMAT.size, payload_bytes=offset)
    return b"".join([prelude.pack(), *descriptors, *(frame.payload for frame in frames)])


def unpack_body(body: bytes | memoryview, *, kind_bitmap: int, frame_count: int) -> list[Frame]:
    """Return the typed payloads of a body, which must be those that the metadata counts.

    Raises ``WireError`` without ids: malformed body, or unsupported capability for a body that has inline
    objects, references or extensions.
    """
    view = memoryview(body)
    size = Prelude.FORMAT.size
    if len(view) < size:
        raise WireError(f"A body has {size} bytes at least.", ErrorCode.MALFORMED_BODY)
    prelude = Prelude.unpack(view[:size])
    regions = msgspec.structs.astuple(prelude)[:6]
    if size + sum(regions) != len(view):
        raise WireError("The body is not as long as its regions.", ErrorCode.MALFORMED_BODY)
    if sum(regions) != prelude.descriptor_bytes + prelude.payload_bytes:
        raise WireError(
            "Inline objects, object references and extensions are not supported.",
            ErrorCode.UNSUPPORTED_CAPABILITY,
        )
    if frame_count > MAX_FRAMES:
        raise WireError(f"A body may have {MAX_FRAMES} payloads at most.", ErrorCode.LIMIT_EXCEEDED)
    if prelude.descriptor_bytes != frame_count * Descriptor.FORMAT.size:
        raise WireError("The body has another number of payloads than is said.", ErrorCode.MALFORMED_BODY)
    start = size + prelude.descriptor_bytes
    frames = _frames(view[size:start], view[start:])
    union = 0
    for frame in frames:
        union |= frame.descriptor.payload_kind
    if union != kind_bitmap:
        raise WireError("The body has other kinds of payload than is said.", ErrorCode.MALFORMED_BODY)
    return frames


def _frames(descriptors: memoryview, payloads: memoryview) -> list[Frame]:
    step, end, frames = Descriptor.FORMAT.size, 0, []
    for at in range(0, len(descriptors), step):
        descriptor = Descriptor.unpack(descriptors[at : at + step])
        if descriptor.offset < end:
            raise WireError("Payloads overlap or are out of order.", ErrorCode.MALFORMED_BODY)
        end = descriptor.offset + descriptor.length
        if end > len(payloads):
            raise WireError("A payload reaches past the body's end.", ErrorCode.MALFORMED_BODY)
        frames.append(Frame(descriptor, bytes(payloads[descriptor.offset : end])))
    if not frames and len(payloads):
        raise WireError("There are bytes of payload but no payload.", ErrorCode.MALFORMED_BODY)
    return frames


# -- CLIENT_HELLO's extensions ------------------------------------------------------------------------------

_EXTENSION: Final = struct.Struct("<HHI")
_CRITICAL: Final = 1
KNOWN_EXTENSIONS: Final = frozenset({0x0101, 0x0103, 0x0105})
"""Transport policy, loss tolerance, payload kinds: wishes that a WebSocket fulfils or that may be ignored."""


def check_extensions(block: bytes) -> None:
    """Raise ``WireError`` where a block of control extensions is malformed or demands what is not known."""
    at = 0
    while at < len(block):
        if len(block) - at < _EXTENSION.size:
            raise WireError("A control extension is cut short.", ErrorCode.MALFORMED_BODY)
        kind, flags, length = _EXTENSION.unpack_from(block, at)
        end = at + _EXTENSION.size + length
        padded = end + (-length) % 8
        if padded > len(block) or any(block[end:padded]) or flags & ~_CRITICAL:
            raise WireError("A control extension is malformed.", ErrorCode.MALFORMED_BODY)
        if flags & _CRITICAL and kind not in KNOWN_EXTENSIONS:
            raise WireError("A critical control extension is not known.", ErrorCode.UNSUPPORTED_CAPABILITY)
        at = padded
