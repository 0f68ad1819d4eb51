"""Answers that must fit a JSON Schema; pure."""

from __future__ import annotations

import json
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from voiceapp.errors import TextEngineError

Object = dict[str, Any]

# A regular expression of somebody else's can take for ever, and holds up everybody while it does.
_NOT_CHECKED: Final = frozenset({"pattern", "patternProperties", "format"})
MAX_DEPTH: Final = 32


def check_schema(schema: Object) -> None:
    """Raise ``TextEngineError`` (``invalid_request``) where a schema is none."""
    try:
        Draft202012Validator.check_schema(_without_patterns(schema))
    except (SchemaError, RecursionError) as error:
        told = error.message if isinstance(error, SchemaError) else "it is nested too deeply"
        raise TextEngineError(
            f"structured_schema is no JSON Schema: {told}", code="invalid_request"
        ) from None


def read(text: str, schema: Object) -> tuple[Object | None, str]:
    """Return (the object, "") where a text is JSON of the schema, else (``None``, what is wrong).

    ``pattern`` and ``format`` are not checked. References outside the schema are never fetched.
    """
    try:
        value = json.loads(_unfenced(text))
        if not isinstance(value, dict):
            return None, "the answer is no JSON object"
        validator = Draft202012Validator(_without_patterns(schema), registry=Registry())
        fault = next(validator.iter_errors(value), None)
    except ValueError:
        return None, "the answer is no JSON"
    except (Unresolvable, RecursionError):
        return None, "the schema refers to what is not in it"
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
