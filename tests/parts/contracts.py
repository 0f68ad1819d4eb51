"""The published contract files, found beside the repository or through ``CONTRACTS_DIR``."""

from __future__ import annotations

import copy
import functools
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.parts.places import SHARED

FOLDER = Path(os.environ.get("CONTRACTS_DIR", SHARED / "contracts"))


def load(name: str) -> Any:
    """Return a contract file, or skip the test where the files are not at hand."""
    if not at_hand(name):
        pytest.skip(f"the contract file {name} is not at hand (set CONTRACTS_DIR)", allow_module_level=True)
    return copy.deepcopy(_read(FOLDER / name))


def at_hand(name: str) -> bool:
    """Return whether a contract file is; a test that is not about the contract goes on without it."""
    return (FOLDER / name).exists()


def schema_of(name: str) -> Any:
    """Return a contract file that is a JSON schema; where it is not at hand, one that everything fits."""
    return load(name) if at_hand(name) else {}


@functools.cache
def _read(path: Path) -> Any:
    # Written in C, where that is at hand: it takes a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open() as file:
        return json.load(file) if path.suffix == ".json" else yaml.load(file, loader)


def with_nulls(schema: Any) -> Any:
    """Return a schema in which AsyncAPI's ``nullable`` is a ``null`` alternative, as JSON Schema wants."""
    if isinstance(schema, list):
        return [with_nulls(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: with_nulls(inner) for name, inner in schema.items()}
    if result.pop("nullable", False):
        return {"anyOf": [result, {"type": "null"}]}
    return result


class Realtime:
    """The Azure Realtime contract: its messages and their schemas, ready for a JSON Schema validator.

    Where its file is not at hand, every schema is one that everything fits; what else is asked for skips the
    test.
    """

    FILE = "azure-openai-realtime.asyncapi.yaml"

    @functools.cached_property
    def messages(self) -> dict[str, Any]:
        """Every message of the file, by its key."""
        messages: dict[str, Any] = load(self.FILE)["components"]["messages"]
        return messages

    @functools.cached_property
    def root(self) -> dict[str, Any]:
        """The file's definitions."""
        return {"components": with_nulls(load(self.FILE)["components"])}

    @property
    def client(self) -> list[str]:
        """The names of the client's events."""
        return self._union("/openai/realtime#client", "publish")

    @property
    def server(self) -> list[str]:
        """The names of the server's events."""
        return self._union("/openai/realtime#server", "subscribe")

    def _union(self, channel: str, verb: str) -> list[str]:
        refs = load(self.FILE)["channels"][channel][verb]["message"]["oneOf"]
        return [self.messages[ref["$ref"].rsplit("/", 1)[1]]["name"] for ref in refs]

    def schema(self, name: str) -> dict[str, Any]:
        """Return the schema of the message called ``name`` with the file's definitions beside it."""
        if not at_hand(self.FILE):
            return {}
        found = next(message for message in self.messages.values() if message["name"] == name)
        return {**self.root, **with_nulls(found["payload"])}

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Follow a ``$ref`` into the file."""
        while "$ref" in schema:
            node: Any = self.root
            for step in schema["$ref"].removeprefix("#/").split("/"):
                node = node[step]
            schema = node
        return schema

    def example(self, schema: dict[str, Any], *, full: bool) -> Any:
        """Build an instance of a schema: every field, or only the required ones."""
        schema = self.resolve(schema)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.example(schema[choice][0], full=full)
        if "allOf" in schema:
            merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
            for part in schema["allOf"]:
                inner = self.resolve(part)
                merged["properties"].update(inner.get("properties", {}))
                merged["required"] += inner.get("required", [])
            return self.example(merged, full=full)
        return self._plain(schema, full=full)

    def _plain(self, schema: dict[str, Any], *, full: bool) -> Any:
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            wanted = schema.get("properties", {})
            names = wanted if full else schema.get("required", [])
            return {name: self.example(wanted.get(name, {"type": "string"}), full=full) for name in names}
        if kind == "array":
            return [self.example(schema["items"], full=full)] if "items" in schema else []
        # "YWJj" is valid text and valid base64, so it serves audio fields too.
        return {"integer": 7, "number": 1.5, "boolean": True, "null": None}.get(str(kind), "YWJj")


def with_properties(schema: Any) -> Any:
    """Return a schema in which ``fields`` is ``properties``: a validator ignores the former."""
    if isinstance(schema, list):
        return [with_properties(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        ("properties" if name == "fields" else name): with_properties(inner) for name, inner in schema.items()
    }


class ToolCalls:
    """The contract of the tool call events; where its file is not at hand, nothing is checked against it."""

    FILE = "tool-call-events.openai-compatible-1.json"

    @property
    def document(self) -> Any:
        """The contract file; skips the test where it is not at hand."""
        return load(self.FILE)

    @functools.cached_property
    def schemas(self) -> dict[str, Any]:
        """The schema of each event."""
        if not at_hand(self.FILE):
            return {}
        return {
            name: {"type": "object", **with_properties(schema)}
            for name, schema in self.document["toolCallEvents"].items()
        }

    def check(self, event: dict[str, Any]) -> None:
        """Raise where an event is not what the contract says, or has a field that it does not name."""
        if at_hand(self.FILE):
            schema = self.schemas[event["type"]]
            jsonschema.validate(event, {**schema, "additionalProperties": False})
