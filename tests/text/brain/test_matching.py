"""Which tool a sentence asks for, and with which arguments."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from voiceapp.text.brain.matching import fill_arguments
from voiceapp.text.brain.schemas import placeholder

NOW = dt.datetime(2026, 11, 29, 15, 7)  # a Sunday


def schema(*names: str, **more: str) -> dict[str, Any]:
    """Return the schema of an object with these required texts, and fields of other types."""
    kinds = {**dict.fromkeys(names, "string"), **more}
    return {"properties": {name: {"type": kind} for name, kind in kinds.items()}, "required": list(kinds)}


@pytest.mark.parametrize(
    ("said", "wanted", "arguments"),
    [
        ("What is the status of order 7?", schema("id"), {"id": "7"}),
        ("What is the status of order number A-17, please?", schema("order_id"), {"order_id": "A-17"}),
        ("Cancel order seven.", schema("id"), {"id": "7"}),
        ("Where is my order?", schema("id"), {}),
        ("Where is my order for abc", schema("id"), {"id": "abc"}),
        ("Paint it in the color red.", schema("color"), {"color": "red"}),
        ("What is the price of the symbol MSFT?", schema("symbol"), {"symbol": "MSFT"}),
        (
            "Tom is 31 and lives in Paris.",
            schema("name", age="integer", city="string"),
            {"name": "Tom", "age": 31, "city": "Paris"},
        ),
        (
            "My name is Ada and I live in New York.",
            schema("city", "name"),
            {"name": "Ada", "city": "New York"},
        ),
        ("What is the weather in Rome?", schema("city"), {"city": "Rome"}),
        ("Who is Grace?", schema("name"), {"name": "Grace"}),
    ],
)
def test_arguments_are_the_words_that_are_meant(
    said: str, wanted: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert fill_arguments(said, wanted, NOW.date())[0] == arguments


def test_schemas_without_sense_do_no_harm() -> None:
    assert fill_arguments("hello", {}, NOW.date()) == ({}, ())
    assert fill_arguments("hello", {"properties": {"a": True}, "required": ["a"]}, NOW.date())[0] == {
        "a": "hello"
    }
    assert placeholder({"const": 4}) == 4
    assert placeholder({"type": "array", "items": {"type": "boolean"}, "minItems": 2}) == [False, False]
