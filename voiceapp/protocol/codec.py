"""Bytes to events and back.

Decoding checks the fields that an event must have, keeps those that it does not know, and answers an
unknown type with ``UnknownEvent``. A ``DecodeError`` carries the service's own error code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from voiceapp.errors import DecodeError
from voiceapp.protocol import repair
from voiceapp.protocol.events import (
    CLIENT_EVENTS,
    EXTRA,
    SERVER_EVENTS,
    Error,
    Event,
    ResponseOutputAudioDelta,
    UnknownEvent,
)
from voiceapp.types import JsonObject

MAX_DEPTH = 100
"""Deepest nesting that is read: copying and writing take several Python frames for each level."""

_AUDIO_DELTA = msgspec.json.Decoder(ResponseOutputAudioDelta)
_AUDIO_DELTA_MARK = f'"{ResponseOutputAudioDelta.type_name()}"'
_AUDIO_DELTA_MARK_BYTES = _AUDIO_DELTA_MARK.encode()
_OBJECT = msgspec.json.Decoder(JsonObject)
_KNOWN: dict[type[Event], frozenset[str]] = {
    # A client that sends the name of our own place for extras must not fill it: what lies there replaces
    # fields that were checked.
    cls: frozenset({"type", *cls.__struct_encode_fields__} - {EXTRA})
    for cls in (*CLIENT_EVENTS.values(), *SERVER_EVENTS.values())
}


def decode_fields(data: str | bytes) -> JsonObject:
    """Return a message's JSON object; raise ``DecodeError`` where it is none or has no ``type``.

    The error names the message's ``event_id``, where it has one.
    """
    try:
        fields = _OBJECT.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(
            f"Invalid event: failed to parse JSON value. {type(error).__name__}", code="invalid_json"
        ) from None
    _check(data, fields)
    return fields


def event_id_of(fields: JsonObject) -> str | None:
    """Return the id that a message's sender gave it; ``None`` where it has none that is a string."""
    given = fields.get("event_id")
    return given if isinstance(given, str) else None


def _check(data: str | bytes, fields: JsonObject) -> None:
    """Raise ``DecodeError``, which names the message's ``event_id``, where a JSON object is no event."""
    if _too_deep(data, fields):
        sentence = f"Invalid event: objects and arrays may be nested {MAX_DEPTH} deep at most."
        raise _no_event(fields, sentence, code="invalid_json")
    if "type" not in fields:
        sentence = "Missing required parameter: 'type'."
        raise _no_event(fields, sentence, code="missing_required_parameter", param="type")
    if not isinstance(fields["type"], str):
        sentence = "Invalid type for 'type': expected a string."
        raise _no_event(fields, sentence, code="invalid_type", param="type")


def _no_event(fields: JsonObject, sentence: str, *, code: str, param: str | None = None) -> DecodeError:
    fault = DecodeError(sentence, code=code, param=param)
    fault.event_id = event_id_of(fields)
    return fault


def _too_deep(data: str | bytes, fields: JsonObject) -> bool:
    """Whether objects and arrays lie deeper in one another than ``MAX_DEPTH``."""
    opened = (
        data.count("{") + data.count("[") if isinstance(data, str) else data.count(b"{") + data.count(b"[")
    )
    if opened <= MAX_DEPTH:
        return False
    return nested_too_deep(fields, MAX_DEPTH)


def nested_too_deep(fields: JsonObject, max_depth: int, max_containers: float = math.inf) -> bool:
    """Whether objects and arrays lie deeper in one another than that, or are more in all than that."""
    level: list[Any] = [fields]
    seen = 0
    for _ in range(max_depth):
        inner: list[Any] = []
        for value in level:
            values = value.values() if isinstance(value, dict) else value
            inner += [one for one in values if isinstance(one, dict | list)]
        seen += len(inner)
        if not inner or seen > max_containers:
            return seen > max_containers
        level = inner
    return True


def decode_server(data: str | bytes) -> tuple[Event | UnknownEvent, str]:
    """Decode what a service sent (GA names and shapes); return the event and its JSON.

    The JSON is the text that came, but where that is none, or numbers itself with ``seq``, which is the
    page's socket's own. Audio deltas come without their JSON: nobody reads it.
    """
    if isinstance(data, str):
        found = data.find(_AUDIO_DELTA_MARK, 0, 200)
    else:
        found = data.find(_AUDIO_DELTA_MARK_BYTES, 0, 200)
    if found >= 0:
        # Nine of ten server events on a live call are these, so they skip the generic mapping.
        try:
            return _AUDIO_DELTA.decode(data), ""
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        fields = decode_fields(data)
        text = data if isinstance(data, str) else data.decode()
    except DecodeError:
        fields = decode_server_fields(data)
        text = ""
    if "seq" in fields:
        del fields["seq"]
        text = ""
    return server_event(fields), text or encode_fields(fields).decode()


def decode_server_fields(data: str | bytes) -> JsonObject:
    """Return the JSON object of what a service sent, mended where that is safe; raise ``DecodeError``."""
    try:
        return decode_fields(data)
    except DecodeError:
        fields = repair.repaired(data)
        if fields is None or not isinstance(fields.get("type"), str):
            raise
        return fields


def server_event(fields: JsonObject) -> Event | UnknownEvent:
    """Turn a JSON object into a server event; what cannot be read of it is left out.

    Raises ``DecodeError`` where the event is of no use without that.
    """
    fields = repair.readable(fields)
    for _ in range(len(fields) + 1):
        try:
            return _event(fields, SERVER_EVENTS)
        except DecodeError as error:
            odd = (error.param or "").split(".")[0].split("[")[0]
            if (mended := repair.with_standard_base64(fields)) is not fields:
                fields = mended
                continue
            if error.code == "missing_required_parameter" and odd in repair.REPLACEMENTS:
                fields = {**fields, odd: repair.REPLACEMENTS[odd]}
            elif error.code == "missing_required_parameter" or odd not in fields or odd == "type":
                raise
            else:
                fields = {name: value for name, value in fields.items() if name != odd}
    return _event(fields, SERVER_EVENTS)


def client_event(fields: JsonObject) -> Event | UnknownEvent:
    """Turn a JSON object into a client event."""
    return _event(fields, CLIENT_EVENTS)


def _event(fields: JsonObject, types: Mapping[str, type[Event]]) -> Event | UnknownEvent:
    cls = types.get(fields["type"])
    if cls is None:
        return UnknownEvent(type=fields["type"], fields=fields)
    unknown = fields.keys() - _KNOWN[cls]
    if unknown:
        fields = {**fields, EXTRA: {name: fields[name] for name in fields if name in unknown}}
    try:
        return msgspec.convert(fields, cls)
    except msgspec.ValidationError as error:
        raise explain(str(error)) from None


_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_WRONG_TYPE = re.compile(r"Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_TOO_LONG = re.compile(r"Expected `str` of length <= (?P<most>\d+)(?: - at `\$\.?(?P<path>[^`]*)`)?")
_JSON_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
    "bytes": "a base64 string",
}


def explain(reason: str) -> DecodeError:
    """Turn msgspec's sentence into the service's code, message and param."""
    if found := _MISSING.search(reason):
        name = ".".join(part for part in (found["path"], found["name"]) if part)
        return DecodeError(
            f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
        )
    if found := _TOO_LONG.search(reason):
        name = found["path"] or ""
        return DecodeError(
            f"Invalid '{name}': string too long. Expected a string with maximum length {found['most']}.",
            code="string_above_max_length",
            param=name,
        )
    if found := _WRONG_TYPE.search(reason):
        name = found["path"] or ""
        want = " or ".join(_JSON_NAMES.get(part.strip(), part.strip()) for part in found["want"].split("|"))
        got = _JSON_NAMES.get(found["got"], found["got"])
        return DecodeError(
            f"Invalid type for '{name}': expected {want}, but got {got} instead.",
            code="invalid_type",
            param=name,
        )
    if "base64" in reason:
        return DecodeError(
            "Invalid 'audio'. Expected base64-encoded audio bytes but got an invalid value.",
            code="invalid_value",
            param="audio",
        )
    return DecodeError("Invalid event.", code="invalid_event")


def to_fields(event: Event | UnknownEvent) -> JsonObject:
    """Return an event as a JSON object, ``type`` first, unknown fields last."""
    if isinstance(event, UnknownEvent):
        return dict(event.fields)
    fields: JsonObject = msgspec.to_builtins(event)
    fields.update(fields.pop(EXTRA, {}))
    return fields


def encode(event: Event | UnknownEvent) -> bytes:
    """Return an event as JSON (GA names and shapes)."""
    if isinstance(event, Event) and not event.extra:
        return as_json(event)
    return as_json(to_fields(event))


def encode_fields(fields: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes."""
    return as_json(fields)


def as_json(value: Any) -> bytes:
    """Return a value as JSON, whatever halves of characters are in it."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Halves of characters, as a tool or a chat service may bring them, become "?": no reader knows any.
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode("utf-8", "replace")


def error_event(
    event_id: str,
    *,
    code: str | None,
    message: str,
    kind: str = "invalid_request_error",
    param: str | None = None,
    client_event_id: str | None = None,
) -> Error:
    """Return the Realtime ``error`` event; ``client_event_id`` names the client event at fault."""
    return Error(
        event_id=event_id,
        error={
            "type": kind,
            "code": code,
            "message": message,
            "param": param,
            "event_id": client_event_id,
        },
    )
