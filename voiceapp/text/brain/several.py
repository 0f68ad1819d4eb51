"""One sentence that asks for several things: "the weather in Paris and in Rome", "… and set a timer"."""

from __future__ import annotations

import datetime as dt
from typing import Final

from voiceapp.text.brain.clauses import clauses, sentences
from voiceapp.text.brain.matching import Match, fill_arguments, match_tool, score_tool
from voiceapp.text.brain.schemas import required_of
from voiceapp.text.provider import FunctionTool

_MAX_CALLS: Final = 8


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
        for part in clauses(sentence):
            match = match_tool(part, tools, today)
            fits = match is not None and (match.fits or (called and before is None))
            if match is None or not fits or match.missing:
                match = None if before is None else _again(before, part, today)
            if match is not None:
                before = match.tool
                if not any(_same(match, other) for other in found):
                    found.append(match)
    return found[:_MAX_CALLS] if len(found) > 1 else []


def _again(tool: FunctionTool, part: str, today: dt.date) -> Match | None:
    """Return a call of the tool before, where a part brings nothing but another name for it."""
    required = required_of(tool.parameters)
    if len(required) != 1:
        return None
    for said in (f"in {part}", part):
        arguments, missing = fill_arguments(said, tool.parameters, today)
        value = arguments.get(required[0])
        # A number could belong to what was said before ("one hour and ten minutes"), a name could not.
        if not missing and isinstance(value, str) and value[:1].isupper() and value != said:
            return Match(tool, 0.0, arguments, ())
    return None


def _same(one: Match, other: Match) -> bool:
    return one.tool == other.tool and one.arguments == other.arguments
