"""Answers are held against schemas that strangers wrote."""

from __future__ import annotations

import json

import pytest

from tests.parts.schemas import doubling
from voiceapp.text import structured
from voiceapp.types import JsonObject


async def test_a_large_answer_of_a_plain_schema_is_checked_to_its_end() -> None:
    order = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "of": {"enum": ["a", "b"]}},
        "required": ["n"],
    }
    schema = {"type": "object", "properties": {"orders": {"type": "array", "items": order}}}
    orders: list[JsonObject] = [{"n": n, "of": "b"} for n in range(5_000)]
    assert await structured.read(json.dumps({"orders": orders}), schema) == ({"orders": orders}, "")
    orders[4_999]["of"] = "c"
    value, fault = await structured.read(json.dumps({"orders": orders}), schema)
    assert value is None
    assert fault.startswith("orders/4999/of:")


async def test_what_takes_for_ever_to_check_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "CHECK_S", 0.2)
    wide = {"type": "object", "properties": {"a": {"allOf": [{"items": {"type": "number"}}] * 1_000}}}
    for schema, answer in ((doubling(40), {}), (wide, {"a": [0] * 20_000})):
        await structured.check_schema(schema)
        value, fault = await structured.read(json.dumps(answer), schema)
        assert (value, fault) == (None, "the schema takes too long to check")
