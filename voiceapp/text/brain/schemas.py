"""Schemas that strangers wrote, read without trust: any JSON may stand anywhere in them; pure.

Whatever they say, reading one takes a bounded time and raises nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from voiceapp.types import JsonObject

MAX_OPTIONS: Final = 200
"""Values of an ``enum`` that are looked for in a sentence."""
_MAX_MADE: Final = 10_000
"""Values, and characters of text, that stand in for what was not said; larger ones are not made."""
_MAX_DEPTH: Final = 16
_MAX_CHECKED_CHARS: Final = 200
"""Characters of a text, and of the pattern that it is held against."""


def properties_of(schema: Mapping[str, Any]) -> JsonObject:
    """Return the properties by name; what is no schema among them is an empty one."""
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: detail if isinstance(detail, dict) else {} for name, detail in found.items()}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the names that must be there."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def options_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the first of the values that are allowed, ``None`` where all are."""
    found = schema.get("enum")
    return found[:MAX_OPTIONS] if isinstance(found, list) else None


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return the JSON type that is wanted, "string" where none is named."""
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return str(kind)[:20]


def placeholder(schema: Any) -> Any:
    """Return a value that is valid for ``schema`` where nothing better is known.

    One that would be larger than ``_MAX_MADE`` is cut, and then is not valid.
    """
    return _Making().value(schema, 0)


class _Making:
    def __init__(self) -> None:
        self._room = _MAX_MADE

    def value(self, schema: Any, depth: int) -> Any:
        self._room -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return ""
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return schema["enum"][0]
        if "default" in schema:
            return schema["default"]
        match kind_of(schema):
            case "integer" | "number":
                return _number(schema, "minimum", 0)
            case "boolean":
                return False
            case "array":
                return self._several(schema, depth)
            case "object":
                wanted = properties_of(schema)
                return {
                    name: self.value(wanted.get(name, {}), depth + 1)
                    for name in required_of(schema)
                    if self._room > 0
                }
            case "null":
                return None
            case _:
                return "x" * self._taken(_number(schema, "minLength", 0))

    def _several(self, schema: JsonObject, depth: int) -> list[Any]:
        made: list[Any] = []
        for _ in range(self._taken(_number(schema, "minItems", 0))):
            if self._room <= 0:
                break
            made.append(self.value(schema.get("items"), depth + 1))
        return made

    def _taken(self, wanted: float) -> int:
        taken = max(0, min(int(wanted), self._room))
        self._room -= taken
        return taken


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value that was found is within the schema's bounds; its type is right already.

    A text that cannot be held against its ``pattern`` in a short time does not fit.
    """
    match value:
        case bool():
            return True
        case int() | float():
            return bool(
                value >= _number(schema, "minimum", value)
                and value <= _number(schema, "maximum", value)
                and value > _number(schema, "exclusiveMinimum", -math.inf)
                and value < _number(schema, "exclusiveMaximum", math.inf)
            )
        case str():
            size = len(value)
            if not _number(schema, "minLength", 0) <= size <= _number(schema, "maxLength", size):
                return False
            pattern = schema.get("pattern")
            return not isinstance(pattern, str) or _matches(pattern, value)
        case list():
            items = schema.get("items")
            return all(fits(one, items if isinstance(items, dict) else {}) for one in value)
    return True


def _matches(pattern: str, text: str) -> bool:
    """Whether a text has a pattern in it that is cheap to look for.

    Time grows with every place where a search may go two ways, exponentially where such places are
    repeated: two of them and two groups, none repeated, are allowed.
    """
    if len(pattern) > _MAX_CHECKED_CHARS or len(text) > _MAX_CHECKED_CHARS:
        return False
    plain = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "x", pattern, flags=re.S)
    ways = len(re.findall(r"[*+?]|\{\d*,\d*\}", plain.replace("(?:", "(")))
    if ways > 2 or plain.count("(") > 2 or re.search(r"\)\s*[*+?{]", plain):
        return False
    try:
        return re.search(pattern, text) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _number(schema: Mapping[str, Any], name: str, missing: float) -> float:
    found = schema.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return missing
    return found if math.isfinite(found) else missing
