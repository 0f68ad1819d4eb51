"""Sentences that ask for the tools that come with the product.

Their words are everyday ones ("take", "note", "over"), so matching by words alone would see them everywhere.
A tool of the same name with other parameters is somebody else's and is left to ``tool_matching``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from voiceapp.text.brain.matching import Match
from voiceapp.text.brain.numbers import find_numbers, written_sum
from voiceapp.text.brain.schemas import properties_of, required_of
from voiceapp.text.provider import FunctionTool

_UNITS: Final = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600}
_PARAMETERS: Final = {
    "current_time": {"place"},
    "calculate": {"expression"},
    "set_timer": {"seconds", "label"},
    "list_timers": set(),
    "cancel_timer": {"label"},
    "take_note": {"text"},
    "list_notes": {"words"},
    "delete_note": {"words"},
    "undo_delete_note": set(),
    "search_conversations": {"words"},
    "hang_up": set(),
    "hand_over": {"name"},
    "convert_units": {"amount", "from_unit", "to_unit"},
}  # fmt: skip
_I: Final = re.IGNORECASE
_TIMER: Final = r"(?:timer|alarm|reminder)s?"
_MAX_PLACES: Final = 8
_MAX_SUM_CHARS: Final = 300
"""Characters; as many as ``calculate`` takes."""
_SURE: Final = 99.0
"""Score of a sentence that names what it wants."""


@dataclass(frozen=True, slots=True)
class ShippedMatch:
    """A tool and what was said for it; ``question`` asks for what is missing."""

    match: Match
    question: str = ""
    more: tuple[Match, ...] = ()
    """Further calls of the same tool, where several are wanted."""

    def calls(self, *, several: bool) -> list[Match]:
        """Return the calls to make, the first one alone unless there may be ``several``."""
        return [self.match, *(self.more if several else ())]


def is_shipped(tool: FunctionTool) -> bool:
    """Whether it is a tool of this product."""
    wanted = _PARAMETERS.get(tool.name)
    return wanted is not None and set(properties_of(tool.parameters)) == wanted


def match_shipped(text: str, tools: tuple[FunctionTool, ...]) -> ShippedMatch | None:
    """Return the tool of this product that ``text`` asks for, if it is among ``tools``."""
    offered = {tool.name: tool for tool in tools if is_shipped(tool)}
    for name, read in _READERS:
        if name in offered and (found := read(" ".join(text.split()).rstrip(" .!?"))) is not None:
            arguments, question = found
            tool = offered[name]
            missing = tuple(required_of(tool.parameters)) if question else ()
            first, *more = _each_place(arguments) if name == "current_time" else [arguments]
            others = tuple(Match(tool, _SURE, one, ()) for one in more)
            return ShippedMatch(Match(tool, _SURE, first, missing), question, others)
    return None


_Read = tuple[dict[str, Any], str]


def _set_timer(text: str) -> _Read | None:
    asked = re.search(
        rf"\b(?:set|start|make|need|want)\b.*\b{_TIMER}\b|^(?:a |an )?{_TIMER} (?:for|of)\b"
        r"|\b(?:remind|wake|alert) me in\b|\b(?:second|minute|hour)s? timer\b",
        text,
        _I,
    )
    if not asked:
        return None
    seconds = _duration(text)
    if seconds is None:
        return {}, "For how long shall I set it?"
    label = re.search(r"\bremind me in .*?\b(?:seconds?|minutes?|hours?) (?:to|about|of) (.+)", text, _I)
    label = label or re.search(r"\b(?:called|named|labelled) (.+?)(?: for \w+ .*)?$", text, _I)
    return {"seconds": seconds, **({"label": label[1][:60]} if label else {})}, ""


def _duration(text: str) -> int | None:
    total = 0.0
    for number in find_numbers(re.sub(r"\b(?:an?|one) (?=(?:second|minute|hour)\b)", "1 ", text, flags=_I)):
        total += number.value * _UNITS.get(number.following.rstrip("s"), 0)
    if half := re.search(r"\bhalf an? (hour|minute)\b", text, _I):
        # "Half an hour" was counted as an hour above.
        total -= _UNITS[half[1].lower()] / 2
    return round(total) if total >= 1 else None


def _cancel_timer(text: str) -> _Read | None:
    asked = re.search(rf"\b(?:cancel|stop|delete|remove|turn off|clear)\b.*\b{_TIMER}\b", text, _I)
    return ({}, "") if asked else None


def _list_timers(text: str) -> _Read | None:
    asked = re.search(
        rf"\b(?:what|which|list|show|how (?:long|much|many)|any|have)\b.*\b{_TIMER}\b"
        rf"|\b{_TIMER}\b.*\b(?:left|running)\b",
        text,
        _I,
    )
    return ({}, "") if asked else None


def _take_note(text: str) -> _Read | None:
    found = re.search(
        r"\b(?:take|make|write|add|save|keep)(?: me)? (?:a |this |the |another )?(?:new )?notes?\b(.*)"
        r"|\bnote (?:down\b|that\b)(.*)|\bwrite (?:this |that )?down\b(.*)|^remember (?:that|to)\b(.*)",
        text,
        _I | re.S,
    )
    if not found:
        return None
    rest = next((part for part in found.groups() if part is not None), "")
    said = re.sub(r"^[\s:,.;-]*(?:(?:that|saying|which says|of|to|for|about)\b[\s:,]*)?", "", rest, flags=_I)
    return ({"text": said[:1000]}, "") if said else ({}, "What shall I note?")


def _list_notes(text: str) -> _Read | None:
    asked = re.search(
        r"\b(?:my|any|all)(?: \w+)? notes?\b|\b(?:list|show|read)(?: me)?(?: the)? notes?\b", text, _I
    )
    if not asked:
        return None
    about = re.search(r"\bnotes? (?:about|with|on) (.+)", text, _I)
    return ({"words": about[1][:200]} if about else {}), ""


def _delete_note(text: str) -> _Read | None:
    asked = re.search(r"\b(?:delete|remove|erase|forget)\b.*\bnotes?\b(.*)", text, _I)
    if not asked:
        return None
    words = re.sub(
        r"^[\s:,]*(?:(?:about|with|on|that says|saying|of)\b\s*)?(?:(?:the|a|an|my)\s+(?=\w))?", "", asked[1],
        flags=_I,
    )  # fmt: skip
    return ({"words": words[:200]}, "") if words else ({}, "Which words are in it?")


def _undo_delete_note(text: str) -> _Read | None:
    """Read "bring back the note" and "undelete my notes", and "undo" as what was said whole."""
    note = r"(?:the|that|this|my|those|these)?(?: last| deleted)* ?notes?"
    asked = re.search(
        rf"\b(?:(?:bring|get|put|give me) {note} back|(?:bring back|restore|recover|undelete) {note})\b"
        rf"|\bundo (?:(?:the )?delet\w+|{note})\b"
        r"|^(?:please )?undo(?: (?:it|that|this))?(?:,? please)?$",
        text,
        _I,
    )
    return ({}, "") if asked and not re.search(r"\b(?:don't|do not|never)\b", text, _I) else None


def _search(text: str) -> _Read | None:
    found = re.search(
        r"\b(?:search|look|find)\b.*\b(?:conversations?|talks?|history|past)\b.*?\b(?:for|about|with)\s+(.+)"
        r"|\b(?:what did (?:we|i|you)|when did (?:we|i)|did (?:we|i)(?: ever)?) (?:say|talk|speak)"
        r"(?: last time)? about (.+)",
        text,
        _I,
    )
    words = (found[1] or found[2]) if found else ""
    if not words or re.fullmatch(r"(?:last time|before|yesterday|it|that|this)", words, _I):
        return None
    return {"words": words[:200]}, ""


def _hang_up(text: str) -> _Read | None:
    asked = re.search(r"\b(?:hang up|end (?:the|this|our) (?:call|conversation))\b", text, _I)
    return ({}, "") if asked and not re.search(r"\b(?:don't|do not|never|not)\b", text, _I) else None


def _hand_over(text: str) -> _Read | None:
    found = re.search(
        r"\b(?:let me|i want to|i would like to|i'd like to|can i|could i|may i|please) (?:talk|speak) "
        r"(?:to|with) (.+)"
        r"|\b(?:hand|pass|put|connect|transfer) (?:me|this|us)(?: over| through| on)* to (.+)",
        text.replace("’", "'"),
        _I,
    )
    name = re.sub(r",? (?:please|now|instead)$", "", (found[1] or found[2]) if found else "", flags=_I)
    # "Let me talk to you about the weather" names nobody.
    if not name or re.match(r"(?:you|someone|somebody|a|an|my)\b", name, _I):
        return None
    return {"name": re.sub(r"^the (?:assistant )?", "", name, flags=_I)[:100]}, ""


def _convert(text: str) -> _Read | None:
    """Read "convert 5 miles to kilometers", "5 miles in kilometers" and "how many grams are in a pound"."""
    unit = r"([a-z°²³/]+(?: (?:per |feet|foot|met\w+|miles?|ounces?|gallons?|pints?|hours?)[a-z ]*)?)"
    asked = re.search(
        rf"\bhow (?:many|much) {unit} (?:are|is|make|do you get|go)(?: there)?(?: in(?:to)?)? (.+?) {unit}$",
        text, _I,
    )  # fmt: skip
    if asked:
        wanted, amount, given = asked.groups()
    else:
        asked = re.search(
            r"\b(?:convert|change|turn|what is|what's|what are|how much is) (.+?) "
            rf"{unit} (?:to|in|into|as) {unit}$",
            text, _I,
        )  # fmt: skip
        if not asked:
            return None
        amount, given, wanted = asked.groups()
    numbers = find_numbers(re.sub(r"\b(?:an?|one)$", "1", amount.strip(), flags=_I))
    if len(numbers) != 1:
        return None
    return {"amount": numbers[0].value, "from_unit": given, "to_unit": wanted}, ""


_LATE: Final = r"(?:(?:the )?(?:current |exact |local )?(?:time|hour|day|date)(?: and (?:time|date))?|late)"
_PLACES: Final = re.compile(
    rf"(?:\b(?:what(?:'s| is)?|which|how|tell me|know|say|give me) |^){_LATE}"
    r"(?: is it| it is)?(?: today| now| right now| currently)? (?:in|at) (?:the city of )?(.+)",
    _I,
)


def _current_time(text: str) -> _Read | None:
    """Read "what time is it in Paris"; without a place, the brain's own clock is asked."""
    found = _PLACES.search(text.replace("’", "'"))
    if not found:
        return None
    place = re.sub(r"(?:,? (?:please|today|now|right now|at the moment))+$", "", found[1], flags=_I)
    # "In half an hour" and "in our office" are no cities.
    if re.match(r"(?:a|an|half|my|your|our|this|that|these|here)\b", place, _I) or find_numbers(place):
        return None
    return {"place": place[:100]}, ""


_NO_PLACE: Final = re.compile(
    r"(?:what|how|who|when|where|why|which|is|are|will|do|does|can|could|then|also|please|set|tell|take|make)\b"
    r"|$|\w+ (?:me|my|a|the|is)\b",
    _I,
)


def asks_elsewhere(text: str) -> bool:
    """Whether a sentence asks for the time in a place that it names."""
    return _current_time(" ".join(text.split()).rstrip(" .!?")) is not None


def _each_place(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments for each of "Paris and in Tokyo"."""
    first, *more = re.split(r",? and (?:in |at )?", arguments["place"], flags=_I)[:_MAX_PLACES]
    # What is asked for besides ("and what is the weather") is no city.
    others = itertools.takewhile(lambda place: not _NO_PLACE.match(place), more)
    return [{"place": place} for place in (first, *others)]


def _calculate(text: str) -> _Read | None:
    written = written_sum(text) if len(text) <= _MAX_SUM_CHARS else None
    return ({"expression": written}, "") if written and len(written) <= _MAX_SUM_CHARS else None


_READERS: Final[tuple[tuple[str, Callable[[str], _Read | None]], ...]] = (
    ("hang_up", _hang_up),
    ("cancel_timer", _cancel_timer),
    ("undo_delete_note", _undo_delete_note),
    ("delete_note", _delete_note),
    ("take_note", _take_note),
    ("list_notes", _list_notes),
    ("set_timer", _set_timer),
    ("list_timers", _list_timers),
    ("search_conversations", _search),
    ("hand_over", _hand_over),
    ("convert_units", _convert),
    ("current_time", _current_time),
    ("calculate", _calculate),
)
