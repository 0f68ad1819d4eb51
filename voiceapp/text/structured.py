"""Answers that must fit a JSON Schema.

Schemas are strangers', and so may answers be: a few lines of either can keep a validator busy for years. So
all of it runs in a thread, within a limit of that thread's own time, and without what cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from voiceapp.errors import TextRequestError
from voiceapp.types import JsonObject, Part

# A regular expression of somebody else's can take for ever, and holds up everybody while it does.
_NOT_CHECKED: Final = frozenset(
    {"pattern", "patternProperties", "format", "unevaluatedProperties", "unevaluatedItems"}
)
# Never part of a check, but places to which a reference could lead: what stands there was not looked at.
_NEVER_CHECKED: Final = frozenset({"default", "examples", "$schema"})
_NAMED: Final = ("properties", "$defs", "definitions", "dependentSchemas")
MAX_DEPTH: Final = 32
MAX_TEXT_CHARS: Final = 1_000_000
CHECK_S: Final = 2.0
"""CPU time that checking a schema, or an answer, may take; both take milliseconds in earnest."""
# Values that are allowed, each as one text: no reference can lead into what they hold.
_TEXTS: Final = "texts of the values allowed"


def schema_threads() -> ThreadPoolExecutor:
    """Return threads to check schemas in: who keeps them busy delays only others who wait for that."""
    return ThreadPoolExecutor(2, thread_name_prefix="schema")


threads: Final = Part[ThreadPoolExecutor]("threads for schemas")
_Result = TypeVar("_Result")


_UNCHECKABLE: Final = (
    Unresolvable, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What the package raises for schemas that it cannot follow."""


class _TooLong(Exception):
    """Checking was given up."""


async def _checked(check: Callable[..., _Result], *arguments: Any) -> _Result:
    return await asyncio.get_running_loop().run_in_executor(threads(), check, *arguments)


async def check_schema(schema: JsonObject) -> None:
    """Raise ``TextEngineError`` (``invalid_request``) where a schema is none."""
    wrong = await _checked(_schema_fault, schema)
    if wrong:
        raise TextRequestError(f"structured_schema is no JSON Schema: {wrong}", code="invalid_request")


async def read(text: str, schema: JsonObject) -> tuple[JsonObject | None, str]:
    """Return (the object, "") where a text is JSON of the schema, else (``None``, what is wrong).

    ``pattern``, ``format`` and ``unevaluated…`` are not checked. References outside the schema are never
    fetched.
    """
    return await _checked(_read, text, schema)


def _schema_fault(schema: JsonObject) -> str:
    try:
        fault = next(_META.iter_errors(_checkable(schema, texts=False)), None)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        return str(error)
    return "" if fault is None else fault.message[:500]


def _read(text: str, schema: JsonObject) -> tuple[JsonObject | None, str]:
    if len(text) > MAX_TEXT_CHARS:
        return None, "the answer is too long"
    try:
        value = json.loads(_unfenced(text), parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None, "the answer is no JSON"
    if not isinstance(value, dict):
        return None, "the answer is no JSON object"
    _limit.until = time.thread_time() + CHECK_S
    try:
        fault = next(_Checker(_checkable(schema, texts=True), registry=Registry()).iter_errors(value), None)
    except _TooLong:
        return None, "the schema takes too long to check"
    except _UNCHECKABLE:
        # References that lead nowhere, in a circle, or to what is no schema; numbers beyond all bounds.
        return None, "the schema refers to what is not in it"
    if fault is not None:
        where = "/".join(str(step) for step in fault.absolute_path)
        return None, f"{where or 'the answer'}: {fault.message[:200]}"
    return value, ""


def _no_number(name: str) -> float:
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits[:40])
    return value


def _unfenced(text: str) -> str:
    """Return what stands in a code fence, which models like to put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


# -- schemas without what could not be checked in time ----------------------------------------------------


def _checkable(node: Any, *, texts: bool, depth: int = 0) -> Any:
    """Return a schema without what is never checked; with ``texts``, allowed values as texts."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(node, list):
        return [_checkable(inner, texts=texts, depth=depth + 1) for inner in node]
    if not isinstance(node, dict):
        return node
    kept: JsonObject = {}
    for name, inner in node.items():
        if name in _NAMED and isinstance(inner, dict):
            # Names of its own choice, "pattern" among them.
            kept[name] = {
                key: _checkable(value, texts=texts, depth=depth + 2) for key, value in inner.items()
            }
        elif name in ("enum", "const"):
            values = inner if name == "enum" and isinstance(inner, list) else [inner]
            kept[f"{_TEXTS}: {name}" if texts else name] = (
                [_canonical(one) for one in values] if texts else inner
            )
        elif name == "type" and isinstance(inner, list) and len(inner) > len(_TYPES):
            raise ValueError("type names more types than there are")
        elif name not in _NOT_CHECKED and name not in _NEVER_CHECKED:
            kept[name] = _checkable(inner, texts=texts, depth=depth + 1)
    return kept


def _canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: 1.0 is 1."""
    return json.dumps(_whole_numbers(value), sort_keys=True)


def _whole_numbers(value: Any) -> Any:
    match value:
        case float() if math.isfinite(value) and value == int(value):
            return int(value)
        case list():
            return [_whole_numbers(one) for one in value]
        case dict():
            return {name: _whole_numbers(one) for name, one in value.items()}
    return value


# -- keywords, each of which looks at the clock -----------------------------------------------------------


def _allowed(
    validator: Any, texts: list[str], instance: Any, schema: JsonObject
) -> Iterator[ValidationError]:
    if _canonical(instance) not in texts:
        yield ValidationError(f"{_canonical(instance)[:80]} is not one of {', '.join(texts)[:100]}")


def _unique(validator: Any, wanted: Any, instance: Any, schema: JsonObject) -> Iterator[ValidationError]:
    """In one pass: the library compares each with each."""
    if wanted and isinstance(instance, list) and len({_canonical(one) for one in instance}) < len(instance):
        yield ValidationError("there are equal ones among what must be unique")


def _additional(validator: Any, wanted: Any, instance: Any, schema: JsonObject) -> Any:
    # Beside patterns, which are not looked for, nobody knows which ones are additional.
    if "patternProperties" in schema:
        return ()
    return Draft202012Validator.VALIDATORS["additionalProperties"](validator, wanted, instance, schema)


def _on_the_clock(check: Any) -> Callable[..., Any]:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if time.thread_time() > _limit.until:
            raise _TooLong
        return check(validator, value, instance, schema)

    return checked


_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_META: Final = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_Checker: Final[Any] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        **{
            name: _on_the_clock(check)
            for name, check in Draft202012Validator.VALIDATORS.items()
            if name not in _NOT_CHECKED
        },
        **{name: _on_the_clock(lambda *_: None) for name in _NOT_CHECKED},
        "additionalProperties": _on_the_clock(_additional),
        "uniqueItems": _on_the_clock(_unique),
        f"{_TEXTS}: enum": _on_the_clock(_allowed),
        f"{_TEXTS}: const": _on_the_clock(_allowed),
    },
)
_limit = threading.local()
