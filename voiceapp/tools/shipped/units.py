"""Conversion between units, exact where the units are: an inch is 2.54 cm and nothing else."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Annotated, Final

from msgspec import Meta

from voiceapp.errors import InvalidArguments
from voiceapp.tools.registry import tool

DIGITS: Final = 28
SHOWN_DIGITS: Final = 6

_Names = dict[str, str]
# Kind of quantity -> unit (all its names, the second is said) -> how many of the first unit it is.
_TABLE: Final[dict[str, _Names]] = {
    "length": {
        "m|metre|meter": "1", "km|kilometre|kilometer": "1000", "cm|centimetre|centimeter": "0.01",
        "mm|millimetre|millimeter": "0.001", "mi|mile": "1609.344", "yd|yard": "0.9144",
        "ft|foot|feet": "0.3048", "in|inch|inches": "0.0254", "nautical mile|nmi": "1852",
    },
    "mass": {
        "kg|kilogram|kilo|kilogramme": "1", "g|gram|gramme": "0.001", "mg|milligram": "0.000001",
        "t|tonne|metric ton": "1000", "lb|pound|lbs": "0.45359237", "oz|ounce": "0.028349523125",
        "st|stone": "6.35029318", "us ton|short ton": "907.18474",
    },
    "volume": {
        "l|litre|liter": "1", "ml|millilitre|milliliter": "0.001", "cl|centilitre|centiliter": "0.01",
        "m³|cubic metre|cubic meter|m3": "1000", "gal|gallon|us gallon": "3.785411784",
        "uk gallon|imperial gallon": "4.54609", "qt|quart": "0.946352946", "pt|pint|us pint": "0.473176473",
        "uk pint|imperial pint": "0.56826125", "c|cup|us cup": "0.2365882365",
        "fl oz|fluid ounce": "0.0295735295625", "tbsp|tablespoon": "0.01478676478125",
        "tsp|teaspoon": "0.00492892159375",
    },
    "area": {
        "m²|square metre|square meter|m2": "1", "km²|square kilometre|square kilometer|km2": "1000000",
        "ha|hectare": "10000", "ac|acre": "4046.8564224", "sq ft|square foot|square feet": "0.09290304",
        "sq mi|square mile": "2589988.110336",
    },
    "speed": {
        "m/s|metre per second|meter per second|metres per second|meters per second": "1",
        "km/h|kilometre per hour|kilometer per hour|kilometres per hour|kilometers per hour|kmh|kph":
            "0.2777777777777777777777777778",
        "mph|mile per hour|miles per hour": "0.44704", "kn|knot": "0.5144444444444444444444444444",
    },
    "time": {
        "s|second|sec": "1", "ms|millisecond": "0.001", "min|minute": "60", "h|hour": "3600",
        "d|day": "86400", "wk|week": "604800",
    },
    "data": {
        "B|byte": "1", "kB|kilobyte": "1000", "MB|megabyte": "1000000", "GB|gigabyte": "1000000000",
        "TB|terabyte": "1000000000000", "KiB|kibibyte": "1024", "MiB|mebibyte": "1048576",
        "GiB|gibibyte": "1073741824", "b|bit": "0.125",
    },
    "energy": {
        "J|joule": "1", "kJ|kilojoule": "1000", "cal|calorie": "4.184", "kcal|kilocalorie": "4184",
        "kWh|kilowatt hour": "3600000", "Wh|watt hour": "3600",
    },
    "pressure": {
        "Pa|pascal": "1", "bar|bar": "100000", "psi|psi": "6894.757293168361", "atm|atmosphere": "101325",
    },
}  # fmt: skip
_SCALES: Final = {"°C|degree Celsius|celsius|c": ("1", "0"),
                  "°F|degree Fahrenheit|fahrenheit|f": ("1.8", "32"),
                  "K|kelvin": ("1", "273.15")}  # fmt: skip
_MONEY: Final = frozenset(
    ["dollar", "euro", "yen", "franc", "rupee", "yuan", "peso", "usd", "eur", "gbp", "jpy", "chf", "€", "$"]
)


@tool(timeout_s=5)
def convert_units(
    amount: Annotated[float, Meta(description="How many")],
    from_unit: Annotated[str, Meta(description="Such as miles, kg, celsius or cups")],
    to_unit: Annotated[str, Meta(description="Such as kilometers, pounds, fahrenheit or ml")],
) -> str:
    """Convert a quantity between units of one kind, such as length, mass, volume, speed or temperature.

    Money is none: its rates change from day to day.
    """
    if not math.isfinite(amount):
        raise InvalidArguments("The amount is no number.")
    source, target = _find(from_unit), _find(to_unit)
    if source[0] != target[0]:
        raise InvalidArguments(f"{source[1]} is a unit of {source[0]}, {target[1]} one of {target[0]}.")
    with localcontext(prec=DIGITS):
        value = Decimal(repr(amount))
        if source[0] == "temperature":
            result = (value - source[3]) / source[2] * target[2] + target[3]
        else:
            result = value * source[2] / target[2]
        verb = "is" if value == 1 else "are"
        return f"{_counted(value, source[1])} {verb} {_counted(result, target[1])}."


_PLURALS: Final = {
    "foot": "feet", "inch": "inches", "square foot": "square feet", "stone": "stone", "bar": "bar",
    "psi": "psi", "kelvin": "kelvin", "degree Celsius": "degrees Celsius", "tonne": "tonnes",
    "degree Fahrenheit": "degrees Fahrenheit", "metre per second": "metres per second",
    "kilometre per hour": "kilometres per hour", "mile per hour": "miles per hour",
}  # fmt: skip


def _counted(value: Decimal, unit: str) -> str:
    shown = _shown(value)
    return f"{shown} {unit if shown == '1' else _PLURALS.get(unit, f'{unit}s')}"


_Unit = tuple[str, str, Decimal, Decimal]
"""Kind of quantity, name, how many of the kind's first unit it is, and where its zero lies."""


def _index() -> tuple[dict[str, _Unit], dict[str, _Unit]]:
    exact: dict[str, _Unit] = {}
    for kind, units in _TABLE.items():
        for names, factor in units.items():
            first = names.split("|")[1]
            for name in names.split("|"):
                exact[name] = (kind, first, Decimal(factor), Decimal(0))
    for names, (factor, zero) in _SCALES.items():
        for name in names.split("|"):
            exact[name] = ("temperature", names.split("|")[1], Decimal(factor), Decimal(zero))
    folded: dict[str, _Unit] = {}
    for name, unit in exact.items():
        # The smaller of two that differ in case only, as MB and mB would, is nobody's wish.
        folded.setdefault(name.lower(), unit)
    return exact, folded


_EXACT, _FOLDED = _index()


def _find(name: str) -> _Unit:
    wanted = " ".join(name.replace("degrees", "degree").split()).strip(" .")
    lowered = wanted.lower().removeprefix("degree ").removeprefix("a ").removeprefix("an ")
    if lowered.rstrip("s") in _MONEY:
        raise InvalidArguments("Money cannot be converted here: its rates change from day to day.")
    for candidate, units in ((wanted, _EXACT), (lowered, _FOLDED), (lowered.removesuffix("s"), _FOLDED)):
        if found := units.get(candidate):
            return found
    raise InvalidArguments(f"The unit {name[:40]!r} is not known.")


def _shown(value: Decimal) -> str:
    """Return a number with as many digits as are of use; very large and very small ones with an exponent."""
    rounded = Decimal(f"{value:.{SHOWN_DIGITS}g}") if value != value.to_integral_value() else value
    if rounded and not Decimal("1e-6") <= abs(rounded) < Decimal("1e15"):
        return f"{float(rounded):.{SHOWN_DIGITS}g}"
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
