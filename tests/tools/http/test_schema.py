"""References and schemas of an OpenAPI document: followed, bounded, and written as JSON Schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.tools.http.schema import (
    MAX_DEPTH,
    MAX_HOPS,
    MAX_NODES,
    DocumentFault,
    References,
    SchemaReader,
    Unsupported,
    plain,
)
from voiceapp.types import JsonObject


def read(node: Any, *, old: bool = False, **schemas: Any) -> JsonObject:
    return SchemaReader(References({"schemas": schemas}), old=old).read(node, "here")


def ref(name: str) -> JsonObject:
    return {"$ref": f"#/schemas/{name}"}


# -- references -------------------------------------------------------------------------------------------


def test_a_reference_leads_to_its_place_whatever_its_name_is() -> None:
    document = {"a/b": {"c~d": ["x", {"é f": 7}]}}
    assert References(document).find("#/a~1b/c~0d/1/%C3%A9%20f", "here") == 7


@pytest.mark.parametrize(
    "wrong", [7, None, "other.json#/a", "#", "#/no", "#/list/2", "#/list/x", "#/list/-1"]
)
def test_other_references_are_faults_with_their_place(wrong: Any) -> None:
    with pytest.raises(DocumentFault, match=r"^here: "):
        References({"list": [1, 2]}).find(wrong, "here")


def test_an_object_is_found_behind_its_references_but_not_in_a_circle() -> None:
    references = References({"schemas": {"a": ref("b"), "b": {"x": 1}, "loop": ref("loop")}})
    assert references.object(ref("a"), "here") == {"x": 1}
    with pytest.raises(DocumentFault, match="circle"):
        references.object(ref("loop"), "here")
    with pytest.raises(DocumentFault, match="an object is expected"):
        references.object([1], "here")
    chain: JsonObject = {f"a{n}": ref(f"a{n + 1}") for n in range(MAX_HOPS + 1)}
    with pytest.raises(DocumentFault):
        References({"schemas": chain}).object(ref("a0"), "here")


# -- schemas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "written"),
    [
        (True, {}),
        (False, {"not": {}}),
        ({"type": "string", "xml": {}, "example": "x"}, {"type": "string"}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"anyOf": [{"type": "string"}, True]}, {"anyOf": [{"type": "string"}, {}]}),
        ({"description": "  On\n two lines. "}, {"description": "On two lines."}),
        ({"pattern": "^a$"}, {"description": "It matches ^a$"}),
    ],
)
def test_a_schema_is_written_without_what_says_nothing_of_arguments(node: Any, written: JsonObject) -> None:
    assert read(node) == written


def test_what_only_answers_have_is_left_out() -> None:
    node = {
        "type": "object",
        "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
        "required": ["id", "name"],
    }
    assert read(node) == {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]
    }  # fmt: skip


def test_a_schema_that_leads_back_to_itself_is_cut_there() -> None:
    tree = {"type": "object", "properties": {"child": ref("tree"), "name": {"type": "string"}}}
    assert read(ref("tree"), tree=tree)["properties"] == {"child": {}, "name": {"type": "string"}}


def test_what_lies_too_deep_may_be_anything() -> None:
    node: JsonObject = {"type": "string"}
    for _ in range(MAX_DEPTH + 5):
        node = {"type": "array", "items": node}
    written, depth = read(node), 0
    while "items" in written:
        written, depth = written["items"], depth + 1
    assert written == {}
    assert depth == MAX_DEPTH + 1


def test_a_schema_of_too_many_parts_cannot_be_offered() -> None:
    with pytest.raises(Unsupported):
        read({"enum": list(range(MAX_NODES + 1))})


@pytest.mark.parametrize(
    ("node", "written"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
    ],
)
def test_openapi_3_0_says_some_things_in_its_own_way(node: JsonObject, written: JsonObject) -> None:
    assert read(node, old=True) == written


@pytest.mark.parametrize(
    "node", [7, "x", [], {"type": "text"}, {"type": []}, {"required": "a"}, {"required": ["a", "a"]},
             {"minLength": -1}, {"multipleOf": 0}, {"enum": 7}, {"uniqueItems": 1}, {"minimum": "0"}],
)  # fmt: skip
def test_what_is_no_schema_is_a_fault(node: Any) -> None:
    with pytest.raises(DocumentFault):
        read(node)


NODES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([True, {}, {"type": "string"}, {"type": "integer", "minimum": 1}, {"enum": [1, "a"]},
                     ref("a"), ref("b")]),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda fields: {"type": "object", "properties": fields},
                  st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)),
    ),
    max_leaves=6,
)  # fmt: skip


@given(NODES, NODES, NODES)
def test_what_is_written_is_json_schema_without_references(node: Any, a: Any, b: Any) -> None:
    try:
        written = read(node, a=a, b=b)
    except Unsupported:
        return
    jsonschema.Draft202012Validator.check_schema(written)
    assert "$ref" not in str(written)


@given(st.text(), st.integers(1, 50))
def test_a_text_is_one_line_of_a_bounded_length(text: str, most: int) -> None:
    line = plain(text, most)
    assert len(line) <= most
    assert line == " ".join(line.split(" "))
    assert "\n" not in line
