"""Tools as services know them: names, arguments, and outputs of a bounded length."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import InvalidArguments, ToolFailed
from voiceapp.tools.functions import (
    MAX_ARGUMENT_CHARS,
    MAX_DESCRIPTION_CHARS,
    MAX_NAME_CHARS,
    MAX_OUTPUT_CHARS,
    as_text,
    definition,
    failure,
    free_name,
    name_like,
    name_of,
    offered,
    read_arguments,
)

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Place(msgspec.Struct):
    """Arguments of a tool."""

    city: str
    days: int = 1


@pytest.mark.parametrize(
    ("name", "legal"),
    [("buy", "buy"), ("buy it!", "buy_it_"), ("größe", "gr__e"), ("", "tool"), ("x" * 99, "x" * 64)],
)
def test_a_name_becomes_one_that_services_take(name: str, legal: str) -> None:
    assert name_like(name) == legal


@given(st.lists(st.tuples(st.from_regex(LEGAL, fullmatch=True), st.text(max_size=70)), max_size=20))
def test_names_are_legal_and_each_their_own(tools: list[tuple[str, str]]) -> None:
    taken: set[str] = set()
    for label, name in tools:
        found = name_of(label, name, taken)
        assert LEGAL.fullmatch(found)
        assert found not in taken
        taken.add(found)


def test_a_name_that_is_taken_gives_way_to_its_label_and_then_to_numbers() -> None:
    taken = {"buy"}
    for expected in ("buy_shop", "buy_1", "buy_2"):
        found = free_name("buy", "shop", taken)
        assert found == expected
        taken.add(found)
    assert free_name("sell", "shop", taken) == "sell"


def test_a_long_label_gives_way_to_the_tools_name() -> None:
    found = name_of("l" * 64, "n" * 50, set())
    assert len(found) == MAX_NAME_CHARS
    assert found.endswith("_" + "n" * 50)


def test_a_function_is_defined_within_what_services_take() -> None:
    made = definition("f", "x" * 5000, {"type": "object"})
    assert made is not None
    assert len(made.pop("description")) == MAX_DESCRIPTION_CHARS
    assert made == {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    assert offered([made, None]) == [made]


def test_arguments_are_read_as_what_they_are() -> None:
    assert read_arguments('{"city": "Paris"}', Place) == Place("Paris")
    assert read_arguments(" ", dict) == {}


@pytest.mark.parametrize(
    "arguments",
    ["", "{", "[]", '{"city": 7}', '{"days": 1}', "[" * 50_000, '{"city": "\\ud800"}',
     '{"city": "' + "x" * MAX_ARGUMENT_CHARS + '"}'],
    ids=range(8),
)  # fmt: skip
def test_other_arguments_are_refused(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        read_arguments(arguments, Place)


@pytest.mark.parametrize(
    ("result", "text"),
    [("plain", "plain"), ({"a": [1, None]}, '{"a":[1,null]}'), (7, "7"), (None, "null"),
     (Place("Rome"), '{"city":"Rome","days":1}')],
)  # fmt: skip
def test_a_result_is_text_or_json(result: Any, text: str) -> None:
    assert as_text("f", result) == text


def test_a_long_result_is_cut_and_a_strange_one_refused() -> None:
    long = as_text("f", "x" * (MAX_OUTPUT_CHARS + 1))
    assert long == "x" * MAX_OUTPUT_CHARS + "… (cut)"
    assert as_text("f", "x" * MAX_OUTPUT_CHARS) == "x" * MAX_OUTPUT_CHARS
    with pytest.raises(ToolFailed, match="f gave something that is no JSON"):
        as_text("f", object())


def test_a_failure_tells_the_model_code_and_reason() -> None:
    error = ToolFailed('It is "closed".', code="closed")
    assert json.loads(failure(error)) == {"error": {"code": "closed", "message": 'It is "closed".'}}
