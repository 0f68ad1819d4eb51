"""The published contract files, found beside the repository or through ``CONTRACTS_DIR``."""

from __future__ import annotations

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
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"the contract file {name} is not at hand (set CONTRACTS_DIR)", allow_module_level=True)
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


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
    """The Azure Realtime contract: its messages and their schemas, ready for a JSON Schema validator."""

    def __init__(self) -> None:
        document = load("azure-openai-realtime.asyncapi.yaml")
        self.messages: dict[str, Any] = document["components"]["messages"]
        self.root = {"components": with_nulls(document["components"])}
        self.client = self._union(document, "/openai/realtime#client", "publish")
        self.server = self._union(document, "/openai/realtime#server", "subscribe")

    def _union(self, document: Any, channel: str, verb: str) -> list[str]:
        refs = document["channels"][channel][verb]["message"]["oneOf"]
        return [self.messages[ref["$ref"].rsplit("/", 1)[1]]["name"] for ref in refs]

    def schema(self, name: str) -> dict[str, Any]:
        """Return the schema of the message called ``name`` with the file's definitions beside it."""
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
    """The contract of the tool call events."""

    def __init__(self) -> None:
        self.document = load("tool-call-events.openai-compatible-1.json")
        self.schemas: dict[str, Any] = {
            name: {"type": "object", **with_properties(schema)}
            for name, schema in self.document["toolCallEvents"].items()
        }

    def check(self, event: dict[str, Any]) -> None:
        """Raise where an event is not what the contract says, or has a field that it does not name."""
        schema = self.schemas[event["type"]]
        jsonschema.validate(event, {**schema, "additionalProperties": False})
