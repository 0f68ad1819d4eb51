"""References and schemas of an OpenAPI document: followed, bounded, and written as JSON Schema; pure."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from voiceapp.errors import VoiceAppError
from voiceapp.tools.parameters import KEYWORDS
from voiceapp.types import JsonObject

MAX_HOPS: Final = 32
"""References that lead to one another before an object comes."""
MAX_DEPTH: Final = 24
"""Levels of a schema, those of references among them; what lies deeper may be anything."""
MAX_NODES: Final = 2_000
"""Schemas and values of one operation."""
MAX_TEXT_CHARS: Final = 500
"""Of a schema's description; models read all of them with every answer."""
_MAX_PATTERN_CHARS: Final = 200


class DocumentFault(VoiceAppError):
    """A document is not as it should be; the message says where and what."""

    default_code = "bad_document"


class Unsupported(DocumentFault):
    """An operation is right, but cannot be called from here."""

    default_code = "unsupported_operation"


def fault(where: str, what: str) -> DocumentFault:
    """Return a fault of the document at a place."""
    return DocumentFault(f"{where}: {what}")


class References:
    """A document whose references can be followed; no other document is ever fetched."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document

    def find(self, ref: Any, where: str) -> Any:
        """Return what a reference leads to; raise ``DocumentFault``."""
        if not isinstance(ref, str):
            raise fault(where, "its $ref must be text.")
        if not ref.startswith("#/"):
            sentence = "only references within the document, which begin with #/, are followed"
            raise fault(where, f"it refers to {ref[:80]!r}; {sentence}.")
        node: Any = self._document
        for step in ref[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and re.fullmatch("[0-9]{1,6}", name) and int(name) < len(node):
                node = node[int(name)]
            else:
                raise fault(where, f"it refers to {ref[:80]!r}, which is not in the document.")
        return node

    def object(self, node: Any, where: str) -> JsonObject:
        """Return an object, or the one that its references lead to; raise ``DocumentFault``."""
        for _ in range(MAX_HOPS):
            if not isinstance(node, dict):
                raise fault(where, "an object is expected here.")
            if "$ref" not in node:
                return node
            node = self.find(node["$ref"], where)
        raise fault(where, "its references go round in a circle.")


# -- keywords ---------------------------------------------------------------------------------------------

_SCHEMA: Final = ("items", "additionalProperties", "not")
_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


class SchemaReader:
    """Writes one operation's schemas as JSON Schema without references (2020-12).

    References that lead back to themselves are cut: what is there may be anything. Keywords that say nothing
    about arguments are left out, and so are properties that only answers have. ``old`` is OpenAPI 3.0, whose
    schemas differ. Raises ``DocumentFault``, and ``Unsupported`` where an operation has more than
    ``MAX_NODES`` of them.
    """

    def __init__(self, references: References, *, old: bool) -> None:
        self._references = references
        self._old = old
        self._left = MAX_NODES

    def read(self, node: Any, where: str) -> JsonObject:
        """Return a schema as JSON Schema."""
        return self._schema(node, where, 0, ())

    def _schema(self, node: Any, where: str, depth: int, seen: tuple[str, ...]) -> JsonObject:
        self._count()
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, dict):
            raise fault(where, "a schema is expected here.")
        if depth > MAX_DEPTH:
            return {}
        if "$ref" not in node:
            return self._keywords(node, where, depth, seen)
        ref = node["$ref"]
        target = self._references.find(ref, where)
        if ref in seen:
            return {}
        found = self._schema(target, ref[:120], depth + 1, (*seen, ref))
        beside = {} if self._old else {name: value for name, value in node.items() if name != "$ref"}
        if not beside:
            return found
        more = self._keywords(beside, where, depth, seen)
        if not more.keys() - {"title", "description", "default"}:
            return {**found, **more}
        return {"allOf": [found, more]}

    def _keywords(self, node: JsonObject, where: str, depth: int, seen: tuple[str, ...]) -> JsonObject:
        node = _as_new(node) if self._old else node
        found: JsonObject = {}
        for name, (fits, expected) in KEYWORDS.items():
            if name in node:
                if not fits(node[name]):
                    raise fault(where, f"{name} must be {expected}.")
                found[name] = node[name]
        found |= self._notes(node, where)
        for name in _SCHEMA:
            if name in node:
                found[name] = self._schema(node[name], f"{where}.{name}", depth + 1, seen)
        for name in _SCHEMAS:
            if name in node:
                if not isinstance(node[name], list) or not node[name]:
                    raise fault(where, f"{name} must be a list of schemas.")
                found[name] = [
                    self._schema(inner, f"{where}.{name}[{at}]", depth + 1, seen)
                    for at, inner in enumerate(node[name])
                ]
        if "properties" in node:
            found["properties"] = self._properties(node["properties"], f"{where}.properties", depth, seen)
            found["required"] = [
                name
                for name in found.get("required", ())
                if name in found["properties"] or name not in node["properties"]
            ]
        return found

    def _properties(self, node: Any, where: str, depth: int, seen: tuple[str, ...]) -> JsonObject:
        if not isinstance(node, dict):
            raise fault(where, "an object is expected here.")
        return {
            name: self._schema(inner, f"{where}.{name[:60]}", depth + 1, seen)
            for name, inner in node.items()
            if not (isinstance(inner, dict) and inner.get("readOnly") is True)
        }

    def _notes(self, node: JsonObject, where: str) -> JsonObject:
        found: JsonObject = {}
        for name in ("title", "description"):
            if isinstance(node.get(name), str) and node[name].strip():
                found[name] = plain(node[name], MAX_TEXT_CHARS)
        if "enum" in node:
            if not isinstance(node["enum"], list):
                raise fault(where, "enum must be a list.")
            found["enum"] = node["enum"]
        for name in ("const", "default"):
            if name in node:
                found[name] = node[name]
        for name in ("enum", "const", "default"):
            if name in found:
                self._measure(found[name])
        pattern = node.get("pattern")
        if isinstance(pattern, str) and pattern and len(pattern) <= _MAX_PATTERN_CHARS:
            # In words: expressions differ by language, and one can take for ever to be checked.
            sentence = f"It matches {plain(pattern, _MAX_PATTERN_CHARS)}"
            found["description"] = " ".join(filter(None, (found.get("description"), sentence)))
        return found

    def _measure(self, value: Any) -> None:
        waiting = [value]
        while waiting:
            self._count()
            one = waiting.pop()
            if isinstance(one, dict):
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unsupported(f"it describes its arguments in more than {MAX_NODES} parts")


def plain(text: str, most: int) -> str:
    """Return a text on one line, cut to ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _as_new(node: JsonObject) -> JsonObject:
    """Return a schema of OpenAPI 3.0 with what it says in its own way said in JSON Schema's."""
    node = dict(node)
    if node.get("nullable") is True and isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]
        if isinstance(node.get("enum"), list) and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and bound in node:
            node[exclusive] = node.pop(bound)
    return node
