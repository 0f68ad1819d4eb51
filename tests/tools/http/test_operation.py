"""One operation of a document as a tool: its parameters and its JSON body in one object."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.assistants.http_tools import HttpOperation
from voiceapp.tools.http.operation import (
    FORM,
    MAX_PARAMETERS,
    Site,
    flattened,
    is_json,
    length,
    names_in,
    read_operation,
    sent_as,
    split_path,
)
from voiceapp.tools.http.schema import DocumentFault, References, Unsupported
from voiceapp.types import JsonObject

TEXT = {"type": "string"}


def parameter(name: str, place: str = "query", **fields: Any) -> JsonObject:
    return {"name": name, "in": place, "schema": TEXT, **fields}


def operation(
    method: str = "get", path: str = "/orders", item: JsonObject | None = None, **fields: Any
) -> HttpOperation:
    return read_operation(Site(path, method, item or {}, fields), References({}), old=False)


def body(schema: JsonObject, kind: str = "application/json", **fields: Any) -> JsonObject:
    return {"content": {kind: {"schema": schema}}, **fields}


def test_parameters_are_one_object_of_arguments() -> None:
    read = operation(
        path="/orders/{id}",
        operationId="getOrder",
        summary="Get an order",
        parameters=[parameter("id", "path"), parameter("full", required=True), parameter("X-Tag", "header")],
    )
    assert (read.key, read.method, read.path, read.description) == (
        "getOrder", "GET", "/orders/{id}", "Get an order"
    )  # fmt: skip
    assert read.parameters == {
        "type": "object",
        "properties": {"id": TEXT, "full": TEXT, "X-Tag": TEXT},
        "additionalProperties": False,
        "required": ["id", "full"],
    }
    assert [(one.name, one.place, one.style, one.explode) for one in read.arguments] == [
        ("id", "path", "simple", False), ("full", "query", "form", True), ("X-Tag", "header", "simple", False)
    ]  # fmt: skip


def test_an_operation_without_a_name_is_called_by_its_place() -> None:
    read = operation()
    assert (read.key, read.description) == ("GET /orders", "GET /orders")


@pytest.mark.parametrize(
    ("texts", "description"),
    [
        ({"summary": "Get it", "description": "By its number."}, "Get it. By its number."),
        ({"summary": "Get it.", "description": "Get it by its number."}, "Get it by its number."),
        ({"summary": " ", "description": "On\ntwo lines"}, "On two lines"),
    ],
)
def test_the_description_says_all_and_nothing_twice(texts: JsonObject, description: str) -> None:
    assert operation(**texts).description == description


def test_the_fields_of_a_body_are_arguments_beside_the_parameters() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "id": TEXT}, "required": ["n"]}
    read = operation("post", parameters=[parameter("id")], requestBody=body(schema, required=True))
    assert [(one.name, one.target, one.place) for one in read.arguments] == [
        ("id", "id", "query"), ("n", "n", "body"), ("id_body", "id", "body")
    ]  # fmt: skip
    assert read.parameters["required"] == ["n"]
    assert read.body_required
    left_out = operation("post", requestBody=body(schema))
    assert "required" not in left_out.parameters


def test_a_body_that_is_no_plain_object_is_one_argument() -> None:
    read = operation("post", requestBody=body({"type": "array", "items": TEXT}, required=True))
    [argument] = read.arguments
    assert (argument.name, argument.place, argument.as_json) == ("body", "whole body", True)
    # A body of GET has no meaning.
    assert operation("get", requestBody=body({"type": "array"})).arguments == ()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"operationId": ""}, DocumentFault),
        ({"operationId": "a\nb"}, DocumentFault),
        ({"parameters": {}}, DocumentFault),
        ({"parameters": [{"in": "query", "schema": TEXT}]}, DocumentFault),
        ({"parameters": [parameter("a", "matrix")]}, DocumentFault),
        ({"parameters": [{"name": "a", "in": "query"}]}, DocumentFault),
        ({"parameters": [parameter("Host", "header")]}, DocumentFault),
        ({"parameters": [parameter("id", "path")]}, DocumentFault),
        ({"parameters": [parameter("a", explode="yes")]}, DocumentFault),
        ({"parameters": [parameter(f"p{n}") for n in range(MAX_PARAMETERS + 1)]}, Unsupported),
        ({"parameters": [parameter("a", style="matrix")]}, Unsupported),
        ({"parameters": [parameter("sid", "cookie", required=True)]}, Unsupported),
        ({"parameters": [{"name": "a", "in": "query", "content": {"text/xml": {}}}]}, Unsupported),
        ({"description": "x", "parameters": [parameter("a", schema={"enum": ["x" * 20_000]})]}, Unsupported),
    ],
)
def test_what_is_wrong_and_what_cannot_be_called_are_told_apart(
    fields: JsonObject, fault: type[DocumentFault]
) -> None:
    with pytest.raises(DocumentFault) as found:
        operation(**fields)
    assert type(found.value) is fault


def test_a_variable_of_the_path_needs_a_parameter() -> None:
    with pytest.raises(DocumentFault, match="is in the path, but no parameter"):
        operation(path="/orders/{id}")


def test_what_is_set_for_each_call_is_no_argument() -> None:
    ignored = [parameter(name, "header") for name in ("Accept", "authorization", "Idempotency-Key")]
    assert operation(parameters=[*ignored, parameter("sid", "cookie")]).arguments == ()


def test_servers_of_its_own_cannot_be_called() -> None:
    with pytest.raises(Unsupported):
        Site("/", "get", {}, {"servers": [{"url": "https://other"}]}).refuse_servers()
    Site("/", "get", {}, {"servers": []}).refuse_servers()


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/problem+json", True),
        ("text/json", False),
        ("application/jsonl", False),
        ("image/svg+json", False),
        ("", False),
    ],
)
def test_a_media_type_is_json_or_not(kind: str, json: bool) -> None:
    assert is_json(kind) is json


@pytest.mark.parametrize(
    ("schema", "flat"),
    [
        ({"properties": {"a": TEXT}, "required": ["a"]}, ({"a": TEXT}, {"a"})),
        ({"type": ["object", "null"], "properties": {"a": TEXT}}, ({"a": TEXT}, set())),
        ({"allOf": [{"properties": {"a": TEXT}}, {"properties": {"b": TEXT}, "required": ["b"]}]},
         ({"a": TEXT, "b": TEXT}, {"b"})),
        ({"type": "object"}, None),
        ({"type": "array", "properties": {"a": TEXT}}, None),
        ({"properties": {"a": TEXT}, "oneOf": []}, None),
        ({"properties": {"a": TEXT}, "allOf": [{"type": "string"}]}, None),
    ],
)  # fmt: skip
def test_objects_that_are_put_together_are_one(schema: JsonObject, flat: Any) -> None:
    assert flattened(schema) == flat


def test_the_length_of_a_schema_is_that_of_its_json() -> None:
    assert length({"é": 1}) == len('{"é":1}')


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("application/json", "application/json"),
        ("Application/Vnd.Api+JSON; v=1", "Application/Vnd.Api+JSON; v=1"),
        (" application/merge-patch+json ", "application/merge-patch+json"),
        ("*/*", "application/json"),
        ("application/*;q=0.5", "application/json"),
        ("application/vnd.*+json", ""),
        ("application/json\r\nX-Evil: 1", ""),
        ("application/json; name=ä", ""),
        ("text/plain", ""),
    ],
)
def test_json_is_sent_under_the_type_that_the_document_names(kind: str, sent: str) -> None:
    assert sent_as(kind) == sent


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("/search", ("/search", "", "")),
        ("/search?kind=user", ("/search", "kind=user", "")),
        ("/oauth/token#refresh", ("/oauth/token", "", "refresh")),
        ("/a?b=1?c#d?e#f", ("/a", "b=1?c", "d?e#f")),
        ("/{a?}/{b#}?c={d?}#{e}", ("/{a?}/{b#}", "c={d?}", "{e}")),
        ("/a#b?c", ("/a", "", "b?c")),
    ],
)
def test_a_path_may_have_a_query_and_a_fragment(template: str, parts: tuple[str, str, str]) -> None:
    assert split_path(template) == parts


def test_what_the_path_gives_a_value_is_not_asked_for() -> None:
    asked = [parameter("Action", required=True), parameter("q")]
    assert list(operation(path="/?Action=List&V%31=x", parameters=asked).parameters["properties"]) == ["q"]
    assert names_in("Action=List&V%31=x&&flag") == {"Action", "V1", "flag"}


def test_an_argument_behind_a_fragment_could_never_arrive() -> None:
    with pytest.raises(Unsupported, match="behind a #"):
        operation(path="/a#{id}", parameters=[parameter("id", "path")])
    assert operation(path="/a/{id}#{id}", parameters=[parameter("id", "path")]).path == "/a/{id}#{id}"


def test_a_forms_fields_are_arguments_in_their_encoding() -> None:
    fields = {"a": TEXT, "list": {"type": "array"}, "map": {"type": "object"}, "doc": {}}
    schema = {"type": "object", "properties": fields, "required": ["a"]}
    encoding = {"map": {"style": "deepObject"}, "doc": {"contentType": "application/json"}}
    media = {"schema": schema, "encoding": encoding}
    read = operation("post", requestBody={"content": {FORM: media}, "required": True})
    assert read.body_type == FORM
    assert read.parameters["required"] == ["a"]
    assert [(one.name, one.style, one.explode, one.as_json) for one in read.arguments] == [
        ("a", "", True, False), ("list", "", True, False), ("map", "deepObject", False, False),
        ("doc", "", True, True),
    ]  # fmt: skip
    both = {"content": {FORM: media, "application/merge-patch+json": media}}
    assert operation("post", requestBody=both).body_type == "application/merge-patch+json"
    odd = {"schema": schema, "encoding": {"a": {"style": "matrix"}}}
    with pytest.raises(Unsupported, match="the style 'matrix'"):
        operation("post", requestBody={"content": {FORM: odd}})
