"""One sentence that asks for several things: "the weather in Paris and in Rome", "… and set a timer"."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from voiceapp.text.brain.matching import Match, fill_arguments, match_tool
from voiceapp.text.brain.schemas import required_of
from voiceapp.text.provider import FunctionTool

# Commas stay: they stand in dates and in "Paris, France" as well.
_BETWEEN: Final = re.compile(r"\s*(?:,?\s*\b(?:and then|and also|and|then|also)\b|[;.?!])\s*", re.I)
_MAX_CALLS: Final = 8
_MAX_PARTS: Final = 16


def match_several(text: str, tools: tuple[FunctionTool, ...], today: dt.date) -> list[Match]:
    """Return the calls that the parts of ``text`` ask for, each complete; fewer than two are none."""
    found: list[Match] = []
    for part in [part for part in _BETWEEN.split(text, _MAX_PARTS) if part][:_MAX_PARTS]:
        match = match_tool(part, tools, today)
        if match is None or not match.fits or match.missing:
            match = _again(found[-1].tool, part, today) if found else None
        if match is not None and not any(_same(match, other) for other in found):
            found.append(match)
    return found[:_MAX_CALLS] if len(found) > 1 else []


def _again(tool: FunctionTool, part: str, today: dt.date) -> Match | None:
    """Return a call of the tool before, where a part brings nothing but another name for it."""
    required = required_of(tool.parameters)
    if len(required) != 1:
        return None
    for said in (part, f"in {part}"):
        arguments, missing = fill_arguments(said, tool.parameters, today)
        value = arguments.get(required[0])
        # A number could belong to what was said before ("one hour and ten minutes"), a name could not.
        if not missing and isinstance(value, str) and value[:1].isupper() and value != said:
            return Match(tool, 0.0, arguments, ())
    return None


def _same(one: Match, other: Match) -> bool:
    return one.tool == other.tool and one.arguments == other.arguments
