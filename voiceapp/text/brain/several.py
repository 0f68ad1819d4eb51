"""One sentence that asks for several things: "the weather in Paris and in Rome", "… and set a timer"."""

from __future__ import annotations

import datetime as dt
from typing import Final

from voiceapp.text.brain.clauses import clauses, sentences
from voiceapp.text.brain.matching import Match, fill_arguments, match_tool
from voiceapp.text.brain.numbers import find_numbers
from voiceapp.text.brain.schemas import required_of
from voiceapp.text.brain.scoring import score_tool, stems, tool_stems
from voiceapp.text.provider import FunctionTool

_MAX_CALLS: Final = 8
_BESIDE: Final = (
    "today tonight tomorrow now later again too well both once next week weekend day morning afternoon "
    "evening night noon call invoke run monday tuesday wednesday thursday friday saturday sunday please "
    "thanks thank instead one second minute hour"
)
"""What may stand beside another name without being another task."""


def match_several(
    text: str, tools: tuple[FunctionTool, ...], today: dt.date, *, forced: bool = False
) -> list[Match]:
    """Return the calls that the parts of ``text`` ask for, each complete; fewer than two are none.

    ``forced``: a call is to be made, whether or not the words of the first part fit a tool.
    Only within one sentence is a part that brings nothing but another name a call of the tool before.
    """
    found: list[Match] = []
    asked = sentences(text)
    scores = [max((score_tool(sentence, tool) for tool in tools), default=0.0) for sentence in asked]
    for sentence, score in zip(asked, scores, strict=True):
        called = forced and score == max(scores)
        before: FunctionTool | None = None
        made, unit = False, ""
        for part in clauses(sentence):
            match = match_tool(part, tools, today)
            fits = match is not None and (match.fits or (called and not made))
            if match is None or not fits or match.missing:
                match = None if before is None else _again(before, part, unit, today)
            # What is neither a call nor another name for one ends the list of names.
            before = None if match is None else match.tool
            unit = _unit(part)
            if match is not None:
                made = True
                if not any(_same(match, other) for other in found):
                    found.append(match)
    return found[:_MAX_CALLS] if len(found) > 1 else []


def _again(tool: FunctionTool, part: str, unit: str, today: dt.date) -> Match | None:
    """Return a call of the tool before, where a part brings nothing but another name or number for it.

    ``unit`` is what the number before counts: "5 minutes and 10 minutes" are two, "5 dogs and 10 cats" not.
    """
    required = required_of(tool.parameters)
    if len(required) != 1:
        return None
    for said in (f"in {part}", part):
        arguments, missing = fill_arguments(said, tool.parameters, today)
        value = arguments.get(required[0])
        if missing or value == said or not _nothing_but(part, value, tool):
            continue
        if isinstance(value, str) and value[:1].isupper():
            return Match(tool, 0.0, arguments, ())
        if isinstance(value, int | float) and unit and _unit(part) == unit:
            return Match(tool, 0.0, arguments, ())
    return None


def _unit(part: str) -> str:
    """Return what the first number of a part counts, as one of it; nothing where there is none."""
    return next((number.following.rstrip("s") for number in find_numbers(part)), "")


def _nothing_but(part: str, value: object, tool: FunctionTool) -> bool:
    """Whether a part says only ``value``, where, when, and words of the tool: no other task is in it."""
    if isinstance(value, str):
        rest = part.replace(value, " ")
    else:
        rest = " ".join(word for word in part.split() if not find_numbers(word))
    return not (stems(rest) - stems(_BESIDE) - tool_stems(tool))


def _same(one: Match, other: Match) -> bool:
    return one.tool == other.tool and one.arguments == other.arguments
