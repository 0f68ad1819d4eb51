"""Reading what services break: JSON that is none, and events with odd members; pure.

A service's event is used as far as it can be read: what is lost with it, such as the end of an answer, is
worse than what it says wrongly. Clients' events are not mended: they get an error that says what is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from voiceapp.types import JsonObject

MAX_REPAIRED_CHARS: Final = 256 * 1024
"""Longest text that is mended; longer ones are audio, whose loss is heard and over."""
MAX_REPAIRED_DEPTH: Final = 100
"""Deepest nesting that is mended; it is counted before anything is parsed."""
_BRACKET: Final = re.compile(r"[\[\]{}]")


def repaired(data: str | bytes) -> JsonObject | None:
    """Return a JSON object from text with a BOM, raw control characters, half surrogates, ``NaN`` or numbers
    beyond all bounds; ``None`` where it is no object, or too long or too deep to be mended.

    Half surrogates become U+FFFD, and numbers that JSON does not have null.
    """  # noqa: D205
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    if len(text) > MAX_REPAIRED_CHARS or _depth(text) > MAX_REPAIRED_DEPTH:
        return None
    try:
        decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)
        fields, _ = decoder.raw_decode(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return _whole(fields) if isinstance(fields, dict) else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _depth(text: str) -> int:
    """Return the deepest nesting that the text can have: brackets in strings count as well."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _whole(value: Any) -> Any:
    """Return JSON without half surrogates, which no text on the wire can hold."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {_whole(name): _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return value


_SCALAR: Final = (str, int, float)
INSIDE: Final[Mapping[str, Mapping[str, type | tuple[type, ...]]]] = {
    "item": {
        **dict.fromkeys(
            ("id", "type", "role", "status", "call_id", "name", "arguments", "server_label"), str
        ),
        "content": list,
    },
    "response": {
        **dict.fromkeys(("id", "status", "conversation_id"), str),
        **dict.fromkeys(("status_details", "usage", "metadata"), dict),
        "output": list,
    },
    "error": dict.fromkeys(("type", "code", "message", "param", "event_id"), _SCALAR),
}
"""What is read of those parts of a service's events that are kept as they are; a list holds objects."""


REPLACEMENTS: Final[Mapping[str, Any]] = {"event_id": "", "session": {}, "response": {}}
"""Members without which an event still says that a session or a response has begun, or ended."""


_STANDARD: Final = str.maketrans("-_", "+/", "= \t\r\n")


def with_standard_base64(fields: JsonObject) -> JsonObject:
    """Return an event whose ``delta`` of sound is base64 as JSON readers take it (RFC 4648, 4).

    It may have come with line breaks, without padding, or in the alphabet of addresses (RFC 4648, 5).
    """
    delta = fields.get("delta")
    if fields.get("type") not in AUDIO_DELTAS or not isinstance(delta, str):
        return fields
    text = delta.translate(_STANDARD)
    # One character more than whole bytes says nothing.
    text = text[: -1 if len(text) % 4 == 1 else None]
    text += "=" * (-len(text) % 4)
    return fields if text == delta else {**fields, "delta": text}


AUDIO_DELTAS: Final = frozenset({"response.output_audio.delta", "response.audio.delta"})
"""The events of sound, in GA's name and the preview's."""


def readable(fields: JsonObject) -> JsonObject:
    """Return an event whose parts hold only what can be read of them: an odd member costs itself."""
    for holder, kinds in INSIDE.items():
        if holder not in fields:
            continue
        inner = fields[holder]
        cleaned = _readable_part(inner, kinds) if isinstance(inner, dict) else {}
        if cleaned is not inner:
            fields = {**fields, holder: cleaned}
    return fields


def _readable_part(inner: JsonObject, kinds: Mapping[str, type | tuple[type, ...]]) -> JsonObject:
    kept: JsonObject = {}
    for name, value in inner.items():
        kind = kinds.get(name)
        if kind is None or value is None:
            kept[name] = value
        elif isinstance(value, kind):
            kept[name] = _objects_of(value) if isinstance(value, list) else value
    return kept if kept != inner else inner


def _objects_of(values: list[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict)]
