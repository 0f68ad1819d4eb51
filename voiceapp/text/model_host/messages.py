"""Messages between the app and a model host: JSON-RPC without its ``jsonrpc`` member; pure.

The notifications are those of the contract ``client-notification``.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from voiceapp.errors import DecodeError
from voiceapp.types import JsonObject

NOT_INITIALIZED: Final = (-32002, "Not initialized")
ALREADY_INITIALIZED: Final = (-32600, "Already initialized")
UNKNOWN_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602


class Request(msgspec.Struct, frozen=True):
    """Something that wants an answer."""

    id: int | str
    method: str
    params: Any = None


class Answer(msgspec.Struct, frozen=True):
    """An answer to a request of ours: one of the two."""

    id: int | str
    result: Any = None
    error: Any = None


class StreamMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """``model/streamMetadata``: headers with which the service behind the host answered."""

    thread_id: str
    turn_id: str
    request_id: str
    metadata: dict[str, str]


class StreamEvent(msgspec.Struct, frozen=True, rename="camel"):
    """``model/streamEvent``: one Responses event, as it came."""

    thread_id: str
    turn_id: str
    request_id: str
    event: Any


class RequestError(msgspec.Struct, frozen=True):
    """Why a host could not bring a reply."""

    message: str
    type: str
    code: str | None = None
    param: str | None = None


class RequestFailed(msgspec.Struct, frozen=True, rename="camel"):
    """``model/requestFailed``: there will be no reply, and no second try."""

    thread_id: str
    turn_id: str
    request_id: str
    error: RequestError


class Initialized(msgspec.Struct, frozen=True):
    """``initialized``: the host is ready to be asked."""


ModelNotification: TypeAlias = StreamMetadata | StreamEvent | RequestFailed
_Kind = TypeVar("_Kind")
Message: TypeAlias = Request | Answer | Initialized | ModelNotification

_NOTIFICATIONS: Final[dict[str, type[ModelNotification]]] = {
    "model/streamMetadata": StreamMetadata,
    "model/streamEvent": StreamEvent,
    "model/requestFailed": RequestFailed,
}


def read(text: str) -> Message:
    """Return a message; raise ``DecodeError`` for one that is none, or a notification that nobody knows."""
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DecodeError("The message is no JSON.") from None
    if not isinstance(fields, dict):
        raise DecodeError("The message is no JSON object.", code="invalid_event")
    method = fields.get("method")
    if "id" in fields:
        # Whatever carries an id is no notification.
        return _converted(fields, Request) if isinstance(method, str) else _converted(fields, Answer)
    if method == "initialized":
        return Initialized()
    known = _NOTIFICATIONS.get(method) if isinstance(method, str) else None
    if known is None:
        raise DecodeError(f"There is no notification {str(method)[:60]!r}.", code="invalid_event")
    return _converted(fields.get("params"), known)


def _converted(fields: Any, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(f"The message does not fit: {error}", code="invalid_event") from None


def request(request_id: int, method: str, params: JsonObject) -> str:
    """Return a request as text."""
    return _text({"id": request_id, "method": method, "params": params})


def result(request_id: int | str, value: JsonObject) -> str:
    """Return an answer that went well as text."""
    return _text({"id": request_id, "result": value})


def refusal(request_id: int | str, code: int, message: str) -> str:
    """Return an answer that did not go well as text."""
    return _text({"id": request_id, "error": {"code": code, "message": message}})


def notification(method: str, params: JsonObject | None = None) -> str:
    """Return a notification as text; hosts send these."""
    return _text({"method": method, **({} if params is None else {"params": params})})


def _text(fields: JsonObject) -> str:
    return json.dumps(fields, ensure_ascii=False)
