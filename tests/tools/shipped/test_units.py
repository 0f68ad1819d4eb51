"""Units: exact, of one kind, and no money."""

from __future__ import annotations

import pytest

from voiceapp.errors import InvalidArguments
from voiceapp.text.brain.shipped import match_shipped
from voiceapp.text.provider import FunctionTool
from voiceapp.tools.registry import registry
from voiceapp.tools.shipped.units import convert_units


@pytest.mark.parametrize(
    ("amount", "source", "target", "told"),
    [
        (5, "miles", "kilometers", "5 miles are 8.04672 kilometres."),
        (1, "inch", "cm", "1 inch is 2.54 centimetres."),
        (2, "inches", "millimetres", "2 inches are 50.8 millimetres."),
        (3.048, "m", "ft", "3.048 metres are 10 feet."),
        (100, "fahrenheit", "celsius", "100 degrees Fahrenheit are 37.7778 degrees Celsius."),
        (-40, "degrees Celsius", "F", "-40 degrees Celsius are -40 degrees Fahrenheit."),
        (0, "K", "°C", "0 kelvin are -273.15 degrees Celsius."),
        (1, "pound", "grams", "1 pound is 453.592 grams."),
        (3, "cups", "ml", "3 cups are 709.765 millilitres."),
        (100, "km/h", "miles per hour", "100 kilometres per hour are 62.1371 miles per hour."),
        (1, "GiB", "MB", "1 gibibyte is 1073.74 megabytes."),
        (2, "square feet", "square meters", "2 square feet are 0.185806 square metres."),
        (36, "hours", "days", "36 hours are 1.5 days."),
        (1e12, "km", "mm", "1000000000000 kilometres are 1e+18 millimetres."),
        (0.1, "m", "cm", "0.1 metres are 10 centimetres."),
    ],
)
def test_conversions(amount: float, source: str, target: str, told: str) -> None:
    assert convert_units(amount, source, target) == told


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("miles", "kilograms", "mile is a unit of length, kilogram one of mass"),
        ("parsnips", "km", "'parsnips' is not known"),
        ("dollars", "euros", "Money cannot be converted"),
        ("", "km", "is not known"),
    ],
)
def test_what_cannot_be_converted_is_said(source: str, target: str, told: str) -> None:
    with pytest.raises(InvalidArguments, match=told):
        convert_units(1, source, target)


def test_numbers_that_are_none_are_refused() -> None:
    for amount in (float("inf"), float("nan")):
        with pytest.raises(InvalidArguments, match="no number"):
            convert_units(amount, "km", "m")
    assert convert_units(1e308, "km", "m").endswith("metres.")


@pytest.mark.parametrize(
    ("sentence", "arguments"),
    [
        ("Convert five miles to kilometers.", (5, "miles", "kilometers")),
        ("What is 100 fahrenheit in celsius?", (100, "fahrenheit", "celsius")),
        ("How many grams are in a pound?", (1, "pound", "grams")),
        ("how much is 3 cups in milliliters", (3, "cups", "milliliters")),
        ("How many feet are there in two miles?", (2, "miles", "feet")),
        ("What is 60 miles per hour in kilometers per hour?", (60, "miles per hour", "kilometers per hour")),
    ],
)
def test_the_brain_understands_everyday_sentences(sentence: str, arguments: tuple[float, str, str]) -> None:
    [definition] = registry.definitions(["convert_units"])
    tool = FunctionTool("convert_units", definition["description"], definition["parameters"])
    wish = match_shipped(sentence, (tool,))
    assert wish is not None
    assert tuple(wish.match.arguments.values()) == arguments


@pytest.mark.parametrize("sentence", ["What is two plus three?", "What is new in Paris?", "Turn it to five"])
def test_other_sentences_are_left_alone(sentence: str) -> None:
    [definition] = registry.definitions(["convert_units"])
    tool = FunctionTool("convert_units", definition["description"], definition["parameters"])
    assert match_shipped(sentence, (tool,)) is None
