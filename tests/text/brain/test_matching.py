"""Which tool a sentence asks for, and with which arguments."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from voiceapp.text.brain.matching import fill_arguments, match_tool
from voiceapp.text.brain.schemas import placeholder
from voiceapp.text.provider import FunctionTool

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


WEATHER = FunctionTool("get_weather", "Get the weather forecast for a city", schema("city"))
TIMER = FunctionTool("setTimer", "Start a timer", schema(seconds="integer"))


def test_the_tool_whose_name_is_said_fits_best() -> None:
    for text, tool in (("What is the weather in Paris?", WEATHER), ("Set a timer for 5 seconds", TIMER)):
        match = match_tool(text, (WEATHER, TIMER), NOW.date())
        assert match is not None
        assert match.tool is tool
        assert match.fits
        assert match.missing == ()


def test_a_sentence_about_something_else_fits_no_tool() -> None:
    match = match_tool("Tell me a joke", (WEATHER, TIMER), NOW.date())
    assert match is not None
    assert not match.fits
    assert match_tool("What is the weather?", (), NOW.date()) is None


def test_what_was_not_said_is_missing() -> None:
    match = match_tool("How will the weather be?", (WEATHER,), NOW.date())
    assert match is not None
    assert (match.arguments, match.missing) == ({}, ("city",))


@pytest.mark.parametrize(
    ("said", "date"),
    [("today", "2026-11-29"), ("tonight", "2026-11-29"), ("tomorrow", "2026-11-30"),
     ("the day after tomorrow", "2026-12-01"), ("on Friday", "2026-12-04"), ("on Sunday", "2026-11-29"),
     ("at the weekend", "2026-12-05"), ("on 2027-01-02", "2027-01-02")],
)  # fmt: skip
def test_a_day_is_a_date_from_now_on(said: str, date: str) -> None:
    wanted = {"properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}
    assert fill_arguments(f"Weather {said}, please", wanted, NOW.date())[0] == {"day": date}


@pytest.mark.parametrize(
    ("said", "unit", "value"),
    [("90 seconds", "seconds", 90), ("two minutes", "seconds", 120), ("two minutes", "minutes", 2),
     ("one hour", "minutes", 60)],
)  # fmt: skip
def test_a_length_of_time_is_told_in_the_parameters_unit(said: str, unit: str, value: int) -> None:
    assert fill_arguments(f"Wait {said}.", schema(**{unit: "integer"}), NOW.date())[0] == {unit: value}


def test_each_number_is_used_once() -> None:
    wanted = schema(first="integer", second="integer")
    assert fill_arguments("Add 3 and 4", wanted, NOW.date())[0] == {"first": 3, "second": 4}


@pytest.mark.parametrize(
    ("said", "parameters", "arguments"),
    [
        ("Wait for an hour.", {"seconds": "number"}, {"seconds": 3600}),
        ("Wait for half an hour.", {"minutes": "number"}, {"minutes": 30}),
        ("Wait for an hour and a half.", {"minutes": "number"}, {"minutes": 90}),
        ("Wait for one hour and ten minutes.", {"minutes": "number"}, {"minutes": 70}),
        ("Wait for 2 hours, 5 minutes and 10 seconds.", {"seconds": "number"}, {"seconds": 7510}),
        ("Wait for one day and two hours.", {"hours": "number"}, {"hours": 26}),
        ("Wait for 5 minutes, 2 hours from now.", {"minutes": "number"}, {"minutes": 5}),
        ("Wait for one hour and 90 minutes.", {"hours": "number"}, {"hours": 1}),
        # Where each unit has a parameter, each has its own.
        ("Wait for 2 hours and 5 minutes.", {"hours": "number", "minutes": "number"},
         {"hours": 2, "minutes": 5}),
        ("Remind me in an hour that it rains.", {"minutes": "number", "text": "string"},
         {"minutes": 60, "text": "it rains"}),
    ],
)  # fmt: skip
def test_a_length_of_time_of_several_units_is_one(
    said: str, parameters: dict[str, str], arguments: dict[str, Any]
) -> None:
    assert fill_arguments(said, schema(**parameters), NOW.date())[0] == arguments
