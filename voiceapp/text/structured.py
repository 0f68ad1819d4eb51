"""Answers that must fit a JSON Schema; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from voiceapp.errors import TextEngineError

Object = dict[str, Any]

# A regular expression of somebody else's can take for ever, and holds up everybody while it does.
_NOT_CHECKED: Final = frozenset({"pattern", "patternProperties", "format"})
MAX_DEPTH: Final = 32
MAX_STEPS: Final = 200_000
"""Steps of checking one answer, about a second of them: a short schema can refer to itself without end."""

_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


class _TooMuch(Exception):
    """The answer takes more than ``MAX_STEPS`` to check."""


_steps: ContextVar[int] = ContextVar("steps")


def check_schema(schema: Object) -> None:
    """Raise ``TextEngineError`` (``invalid_request``) where a schema is none; for a thread, as ``read``."""
    try:
        Draft202012Validator.check_schema(_without_patterns(schema))
    except (SchemaError, RecursionError) as error:
        told = error.message if isinstance(error, SchemaError) else "it is nested too deeply"
        raise TextEngineError(
            f"structured_schema is no JSON Schema: {told}", code="invalid_request"
        ) from None


def read(text: str, schema: Object) -> tuple[Object | None, str]:
    """Return (the object, "") where a text is JSON of the schema, else (``None``, what is wrong).

    ``pattern`` and ``format`` are not checked. References outside the schema are never fetched. Takes up to
    a second where schema and answer are large: not for the event loop.
    """
    _steps.set(0)
    try:
        value = json.loads(_unfenced(text))
        if not isinstance(value, dict):
            return None, "the answer is no JSON object"
        validator = _Validator(_without_patterns(schema), registry=Registry())
        fault = next(validator.iter_errors(value), None)
    except ValueError:
        return None, "the answer is no JSON"
    except (Unresolvable, RecursionError):
        return None, "the schema refers to what is not in it"
    except _TooMuch:
        return None, "the answer and the schema are too large to be checked"
    if fault is not None:
        where = "/".join(str(step) for step in fault.absolute_path)
        return None, f"{where or 'the answer'}: {fault.message[:200]}"
    return value, ""


def _unfenced(text: str) -> str:
    """Return what stands in a code fence, which models like to put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    """Return a keyword's check that counts about as many steps as it makes."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        parts = len(instance) if isinstance(instance, dict | list) else 1
        options = len(value) if isinstance(value, dict | list) else 1
        # These two compare each with each.
        factor = {"uniqueItems": parts, "enum": options}.get(name, 1)
        steps = _steps.get() + parts * factor + options
        if steps > MAX_STEPS:
            raise _TooMuch
        _steps.set(steps)
        yield from keyword(validator, value, instance, schema) or ()

    return check


_Validator: Final = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _counted(name, keyword) for name, keyword in Draft202012Validator.VALIDATORS.items()},
)


def _without_patterns(node: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(node, list):
        return [_without_patterns(inner, depth + 1) for inner in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for name, inner in node.items():
        if name in ("properties", "$defs", "definitions", "dependentSchemas") and isinstance(inner, dict):
            # Names of its own choice, "pattern" among them.
            kept[name] = {key: _without_patterns(value, depth + 2) for key, value in inner.items()}
        elif name in ("enum", "const", "default", "examples"):
            kept[name] = inner
        elif name not in _NOT_CHECKED:
            kept[name] = _without_patterns(inner, depth + 1)
    return kept
