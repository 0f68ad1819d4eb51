"""Tools that come with the product."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, DecimalException, localcontext
from typing import Annotated
from zoneinfo import ZoneInfo

from msgspec import Meta

from voiceapp.errors import InvalidArguments
from voiceapp.language.zones import day_in_words, place_of, zone_names
from voiceapp.tools.registry import ToolContext, tool

MAX_EXPRESSION_CHARS = 300
MAX_POWER = 1000
DIGITS = 28


@tool(timeout_s=5)
def current_time(
    context: ToolContext,
    place: Annotated[str, Meta(description="A city, such as Paris; empty: where the user is")] = "",
) -> str:
    """Tell the current date and time where the user is, or in a city."""
    now = context.now()
    return _spoken_time(now.astimezone(_zone(place)) if place.strip() else now)


def _spoken_time(now: datetime) -> str:
    """Return a sentence to be heard: "It is 10:15 in Paris, on Monday, 30 November 2026."."""
    name = place_of(str(now.tzinfo))
    # "GMT+5" and "EST" are no places.
    where = name if name.isupper() else f"in {name}"
    return f"It is {now:%H:%M} {where}, on {day_in_words(now)}."


def _zone(place: str) -> ZoneInfo:
    wanted = "_".join(place.replace(",", " ").split()).lower()
    zones = sorted(zone_names())
    # The whole name first, then the city, then a city that begins the words said ("paris_france").
    for matches in (
        lambda name: name.lower() == wanted,
        lambda name: name.lower().rsplit("/", 1)[-1] == wanted,
        lambda name: "/" in name and wanted.startswith(name.lower().rsplit("/", 1)[-1] + "_"),
    ):
        for name in zones:
            if matches(name):
                return ZoneInfo(name)
    raise InvalidArguments(f"No time zone is known for {place[:60]!r}; name a larger city nearby.")


@tool(timeout_s=5)
def calculate(expression: Annotated[str, Meta(description="Such as (12.5 + 3) * 4 / 7 or 2 ** 10")]) -> str:
    """Work out an arithmetic expression exactly, with + - * / // % ** and parentheses."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise InvalidArguments(f"An expression may have {MAX_EXPRESSION_CHARS} characters at most.")
    written = _SPOKEN.sub(lambda found: _OPERATORS[found[0].lower()], expression).strip()
    try:
        with localcontext(prec=DIGITS):
            value = _value(ast.parse(written, mode="eval").body, written)
            text = format(+value, "f")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidArguments("That is no arithmetic expression.") from None
    except (DecimalException, ArithmeticError):
        raise InvalidArguments("That has no result, such as a division by zero.") from None
    return text.rstrip("0").rstrip(".") if "." in text else text


# Models that hear sums pass them on as they were said.
_OPERATORS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "to the power of": "**",
    "x": "*",
    "×": "*",
    "÷": "/",
    "^": "**",
}
_SPOKEN = re.compile(
    r"\b(?:plus|minus|times|multiplied by|divided by|to the power of)\b|(?<=[\d\s)])x(?=[\d\s(])|[×÷^]", re.I
)

_BINARY: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _value(node: ast.expr, source: str) -> Decimal:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError
        case ast.Constant(value=int() | float()):
            # The text itself, as a float would have lost digits already.
            return Decimal((ast.get_source_segment(source, node) or "").replace("_", ""))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, source)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, source)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _value(left, source), _value(right, source)
            if isinstance(op, ast.Pow) and abs(second) > MAX_POWER:
                raise ValueError
            return _BINARY[type(op)](first, second)
    raise ValueError
