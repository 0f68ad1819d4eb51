"""The profile ``openai-compatible/1``, level 1: what a submit's JSON must be, and the events that answer it.

An operation is answered by any number of partial events and exactly one terminal one.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from voiceapp.errors import RemoteProtocolError
from voiceapp.nnrp.data_layouts import Descriptor, FrameSubmit, ResultPush, Status
from voiceapp.nnrp.layouts import ErrorCode, WireError
from voiceapp.nnrp.wire import Frame, pack_body, unpack_body
from voiceapp.protocol.codec import nested_too_deep
from voiceapp.types import JsonObject

SCHEMA_VERSION: Final = "openai-compatible/1"
OPERATION: Final = "chat.completions.create"
STRUCTURED_EVENT: Final = 0x10

MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""Longest body of a submit; told to the peer in SERVER_HELLO_ACK."""
MAX_CONTAINERS: Final = 50_000
"""Objects and arrays of a request: more take longer to read than other connections should wait."""
MAX_REQUEST_ID_CHARS: Final = 256
MAX_TIMEOUT_MS: Final = 600_000
"""Longest time-out that a request may ask for."""
MAX_CANCEL_AFTER: Final = 1_000_000
MAX_DEPTH: Final = 100
"""Deepest nesting of a request that is read."""

COMPLETED, ERROR, CANCELLED = "response.completed", "response.error", "response.cancelled"
TERMINAL: Final = frozenset({COMPLETED, ERROR, CANCELLED})


class ProfileError(RemoteProtocolError):
    """A request that gets a ``response.error``; ``kind`` is the error's ``type``."""

    def __init__(self, message: str, code: str, *, kind: str = "invalid_request_error") -> None:
        super().__init__(message, code=code)
        self.kind = kind

    @property
    def event(self) -> JsonObject:
        """The terminal event that says so."""
        return error_event(self.kind, self.code, self.message)

    @property
    def result_status(self) -> Status:
        """The status of the result that carries it."""
        return _STATUS.get(self.code, Status.FAILED)


_STATUS: Final = {
    "backend_overload": Status.OVERLOAD,
    "adapter_operation_limit": Status.OVERLOAD,
    "request_timeout": Status.TIMEOUT,
}


class SubmitRequest(msgspec.Struct, frozen=True):
    """A submit that may be worked on.

    ``timeout_ms`` and ``cancel_after_events`` are 0 where the client asks for none.
    """

    body: JsonObject
    request_id: str = ""
    timeout_ms: int = 0
    cancel_after_events: int = 0
    diagnostics: bool = False

    @property
    def streaming(self) -> bool:
        """Whether the answer is wanted in parts."""
        return bool(self.body.get("stream"))

    @property
    def usage_wanted(self) -> bool:
        """Whether the client asks for a ``response.usage`` event."""
        options = self.body.get("stream_options")
        return bool(options and options.get("include_usage"))


# -- requests ---------------------------------------------------------------------------------------------


def read_submit(metadata: FrameSubmit, body: bytes) -> SubmitRequest:
    """Return what a FRAME_SUBMIT asks for.

    Raises ``WireError`` without ids where the body's regions are malformed, and ``ProfileError`` where they
    hold something else than one request of this profile.
    """
    frames = unpack_body(
        body, kind_bitmap=metadata.payload_kind_bitmap, frame_count=metadata.payload_frame_count
    )
    if metadata.submit_mode or metadata.object_ref_mask:
        raise WireError("Only inline submits are supported.", ErrorCode.UNSUPPORTED_CAPABILITY)
    if len(frames) != 1:
        raise _invalid("A submit holds exactly one payload.")
    descriptor = frames[0].descriptor
    if descriptor != Descriptor(offset=0, length=len(frames[0].payload)):
        raise _invalid("The payload must be a structured event of profile 0, without schema, a snapshot.")
    return read_envelope(frames[0].payload)


def read_envelope(payload: bytes) -> SubmitRequest:
    """Return the request that ``payload`` is, UTF-8 JSON; raise ``ProfileError``."""
    return read_fields(read_json(payload))


def read_json(payload: bytes) -> Any:
    """Return what ``payload`` says; raise ``ProfileError`` where it is no JSON in UTF-8."""
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid("The payload must be JSON in UTF-8.") from None


def read_fields(fields: Any) -> SubmitRequest:
    """Return the request that a JSON value is; raise ``ProfileError``."""
    if not isinstance(fields, dict) or nested_too_deep(fields, MAX_DEPTH, MAX_CONTAINERS):
        raise _invalid(
            f"The payload must be a JSON object, nested {MAX_DEPTH} deep, with {MAX_CONTAINERS} objects and "
            "arrays at most."
        )
    if fields.get("schema_version") != SCHEMA_VERSION:
        raise ProfileError(f"'schema_version' must be {SCHEMA_VERSION!r}.", code="unsupported_schema_version")
    if fields.get("operation") != OPERATION:
        raise ProfileError(f"'operation' must be {OPERATION!r}.", code="unsupported_operation")
    return SubmitRequest(_body(fields.get("body")), _request_id(fields), *_policy(fields.get("nnrp")))


def _invalid(message: str) -> ProfileError:
    return ProfileError(message, code="invalid_submit_body")


def _body(body: Any) -> JsonObject:
    def wrong(message: str) -> ProfileError:
        return ProfileError(message, code="invalid_body")

    if not isinstance(body, dict):
        raise wrong("'body' must be an object.")
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise ProfileError("'body.model' must name a model.", code="missing_model")
    if not isinstance(messages, list) or not messages:
        raise ProfileError("'body.messages' must hold at least one message.", code="missing_messages")
    if not all(isinstance(message, dict) for message in messages):
        raise wrong("Every message must be an object.")
    if not isinstance(body.get("stream", False), bool | None):
        raise wrong("'body.stream' must be true or false.")
    if not isinstance(body.get("stream_options"), dict | None):
        raise wrong("'body.stream_options' must be an object.")
    if body.get("n") not in (None, 1):
        raise wrong("Only one choice is made: 'body.n' must be 1.")
    return body


def _request_id(fields: JsonObject) -> str:
    request_id = fields.get("request_id", "-")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= MAX_REQUEST_ID_CHARS:
        raise ProfileError(
            f"'request_id' must be text of at most {MAX_REQUEST_ID_CHARS} characters.",
            code="invalid_request_id",
        )
    return request_id if "request_id" in fields else ""


def _policy(policy: Any) -> tuple[int, int, bool]:
    def wrong(message: str) -> ProfileError:
        return ProfileError(message, code="invalid_nnrp_policy")

    if policy is None:
        return 0, 0, False
    if not isinstance(policy, dict):
        raise wrong("'nnrp' must be an object.")
    numbers = []
    for name, most in (("timeout_ms", MAX_TIMEOUT_MS), ("cancel_after_events", MAX_CANCEL_AFTER)):
        value = policy.get(name)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise wrong(f"'nnrp.{name}' must be an integer from 1 to {most}.")
        numbers.append(value or 0)
    diagnostics = policy.get("diagnostics", False)
    if not isinstance(diagnostics, bool):
        raise wrong("'nnrp.diagnostics' must be true or false.")
    return numbers[0], numbers[1], diagnostics


def write_submit(operation_id: int, envelope: JsonObject) -> tuple[FrameSubmit, bytes]:
    """Return metadata and body of a FRAME_SUBMIT that carries ``envelope``."""
    return FrameSubmit(operation_id=operation_id), pack_body([Frame(Descriptor(), to_json(envelope))])


# -- events -----------------------------------------------------------------------------------------------


def to_json(fields: JsonObject) -> bytes:
    """Return JSON in UTF-8; half of a surrogate pair, which UTF-8 cannot say, becomes U+FFFD."""
    try:
        return msgspec.json.encode(fields)
    except UnicodeEncodeError:
        text = json.dumps(fields, ensure_ascii=False)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def text_event(index: int, delta: str) -> JsonObject:
    """Return a partial event that brings text of output item ``index``."""
    return {"type": "response.output_text.delta", "index": index, "delta": delta}


def usage_event(usage: JsonObject) -> JsonObject:
    """Return the partial event that counts tokens, as the service counted them."""
    return {"type": "response.usage", "usage": usage}


def diagnostics_event(fields: JsonObject) -> JsonObject:
    """Return the partial event that a client gets who asked for ``nnrp.diagnostics``."""
    return {"type": "response.diagnostics", "diagnostics": fields}


def completed_event(body: JsonObject) -> JsonObject:
    """Return the terminal event of success; ``body`` is a ``chat.completion``."""
    return {"type": COMPLETED, "body": body}


def error_event(kind: str, code: str, message: str) -> JsonObject:
    """Return the terminal event of failure."""
    return {"type": ERROR, "error": {"type": kind, "code": code, "message": message}}


def cancelled_event(reason: str) -> JsonObject:
    """Return the terminal event of a cancellation that this side decided."""
    return {"type": CANCELLED, "reason": reason}


def write_result(
    status: Status, event: JsonObject | None, *, total_ms: int = 0, queue_ms: int = 0
) -> tuple[ResultPush, bytes]:
    """Return metadata and body of a RESULT_PUSH; ``event`` is ``None`` for a success that has none.

    ``total_ms`` is the time since the submit, ``queue_ms`` the part of it spent waiting.
    """
    metadata = ResultPush(status, queue_ms=min(queue_ms, 0xFFFF), server_total_ms=min(total_ms, 0xFFFF))
    if event is None:
        empty = msgspec.structs.replace(metadata, payload_kind_bitmap=0, payload_frame_count=0)
        return empty, pack_body([])
    return metadata, pack_body([Frame(Descriptor(), to_json(event))])


def read_result(metadata: ResultPush, body: bytes) -> JsonObject | None:
    """Return the terminal event of a RESULT_PUSH, ``None`` for an empty success; raise ``WireError``."""
    frames = unpack_body(
        body, kind_bitmap=metadata.payload_kind_bitmap, frame_count=metadata.payload_frame_count
    )
    if not frames and metadata.status_code == Status.OK:
        return None
    if len(frames) != 1 or frames[0].descriptor.payload_kind != STRUCTURED_EVENT:
        raise WireError("A result holds one structured event.", ErrorCode.MALFORMED_BODY)
    event = read_event(frames[0].payload)
    if event["type"] not in TERMINAL:
        raise WireError("A result's event must be a terminal one.", ErrorCode.MALFORMED_BODY)
    return event


def read_event(payload: bytes) -> JsonObject:
    """Return an event that a server sent; raise ``WireError`` where it is none."""
    try:
        event = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise WireError("An event must be a JSON object with a type.", ErrorCode.MALFORMED_BODY)
    return event
