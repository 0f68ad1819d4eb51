"""The arguments of a function as Realtime services take them: any JSON Schema made to fit; pure.

A service refuses a whole session for one function whose schema it does not like. It wants an object with
properties and nothing to choose from at the top, ``items`` of every array, and keywords that mean what JSON
Schema says. What is made to fit lets through more than before, never less: whoever runs a call checks its
arguments by the schema as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from voiceapp.types import JsonObject

MAX_DEPTH: Final = 24
"""Levels of a schema; what lies deeper may be anything."""
MAX_NODES: Final = 4_000
"""Schemas of one function: models read all of them with every answer."""
_KEPT: Final = 512
"""Functions whose fitted schema is kept: sessions offer the same ones again and again."""

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "object": (dict,),
    "array": (list,), "null": (type(None),),
}  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        names = [name for name in value if isinstance(name, str) and name in _TYPES]
        return 0 < len(names) == len(value) == len(set(names))
    return isinstance(value, str) and value in _TYPES


def _is_names(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return texts and len(set(value)) == len(value)


KEYWORDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, "a JSON type, or a list of them"),
    "required": (_is_names, "a list of different names"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "format": (lambda value: isinstance(value, str), "text"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_number, "a number")),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        (_is_count, "a whole number from 0 on"),
    ),
}
"""Keywords with plain values: what each may be, and the words for it."""
_TEXTS: Final = ("title", "description", "contentEncoding", "contentMediaType")
_SCHEMA: Final = ("items", "additionalProperties", "not")
_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS: Final = ("properties", "$defs", "definitions")
_NOT_ON_TOP: Final = ("anyOf", "oneOf", "allOf", "enum", "not", "const", "$ref")


def fitted(schema: Any) -> JsonObject | None:
    """Return a schema as services take it for a function, not to be changed; ``None`` where it cannot fit."""
    try:
        return _fitted(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError):
        # What cannot be written cannot be sent.
        return None


@lru_cache(maxsize=_KEPT)
def _fitted(encoded: bytes) -> JsonObject | None:
    schema = msgspec.json.decode(encoded)
    return _Fitting().fit(schema) if isinstance(schema, dict) else None


class _Unfit(Exception):
    """The schema cannot be made to fit."""


class _Fitting:
    """Makes one schema fit; used once."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self._references: list[JsonObject] = []

    def fit(self, schema: JsonObject) -> JsonObject | None:
        """Return the schema as services take it, or ``None``."""
        try:
            found = self._schema(schema, 0)
            properties, required = _Top(found).read(found)
        except _Unfit:
            return None
        made = {name: value for name, value in found.items() if name not in _NOT_ON_TOP}
        made |= {"type": "object", "properties": properties}
        if required or "required" in made:
            made["required"] = required
        for node in self._references:
            if _target(made, node["$ref"]) is None:
                del node["$ref"]
        return made

    def _schema(self, node: Any, depth: int) -> JsonObject:
        self._left -= 1
        if self._left < 0:
            raise _Unfit
        if not isinstance(node, dict) or depth > MAX_DEPTH:
            return {}
        found: JsonObject = {}
        for name, value in node.items():
            kept = self._keyword(name, value, depth)
            if kept is not None:
                found[name] = kept[0]
        kinds = found.get("type", ())
        if "array" in ([kinds] if isinstance(kinds, str) else kinds):
            found.setdefault("items", {})
        if "$ref" in found:
            self._references.append(found)
        return _with_values(found)

    def _keyword(self, name: str, value: Any, depth: int) -> tuple[Any] | None:
        """Return what is kept of a keyword in a tuple of one, ``None`` where it is left out."""
        if name in KEYWORDS:
            return (value,) if KEYWORDS[name][0](value) else None
        if name in _TEXTS or name == "$ref":
            return (value,) if isinstance(value, str) else None
        if name == "pattern":
            return (value,) if _is_pattern(value) else None
        if name in ("const", "default"):
            return (value,)
        if name == "additionalProperties" and isinstance(value, bool):
            return (value,)
        if name == "items" and isinstance(value, list):
            # Older schemas have one for each place.
            inner = [self._schema(one, depth + 1) for one in value]
            return ({"anyOf": inner} if inner else {},)
        if name in _SCHEMA:
            return (self._schema(value, depth + 1),) if isinstance(value, dict | bool) else None
        if name in ("enum", "examples"):
            return (value,) if isinstance(value, list) and value else None
        return self._inner(name, value, depth)

    def _inner(self, name: str, value: Any, depth: int) -> tuple[Any] | None:
        if name in _SCHEMAS and isinstance(value, list) and value:
            return ([self._schema(one, depth + 1) for one in value],)
        if name in _MAPS and isinstance(value, dict):
            return ({key: self._schema(one, depth + 1) for key, one in value.items() if one is not False},)
        return None


class _Top:
    """Reads the one object that a schema's parts describe together, as far as services let it be said."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._seen: set[str] = set()

    def read(self, node: JsonObject, depth: int = 0) -> tuple[JsonObject, list[str]]:
        """Return its properties and which of them are required; raise ``_Unfit`` where it is no object."""
        kinds = node.get("type", "object")
        if "object" not in ([kinds] if isinstance(kinds, str) else kinds):
            raise _Unfit
        if isinstance(node.get("const", {}), dict) is False:
            raise _Unfit
        properties, required = dict(node.get("properties", {})), list(node.get("required", ()))
        if depth > MAX_DEPTH:
            return properties, required
        for part in self._parts(node):
            inner, needed = self.read(part, depth + 1)
            properties = {**inner, **properties}
            required += needed
        for name in ("anyOf", "oneOf"):
            if name in node:
                inner, needed = self._choice(node[name], depth)
                properties = {**inner, **properties}
                required += needed
        return properties, list(dict.fromkeys(required))

    def _parts(self, node: JsonObject) -> Iterable[JsonObject]:
        ref = node.get("$ref")
        if ref is not None and ref not in self._seen:
            # Read once: it says the same wherever it stands, and may lead back to itself.
            self._seen.add(ref)
            target = _target(self._root, ref)
            if target is None:
                # Nobody knows what the arguments are.
                raise _Unfit
            yield target
        yield from node.get("allOf", ())

    def _choice(self, branches: list[JsonObject], depth: int) -> tuple[JsonObject, list[str]]:
        """Return what all of the branches that are objects may have, and what each of them requires."""
        read = []
        for branch in branches:
            try:
                read.append(self.read(branch, depth + 1))
            except _Unfit:
                continue
        if not read:
            raise _Unfit
        found: dict[str, list[JsonObject]] = {}
        for properties, _ in read:
            for name, schema in properties.items():
                others = found.setdefault(name, [])
                if schema not in others:
                    others.append(schema)
        joined = {name: one[0] if len(one) == 1 else {"anyOf": one} for name, one in found.items()}
        return joined, [name for name in read[0][1] if all(name in needed for _, needed in read)]


def _with_values(node: JsonObject) -> JsonObject:
    """Return a schema whose named values are of its types: services check each, and refuse all for one."""
    kinds = node.get("type")
    if kinds is None:
        return node
    names = [kinds] if isinstance(kinds, str) else kinds
    if "enum" in node:
        node["enum"] = [value for value in node["enum"] if _is_of(value, names)]
        if not node["enum"]:
            del node["enum"]
    if "const" in node and not _is_of(node["const"], names):
        del node["const"]
    return node


def _is_of(value: Any, names: Iterable[str]) -> bool:
    for name in names:
        if isinstance(value, bool):
            fits = name == "boolean"
        elif name == "integer" and isinstance(value, float):
            fits = value.is_integer()
        else:
            fits = isinstance(value, _TYPES[name])
        if fits:
            return True
    return False


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except (re.error, OverflowError, RecursionError):
        return False


def _target(root: JsonObject, ref: str) -> JsonObject | None:
    """Return the schema that a reference leads to within a schema, or ``None``."""
    if ref not in ("#", "") and not ref.startswith("#/"):
        return None
    node: Any = root
    for step in ref.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and re.fullmatch("[0-9]{1,6}", name) and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node if isinstance(node, dict) else None
