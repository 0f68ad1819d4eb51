"""Any JSON Schema as services take it for a function, by what OpenAI publishes of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.parts.schemas import doubling
from voiceapp.tools.functions import definition
from voiceapp.tools.parameters import MAX_DEPTH, MAX_NODES, fitted
from voiceapp.types import JsonObject

TEXT = {"type": "string"}
TOP = {"type": "object", "properties": {}}


# -- a checker of what is published ------------------------------------------------------------------------


def schemas_in(node: Any) -> Iterator[JsonObject]:
    """Yield a schema and those within it."""
    if not isinstance(node, dict):
        return
    yield node
    for name in ("properties", "$defs", "definitions"):
        for inner in node.get(name, {}).values():
            yield from schemas_in(inner)
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in node.get(name, []):
            yield from schemas_in(inner)
    for name in ("items", "additionalProperties", "not"):
        yield from schemas_in(node.get(name))


def kinds_of(node: JsonObject) -> list[str]:
    kinds = node.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def faults(function: JsonObject) -> list[str]:
    """Return what a service would refuse a function for."""
    found, schema = [], function["parameters"]
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
        found.append("its name")
    if schema.get("type") != "object":
        found.append("schema must have type object")
    if not isinstance(schema.get("properties"), dict):
        found.append("object schema missing properties")
    found += [f"{name} at the top" for name in ("anyOf", "oneOf", "allOf", "enum", "not") if name in schema]
    try:
        Draft202012Validator.check_schema(schema)
    except Exception as error:
        found.append(f"no JSON Schema: {error}")
        return found
    for node in schemas_in(schema):
        if "array" in kinds_of(node) and not isinstance(node.get("items"), dict):
            found.append("array schema missing items")
        if isinstance(node.get("items"), list):
            found.append("items is a list")
        if kinds_of(node) and "enum" in node:
            alone = Draft202012Validator({"type": node["type"]})
            found += [f"enum value {value!r}" for value in node["enum"] if not alone.is_valid(value)]
    return found


# -- any schema --------------------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    SCALARS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
KINDS = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null", "file", ""])
NAMES = st.sampled_from(["a", "b", "$ref", "type", "items", "ä/b~c"])
PLACES = ["#", "#/$defs/a", "#/properties/a", "#/allOf/0", "#/definitions/b", "other.json", "#/$defs/none"]
WORDS = [
    "required", "pattern", "minimum", "exclusiveMinimum", "format", "description", "nullable", "uniqueItems",
    "minItems", "title", "const", "default", "examples", "x-odd", "$schema", "patternProperties", "if",
]  # fmt: skip


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    several = st.lists(inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, max_size=3) | ANYTHING,
            "properties": named | ANYTHING,
            "$defs": named | ANYTHING,
            "definitions": named,
            "items": inner | several,
            "additionalProperties": inner,
            "not": inner,
            "anyOf": several | ANYTHING,
            "oneOf": several,
            "allOf": several | ANYTHING,
            "prefixItems": several,
            "enum": st.lists(ANYTHING, max_size=3) | ANYTHING,
            "$ref": st.sampled_from(PLACES) | ANYTHING,
            **{word: ANYTHING | st.lists(NAMES, max_size=2) for word in WORDS},
        },
    )


SCHEMAS = st.recursive(st.booleans() | ANYTHING | schemas(ANYTHING), schemas, max_leaves=8)


@given(SCHEMAS)
def test_any_schema_is_made_to_fit_or_left_out(schema: Any) -> None:
    made = definition("f", "", schema)
    if made is None:
        return
    assert faults(made) == []
    again = definition("f", "", made["parameters"])
    assert again == made, "what fits is left as it is"


@given(st.dictionaries(NAMES, st.sampled_from([TEXT, {"type": ["integer", "null"]}, {}]), max_size=4))
def test_what_fits_is_sent_as_it_is(properties: JsonObject) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    assert fitted(schema) == schema


# -- each rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "sent"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "array", "items": [TEXT, {}]}, {"type": "array", "items": {"anyOf": [TEXT, {}]}}),
        ({"type": "array", "items": []}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": {"type": "array"}},
            {"type": "array", "items": {"type": "array", "items": {}}},
        ),
        ({"anyOf": [{"type": "array"}, TEXT]}, {"anyOf": [{"type": "array", "items": {}}, TEXT]}),
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"type": "string", "enum": [1]}, TEXT),
        ({"enum": []}, {}),
        ({"type": "file"}, {}),
        ({"type": "string", "required": True}, TEXT),
        ({"type": "string", "pattern": "("}, TEXT),
        ({"minimum": "1", "exclusiveMinimum": True}, {}),
        ({"description": None, "title": 7, "x-odd": 1, "$comment": "c"}, {}),
        ({"$ref": "#/$defs/none"}, {}),
        ({"$ref": "https://other.example/s.json"}, {}),
        (True, {}),
        ("text", {}),
    ],
)
def test_what_is_within_is_made_to_fit(inner: Any, sent: JsonObject) -> None:
    schema = {"type": "object", "properties": {"a": inner}}
    assert fitted(schema) == {"type": "object", "properties": {"a": sent}}


A, B = {"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({}, {}, None),
        ({"type": ["object", "null"]}, {}, None),
        ({"allOf": [A, B]}, {"a": TEXT, "b": {}}, ["a", "b"]),
        ({"anyOf": [A, B]}, {"a": TEXT, "b": {}}, None),
        ({"oneOf": [A, {"type": "null"}]}, {"a": TEXT}, ["a"]),
        ({"oneOf": [A, {"allOf": [A, B]}]}, {"a": TEXT, "b": {}}, ["a"]),
        ({**B, "anyOf": [A, {"properties": {"a": {}}}]}, {"a": {"anyOf": [TEXT, {}]}, "b": {}}, ["b"]),
        ({"$ref": "#/$defs/a", "$defs": {"a": A}}, {"a": TEXT}, ["a"]),
        ({"$ref": "#"}, {}, None),
        ({"not": A, "enum": [{}]}, {}, None),
        ({"properties": {"no": False, "a": TEXT}}, {"a": TEXT}, None),
    ],
)
def test_the_top_is_one_object(
    schema: JsonObject, properties: JsonObject, required: list[str] | None
) -> None:
    made = fitted(schema)
    assert made is not None
    assert (made["type"], made["properties"], made.get("required")) == ("object", properties, required)
    assert not made.keys() & {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "string"},
        {"allOf": [{"type": "string"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"const": 7},
        {"$ref": "#/$defs/none"},
        {"properties": {f"p{n}": {} for n in range(MAX_NODES)}},
        [],
        True,
    ],
)
def test_what_is_no_object_is_left_out_with_a_line(schema: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert definition("odd", "", schema) is None
    assert "The tool 'odd' is left out" in caplog.text


def test_what_lies_too_deep_may_be_anything() -> None:
    schema: JsonObject = TEXT
    for _ in range(MAX_DEPTH + 9):
        schema = {"type": "array", "items": schema}
    made = fitted({"properties": {"a": schema}})
    assert made is not None
    depth, node = 0, made["properties"]["a"]
    while node:
        depth, node = depth + 1, node["items"]
    assert depth == MAX_DEPTH
    for _ in range(5_000):
        schema = {"items": schema}
    assert fitted({"properties": {"a": schema}}) is None, "it cannot even be written"


def test_a_schema_that_doubles_costs_no_more_than_it_is_long() -> None:
    made = fitted(doubling(40))
    assert made is not None
    assert made["properties"] == {}
    assert len(made["$defs"]) == 41


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "ä", "a\n"])
def test_a_name_that_services_refuse_is_left_out(name: str) -> None:
    assert definition(name, "", TOP) is None
