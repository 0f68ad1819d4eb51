"""Checks of single values in a client's JSON, with the service's error codes.

A check takes a value and its path (``session.audio.output.speed``) and returns the value to keep, or raises
``ProtocolError``. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError, ProtocolError

Check = Callable[[Any, str], Any]

_MAX_METADATA, _MAX_KEY_CHARS, _MAX_VALUE_CHARS = 16, 64, 512
_MAX_ID_CHARS: Final = 512

VOICES: Final = (
    "alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar", "heart",
)  # fmt: skip
"""Names that are accepted. The engine has one voice, which answers to all of them."""


def refuse(code: str | None, message: str, param: str | None) -> ProtocolError:
    """Return the error that tells a client what is wrong with ``param``."""
    error = ProtocolError(message, code=code, param=param)
    # Some of the service's errors have no code at all.
    error.code = code or ""
    return error


def wrong_type(path: str, wanted: str, value: Any) -> ProtocolError:
    """Return the error for a value of the wrong JSON type."""
    return refuse(
        "invalid_type",
        f"Invalid type for '{path}': expected {wanted}, but got {_json_type(value)} instead.",
        path,
    )


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"


def text(longest: int | None = None) -> Check:
    """Return a check for strings."""

    def check(value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise wrong_type(path, "a string", value)
        if longest is not None and len(value) > longest:
            raise refuse(
                "string_above_max_length",
                f"Invalid '{path}': string too long. Expected a string with maximum length {longest}, "
                f"but got a string with length {len(value)} instead.",
                path,
            )
        return value

    return check


def boolean(value: Any, path: str) -> bool:
    """Check a boolean."""
    if not isinstance(value, bool):
        raise wrong_type(path, "a boolean", value)
    return value


def number(low: float, high: float, *, whole: bool = False) -> Check:
    """Return a check for numbers from ``low`` to ``high``."""
    kind = "integer" if whole else "decimal"

    def check(value: Any, path: str) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise wrong_type(path, f"{'an' if whole else 'a'} {kind}", value)
        if not low <= value:
            raise refuse(
                f"{kind}_below_min_value",
                f"Invalid '{path}': {kind} below minimum value. Expected a value >= {low:g}, but got "
                f"{value} instead.",
                path,
            )
        if not value <= high:
            raise refuse(
                f"{kind}_above_max_value",
                f"Invalid '{path}': {kind} above maximum value. Expected a value <= {high:g}, but got "
                f"{value} instead.",
                path,
            )
        return value

    return check


def one_of(*choices: Any) -> Check:
    """Return a check for a choice among strings."""

    def check(value: Any, path: str) -> Any:
        if not isinstance(value, str):
            raise wrong_type(path, "a string", value)
        if value not in choices:
            raise invalid_value(value, choices, path)
        return value

    return check


def invalid_value(value: Any, choices: Sequence[Any], path: str) -> ProtocolError:
    """Return the error for a value that is none of ``choices``."""
    if len(choices) == 1:
        return refuse("invalid_value", f"Invalid value: {value!r}. Value must be {choices[0]!r}.", path)
    listed = f"{', '.join(repr(choice) for choice in choices[:-1])} and {choices[-1]!r}"
    return refuse("invalid_value", f"Invalid value: {value!r}. Supported values are: {listed}.", path)


def nullable(check: Check) -> Check:
    """Return a check that also lets ``null`` pass."""

    def either(value: Any, path: str) -> Any:
        return None if value is None else check(value, path)

    return either


def fields(checks: Mapping[str, Check], *, required: Sequence[str] = ()) -> Check:
    """Return a check for objects with known fields; the result keeps the client's order."""

    def check(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong_type(path, "an object", value)
        for name in value:
            if name not in checks:
                raise refuse("unknown_parameter", f"Unknown parameter: '{path}.{name}'.", f"{path}.{name}")
        for name in required:
            if name not in value:
                raise missing(f"{path}.{name}")
        return {name: checks[name](inner, f"{path}.{name}") for name, inner in value.items()}

    return check


def missing(path: str) -> ProtocolError:
    """Return the error for a field that must be there."""
    return refuse("missing_required_parameter", f"Missing required parameter: '{path}'.", path)


def any_object(value: Any, path: str) -> dict[str, Any]:
    """Check that a value is an object, whatever is in it."""
    if not isinstance(value, dict):
        raise wrong_type(path, "an object", value)
    return value


def modalities(value: Any, path: str) -> list[str]:
    """Check ``output_modalities``: text or audio, never both."""
    if not isinstance(value, list):
        raise wrong_type(path, "an array", value)
    if value not in (["text"], ["audio"]):
        raise refuse(
            "invalid_value",
            f"Invalid modalities: {value!r}. Supported combinations are: ['text'] and ['audio'].",
            path,
        )
    return list(value)


def audio_format(value: Any, path: str) -> dict[str, Any]:
    """Check an audio format object and return it complete."""
    if not isinstance(value, dict):
        raise wrong_type(path, "an object", value)
    checked = fields({"type": text(), "rate": number(24_000, 24_000, whole=True)})(value, path)
    if "type" not in checked:
        raise missing(f"{path}.type")
    try:
        return AudioFormat.parse(checked["type"]).to_ga()
    except AudioFormatError:
        raise invalid_value(checked["type"], [one.value for one in AudioFormat], f"{path}.type") from None


def voice(value: Any, path: str) -> Any:
    """Check a voice: a known name, or an object with the ``id`` of one."""
    if isinstance(value, dict):
        return fields({"id": one_of(*VOICES)}, required=["id"])(value, path)
    return one_of(*VOICES)(value, path)


def max_tokens(value: Any, path: str) -> int | str:
    """Check ``max_output_tokens``: 1 to 4096, or ``"inf"``."""
    if value == "inf":
        return "inf"
    result: int = number(1, 4096, whole=True)(value, path)
    return result


def metadata(value: Any, path: str) -> dict[str, str]:
    """Check metadata: at most 16 pairs of strings, keys to 64 and values to 512 characters."""
    pairs = any_object(value, path)
    if len(pairs) > _MAX_METADATA:
        raise refuse(
            "object_above_max_properties",
            f"Invalid '{path}': too many properties. Expected at most {_MAX_METADATA}, but got {len(pairs)}.",
            path,
        )
    for key, inner in pairs.items():
        text(_MAX_KEY_CHARS)(key, f"{path} key")
        text(_MAX_VALUE_CHARS)(inner, f"{path}.{key}")
    return pairs


def item_id(value: Any, path: str) -> str:
    """Check an id chosen by the client."""
    name: str = text(_MAX_ID_CHARS)(value, path)
    if not name:
        raise refuse("invalid_value", f"Invalid '{path}': expected a string that is not empty.", path)
    return name
