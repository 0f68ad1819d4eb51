"""OpenAPI documents as tools: what is read, what is left out, what is refused, and how."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.examples import examples
from tests.parts.http_service import document
from voiceapp.assistants.http_tools import MAX_OPERATIONS, HttpOperation
from voiceapp.tools.http.openapi import MAX_DOCUMENT_BYTES, Document, DocumentFault, read_document
from voiceapp.types import JsonObject


def read(root: Any, wanted: tuple[str, ...] = (), **options: bool) -> Document:
    return read_document(root if isinstance(root, str) else json.dumps(root), wanted, **options)


def single(operation: JsonObject, *, path: str = "/x", method: str = "post", **changes: Any) -> JsonObject:
    return document(paths={path: {method: operation}}, **changes)


def one(operation: JsonObject, **where: Any) -> HttpOperation:
    (found,) = read(single(operation, **where)).operations
    return found


def body_of(schema: Any, *, required: bool = True, kind: str = "application/json") -> JsonObject:
    return {"requestBody": {"required": required, "content": {kind: {"schema": schema}}}}


def told(root: Any, wanted: tuple[str, ...] = ()) -> str:
    with pytest.raises(DocumentFault) as caught:
        read(root, wanted)
    return caught.value.message


# -- what is read -----------------------------------------------------------------------------------------


def test_every_operation_is_a_tool() -> None:
    found = read(document())
    assert (found.title, found.base_url, found.left_out) == ("Shop", "https://shop.example/v1", ())
    assert {
        (tool.key, tool.method, tool.path, tool.plain_name, tool.changes) for tool in found.operations
    } == {
        ("getOrder", "GET", "/orders/{id}", "getOrder", False),
        ("cancelOrder", "DELETE", "/orders/{id}", "cancelOrder", True),
        ("GET /orders", "GET", "/orders", "get_orders", False),
        ("createOrder", "POST", "/orders", "createOrder", True),
    }
    for tool in found.operations:
        jsonschema.Draft202012Validator.check_schema(tool.parameters)


def test_parameters_and_body_are_one_object() -> None:
    tools = {tool.key: tool for tool in read(document()).operations}
    assert tools["getOrder"].parameters == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    order = tools["createOrder"].parameters
    # What only answers have is not asked for, and what refers to itself ends.
    assert order["required"] == ["item"]
    assert set(order["properties"]) == {"item", "amount", "note", "parts"}
    assert order["properties"]["item"] == {"type": "string", "description": "What to order"}
    assert order["properties"]["amount"] == {"type": "integer", "exclusiveMinimum": 0}
    assert order["properties"]["note"] == {"type": ["string", "null"]}
    assert order["properties"]["parts"] == {"type": "array", "items": {}}


def test_what_has_one_name_in_two_places_has_two_here() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "id", "in": "query", "schema": {"type": "boolean"}},
        {"name": "filter[id]", "in": "query", "schema": {"type": "string"}},
    ]
    tool = one({"parameters": parameters, **body_of(schema)}, path="/x/{id}")
    assert {name: inner["type"] for name, inner in tool.parameters["properties"].items()} == {
        "id": "string",
        "id_query": "boolean",
        "filter_id_": "string",
        "id_body": "integer",
    }
    assert [(argument.name, argument.target, argument.place) for argument in tool.arguments] == [
        ("id", "id", "path"),
        ("id_query", "id", "query"),
        ("filter_id_", "filter[id]", "query"),
        ("id_body", "id", "body"),
    ]


def test_an_operations_own_parameter_replaces_the_paths() -> None:
    own = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    root = document()
    root["paths"]["/orders/{id}"]["get"]["parameters"] = [own]
    tools = {tool.key: tool.parameters["properties"]["id"] for tool in read(root, ("getOrder",)).operations}
    assert tools == {"getOrder": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"type": "array", "items": {"type": "string"}}, ["body"]),
        ({"type": "object"}, ["body"]),
        ({"oneOf": [{"type": "object", "properties": {"a": {}}}]}, ["body"]),
        (True, ["body"]),
        ({"properties": {"a": {}, "b": {}}}, ["a", "b"]),
        ({"allOf": [{"properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}, ["a", "b"]),
        ({"allOf": [{"properties": {"a": {}}}, {"type": "string"}]}, ["body"]),
    ],
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema: Any, names: list[str]) -> None:
    tool = one(body_of(schema))
    assert list(tool.parameters["properties"]) == names
    assert tool.parameters.get("required", []) == (["body"] if names == ["body"] else [])


def test_a_body_that_may_be_left_out_requires_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert "required" not in one(body_of(schema, required=False)).parameters
    assert one(body_of(schema, kind="application/vnd.shop+json; v=1")).parameters["required"] == ["a"]


def test_references_are_followed_wherever_they_may_stand() -> None:
    root = document()
    root["paths"]["/more"] = {"$ref": "#/components/pathItems/more~1all"}
    root["components"] |= {
        "pathItems": {"more/all": {"put": {"parameters": [{"$ref": "#/components/parameters/p"}],
                                           "requestBody": {"$ref": "#/components/requestBodies/b"}}}},
        "parameters": {"p": {"name": "p", "in": "query", "schema": {"$ref": "#/components/schemas/a%20b"}}},
        "requestBodies": {"b": body_of({"properties": {"q": {"$ref": "#/components/schemas/a b"}}})
                               ["requestBody"]},
    }  # fmt: skip
    root["components"]["schemas"]["a b"] = {"type": "integer"}
    (tool,) = read(root, ("PUT /more",)).operations
    assert tool.parameters["properties"] == {"p": {"type": "integer"}, "q": {"type": "integer"}}


def test_what_stands_beside_a_reference_counts_in_3_1_alone() -> None:
    schema = {"properties": {"a": {"$ref": "#/components/schemas/A", "description": "mine"},
                             "b": {"$ref": "#/components/schemas/A", "maximum": 5}}}  # fmt: skip
    components = {"schemas": {"A": {"type": "integer"}}}
    (new,) = read(single(body_of(schema), openapi="3.1.0", components=components)).operations
    assert new.parameters["properties"] == {
        "a": {"type": "integer", "description": "mine"},
        "b": {"allOf": [{"type": "integer"}, {"maximum": 5}]},
    }
    (old,) = read(single(body_of(schema), components=components)).operations
    assert old.parameters["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}


def test_a_regular_expression_is_told_in_words() -> None:
    tool = one(body_of({"properties": {"a": {"type": "string", "pattern": "^(a+)+$", "format": "uuid"}}}))
    told_of = tool.parameters["properties"]["a"]
    assert told_of == {"type": "string", "format": "uuid", "description": "It matches ^(a+)+$"}


def test_an_address_may_have_variables() -> None:
    variables = {"region": {"default": "eu"}}
    servers = [{"url": "https://{region}.shop.example/v1", "variables": variables}]
    assert read(document(servers=servers)).base_url == "https://eu.shop.example/v1"
    for relative in ([{"url": "/v1"}], [], None):
        assert read(document(servers=relative)).base_url == ""


def test_only_what_is_wanted_is_read() -> None:
    root = document()
    root["paths"]["/bad"] = {"get": {"operationId": "bad", "parameters": [{"in": "query"}]}}
    assert [tool.key for tool in read(root, ("getOrder",)).operations] == ["getOrder"]
    many = document(paths={f"/{n}": {"get": {}} for n in range(MAX_OPERATIONS + 1)})
    assert "65 operations; name up to 64" in told(many)
    assert len(read(many, ("GET /7", "GET /9")).operations) == 2
    assert "There is no operation 'nothing'" in told(root, ("nothing",))


# -- what is left out -------------------------------------------------------------------------------------


def query(**changes: Any) -> JsonObject:
    return {"name": "q", "in": "query", "schema": {}, **changes}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (body_of({}, kind="multipart/form-data"), "'multipart/form-data', not JSON or a form"),
        (body_of({}, kind="application/x-www-form-urlencoded"), "a form of which the document names no"),
        (body_of({}, kind="application/vnd.*+json"), "not JSON or a form"),
        ({"servers": [{"url": "https://other.example"}]}, "servers of its own"),
        ({"parameters": [{**query(required=True), "in": "cookie"}]}, "needs the cookie 'q'"),
        ({"parameters": [query(style="matrix")]}, "the style 'matrix'"),
        ({"parameters": [{"name": "q", "in": "query", "content": {"text/xml": {}}}]}, "not JSON"),
        ({"parameters": [query(name=f"q{n}") for n in range(65)]}, "more than 64 parameters"),
        (body_of({"enum": list(range(3_000))}), "more than 2000 parts"),
        (body_of({"properties": {f"p{n:03}" * 10: {} for n in range(500)}}), "more than 16000 characters"),
    ],
)
def test_what_cannot_be_called_is_left_out_with_the_reason(operation: JsonObject, reason: str) -> None:
    root = document()
    root["paths"]["/odd"] = {"post": operation}
    found = read(root)
    assert len(found.operations) == 4
    ((key, why),) = found.left_out
    assert key == "POST /odd"
    assert reason in why
    # Whoever names it wants it, and is told.
    assert reason in told(root, ("POST /odd",))


def test_an_address_of_the_sets_own_goes_before_an_operations() -> None:
    root = single({"servers": [{"url": "https://other.example"}]})
    assert len(read(root, fixed_address=True).operations) == 1


def test_what_a_reference_multiplies_is_bounded() -> None:
    """Each schema has the next one twice: 2^30 of them, all told."""
    schemas = {
        f"S{n}": {"properties": {side: {"$ref": f"#/components/schemas/S{n + 1}"} for side in "ab"}}
        for n in range(30)
    } | {"S30": {}}
    root = single(body_of({"$ref": "#/components/schemas/S0"}), components={"schemas": schemas})
    assert "more than 2000 parts" in read(root).left_out[0][1]


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "sentence"),
    [
        ("", "The document is no JSON: Expecting value in line 1, column 1. YAML has to be made JSON first."),
        ("openapi: 3.0.0\npaths: {}", "YAML has to be made JSON first."),
        ('{"openapi": "3.0.0",\n "paths": }', "is no JSON: Expecting value in line 2, column 11."),
        ("[]", "The document must be a JSON object."),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "a number or a character that JSON does not know"),
        ('{"a": 1e999}', "a number or a character that JSON does not know"),
        ('{"a": "\\ud800"}', "a number or a character that JSON does not know"),
        ("ü" * (MAX_DOCUMENT_BYTES // 2 + 1), "1,500,000 bytes at most"),
        ({}, 'openapi: the document must say "3.0.x" or "3.1.x".'),
        ({"swagger": "2.0"}, "This is Swagger 2; OpenAPI 3.0 or 3.1 is needed."),
        (document(openapi=3.0), 'openapi: the document must say "3.0.x" or "3.1.x".'),
        (document(openapi="3.2.0"), 'openapi: the document must say "3.0.x" or "3.1.x".'),
        (document(paths=[]), "paths: an object is expected here."),
        (document(paths={}), "paths: the document has no operations."),
        (document(paths={"orders": {}}), "paths.orders: a path begins with /."),
        (document(servers=[{}]), "servers[0]: url must be text."),
        (document(servers=[{"url": "https://{a}/"}]), "servers[0]: its variable 'a' has no default."),
        (single({"operationId": 5}), "paths./x.post: operationId must be text"),
        (document(paths={"/a": {"get": {"operationId": "o"}}, "/b": {"get": {"operationId": "o"}}}),
         "paths./b.get: 'o' is the operationId of paths./a.get too."),
        (single({"parameters": {}}), "paths./x.post.parameters: a list is expected here."),
        (single({"parameters": [{}, 5]}), "paths./x.post.parameters[0]: it has no name."),
        (single({"parameters": [query(), 5]}), "paths./x.post.parameters[1]: an object is expected here."),
        (single({"parameters": [query(**{"in": "body"})]}), '"in" must be path, query, header or cookie.'),
        (single({"parameters": [{"name": "q", "in": "query"}]}), "parameters[0]: it needs a schema."),
        (single({"parameters": [query(explode="yes")]}), "explode must be true or false."),
        (single({"parameters": [query(name="Host", **{"in": "header"})]}), "no header that can be set"),
        (single({"parameters": [query(name="id", **{"in": "path"})]}),
         "paths./x.post: the path parameter 'id' is not in the path."),
        (single({}, path="/x/{id}"), "the path parameter 'id' is in the path, but no parameter."),
        (single({"requestBody": {}}), "paths./x.post.requestBody: it needs content."),
        (single(body_of({"type": "text"})), "schema: type must be a JSON type, or a list of them."),
        (single(body_of({"properties": {"a": 5}})), "properties.a: a schema is expected here."),
        (single(body_of({"maximum": "5"})), "maximum must be a number."),
        (single(body_of({"anyOf": []})), "anyOf must be a list of schemas."),
        (single(body_of({"$ref": "https://other.example/s.json"})),
         "it refers to 'https://other.example/s.json'; only references within the document"),
        (single(body_of({"$ref": "#/nowhere"})), "it refers to '#/nowhere', which is not in the document."),
        (single(body_of({"$ref": 5})), "its $ref must be text."),
        (document(paths={"/x": {"$ref": "#/paths/~1x"}}), "its references go round in a circle."),
    ],
    ids=range(38),
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(root: Any, sentence: str) -> None:
    assert sentence in told(root)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_KEYWORDS = st.sampled_from(
    ["type", "properties", "items", "allOf", "anyOf", "$ref", "required", "enum", "minimum", "nullable",
     "exclusiveMinimum", "additionalProperties", "description", "default", "pattern", "readOnly", "not"]
)  # fmt: skip
_VALUES = st.sampled_from(
    ["string", "object", ["integer", "null"], "#/components/schemas/S", "#/paths/~1x", True, 3, ["a"], {}]
)
_SCHEMAS = st.recursive(
    _JSON | st.dictionaries(_KEYWORDS, _VALUES, max_size=4),
    lambda inner: st.dictionaries(
        _KEYWORDS,
        inner | st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    ),
    max_leaves=10,
)
_PARAMETERS = st.dictionaries(
    st.sampled_from(["name", "in", "required", "schema", "style", "explode", "content", "$ref"]),
    _SCHEMAS | st.sampled_from(["q", "id", "query", "path", "header", "deepObject", "form"]),
)
_OPERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "operationId": _JSON | st.text(min_size=1, max_size=5),
        "summary": _JSON,
        "parameters": _JSON | st.lists(_PARAMETERS, max_size=3),
        "requestBody": _JSON | _SCHEMAS.map(lambda schema: body_of(schema)["requestBody"]),
        "servers": _JSON,
    },
)


@settings(max_examples=examples(150), deadline=None)
@given(_OPERATIONS, _SCHEMAS, st.sampled_from(["3.0.0", "3.1.0"]), st.sampled_from(["get", "post"]))
def test_any_document_is_read_or_refused_in_words(
    operation: JsonObject, schema: Any, version: str, method: str
) -> None:
    components = {"schemas": {"S": schema}}
    root = single(operation, path="/x", method=method, openapi=version, components=components)
    found: Document | None = None
    with contextlib.suppress(DocumentFault):
        found = read(root)
    for tool in found.operations if found else ():
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        # Every reference was followed: there is none left that a validator could not.
        list(jsonschema.Draft202012Validator(tool.parameters).iter_errors({"q": {}, "id": [], "body": 1}))


@settings(max_examples=examples(200), deadline=None)
@given(_JSON | st.dictionaries(st.sampled_from(["openapi", "paths", "servers", "info"]), _JSON) | st.text())
def test_anything_at_all_is_read_or_refused_in_words(root: Any) -> None:
    with contextlib.suppress(DocumentFault):
        assert read(root).operations or read(root).left_out
