"""Checks of single values, with the service's codes and words."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.engine.session import validation
from voiceapp.engine.session.validation import Check
from voiceapp.errors import ProtocolError

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)

CHECKS: dict[str, Check] = {
    "text": validation.text(3),
    "boolean": validation.boolean,
    "number": validation.number(0, 1),
    "whole": validation.number(1, 5, whole=True),
    "choice": validation.one_of("low", "high"),
    "object": validation.fields({"a": validation.boolean}, required=["a"]),
    "nullable": validation.nullable(validation.boolean),
    "modalities": validation.modalities,
    "format": validation.audio_format,
    "voice": validation.voice,
    "tokens": validation.max_tokens,
    "metadata": validation.metadata,
    "id": validation.item_id,
}


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("text", "abc", "abc"),
        ("boolean", False, False),
        ("number", 0.5, 0.5),
        ("number", 1, 1),
        ("whole", 5, 5),
        ("choice", "low", "low"),
        ("object", {"a": True}, {"a": True}),
        ("nullable", None, None),
        ("nullable", True, True),
        ("modalities", ["text"], ["text"]),
        ("format", {"type": "audio/pcm"}, {"type": "audio/pcm", "rate": 24000}),
        ("format", {"type": "audio/pcm", "rate": 24000}, {"type": "audio/pcm", "rate": 24000}),
        ("voice", "alloy", "alloy"),
        ("voice", {"id": "verse"}, {"id": "verse"}),
        ("tokens", "inf", "inf"),
        ("tokens", 4096, 4096),
        ("metadata", {"k" * 64: "v" * 512}, {"k" * 64: "v" * 512}),
        ("id", "item_1", "item_1"),
    ],
)
def test_a_lawful_value_is_kept(name: str, value: Any, kept: Any) -> None:
    assert CHECKS[name](value, "path") == kept


@pytest.mark.parametrize(
    ("name", "value", "code", "param"),
    [
        ("text", 7, "invalid_type", "path"),
        ("text", "abcd", "string_above_max_length", "path"),
        ("boolean", 1, "invalid_type", "path"),
        ("number", True, "invalid_type", "path"),
        ("number", "1", "invalid_type", "path"),
        ("number", 1.5, "decimal_above_max_value", "path"),
        ("number", -0.1, "decimal_below_min_value", "path"),
        ("number", float("nan"), "decimal_below_min_value", "path"),
        ("whole", 2.0, "invalid_type", "path"),
        ("whole", 6, "integer_above_max_value", "path"),
        ("choice", "medium", "invalid_value", "path"),
        ("choice", None, "invalid_type", "path"),
        ("object", {}, "missing_required_parameter", "path.a"),
        ("object", {"a": True, "b": 1}, "unknown_parameter", "path.b"),
        ("object", {"a": 1}, "invalid_type", "path.a"),
        ("object", [], "invalid_type", "path"),
        ("modalities", ["text", "audio"], "invalid_value", "path"),
        ("modalities", "text", "invalid_type", "path"),
        ("format", {}, "missing_required_parameter", "path.type"),
        ("format", {"type": "audio/mp3"}, "invalid_value", "path.type"),
        ("format", {"type": "audio/pcm", "rate": 16000}, "integer_below_min_value", "path.rate"),
        ("voice", "nobody", "invalid_value", "path"),
        ("voice", {}, "missing_required_parameter", "path.id"),
        ("voice", {"id": "verse", "more": 1}, "unknown_parameter", "path.more"),
        ("tokens", 0, "integer_below_min_value", "path"),
        ("tokens", "many", "invalid_type", "path"),
        ("metadata", {str(number): "" for number in range(17)}, "object_above_max_properties", "path"),
        ("metadata", {"k": 7}, "invalid_type", "path.k"),
        ("metadata", {"k": "v" * 513}, "string_above_max_length", "path.k"),
        ("metadata", {"k" * 65: ""}, "string_above_max_length", "path key"),
        ("id", "", "invalid_value", "path"),
        ("id", "x" * 513, "string_above_max_length", "path"),
    ],
)
def test_a_wrong_value_is_refused_with_code_and_place(name: str, value: Any, code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        CHECKS[name](value, "path")
    assert (refused.value.code, refused.value.param) == (code, param)


@given(st.sampled_from(sorted(CHECKS)), ANYTHING)
def test_whatever_a_client_sends_is_kept_or_refused(name: str, value: Any) -> None:
    with contextlib.suppress(ProtocolError):
        kept = CHECKS[name](value, "path")
        # What was kept once is kept again as it is.
        assert CHECKS[name](kept, "path") == kept


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "a boolean"), (1, "an integer"), (1.5, "a decimal"), ("x", "a string"),
     ([], "an array"), ({}, "an object")],
)  # fmt: skip
def test_a_wrong_type_is_named_as_json_does(value: Any, kind: str) -> None:
    message = validation.wrong_type("path", "a colour", value).message
    assert message == f"Invalid type for 'path': expected a colour, but got {kind} instead."


def test_the_lawful_values_are_listed_as_a_sentence() -> None:
    assert validation.invalid_value("x", ["a"], "p").message == "Invalid value: 'x'. Value must be 'a'."
    assert validation.invalid_value("x", ["a", "b", "c"], "p").message == (
        "Invalid value: 'x'. Supported values are: 'a', 'b' and 'c'."
    )


def test_an_error_may_have_no_code() -> None:
    assert validation.refuse(None, "It is so.", None).code == ""
