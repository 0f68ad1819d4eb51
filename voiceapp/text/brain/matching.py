"""Which of a session's tools a sentence asks for, and with what arguments; by words alone, no model."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from voiceapp.text.brain.clauses import without_instructions
from voiceapp.text.brain.numbers import SpokenNumber, find_numbers
from voiceapp.text.brain.schemas import fits, kind_of, options_of, properties_of, required_of
from voiceapp.text.provider import FunctionTool

_WORD: Final = re.compile(r"[a-z0-9]+")
_STOP: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "get",
        "give",
        "have",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "let",
        "like",
        "me",
        "my",
        "of",
        "on",
        "or",
        "please",
        "s",
        "set",
        "so",
        "tell",
        "that",
        "the",
        "their",
        "there",
        "this",
        "to",
        "up",
        "use",
        "used",
        "using",
        "want",
        "was",
        "we",
        "what",
        "when",
        "which",
        "will",
        "with",
        "would",
        "you",
        "your",
        "going",
        "name",
        "value",
        "current",
        "user",
        "function",
        "tool",
        "returns",
        "return",
        "specific",
        "given",
    ]
)
_NAME_WEIGHT: Final = 3.0
_DESCRIPTION_WEIGHT: Final = 1.0
_PARAMETER_WEIGHT: Final = 0.75
# One word of a tool's name, or three of its description.
_ENOUGH: Final = 3.0
_MAX_READ_CHARS: Final = 4_000
"""Characters of a tool's description, and of all that its parameters are described with, that are read."""
_MAX_READ: Final = 64
"""Parameters of a tool, inner ones included, that are looked for in a sentence."""

_PLACE: Final = frozenset(
    [
        "city",
        "location",
        "place",
        "town",
        "country",
        "region",
        "where",
        "destination",
        "address",
        "station",
        "area",
    ]
)
_ORIGIN: Final = frozenset(["origin", "from", "source", "start", "departure"])
_TARGET: Final = frozenset(["destination", "to", "target", "recipient", "end", "arrival"])
_TEXT: Final = frozenset(
    [
        "query",
        "text",
        "message",
        "note",
        "question",
        "content",
        "prompt",
        "search",
        "description",
        "body",
        "title",
        "task",
    ]
)
_PERSON: Final = frozenset(["name", "person", "recipient", "contact", "user", "who"])
_IDENTIFIER: Final = frozenset(["id", "number", "no", "code", "key", "reference", "ref", "sku"])
_WITH_DIGITS: Final = re.compile(r"(?<![\w.,:])#?((?:[A-Za-z]+-?)?\d[\w-]*)(?![.:,]?\w)")
# What begins a sentence in front of "is" or "lives", and is no name.
_NO_NAME: Final = frozenset(["he", "she", "they", "who", "where", "why", "here", "everybody", "nobody"])
_NEGATION: Final = re.compile(r"\b(?:off|not|no|don't|do not|stop|disable|without|never)\b", re.I)
_UNIT_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_DAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_CAPITALISED: Final = r"((?:[A-Z][\w'’-]*)(?:\s+(?:of|de|the)?\s*[A-Z][\w'’-]*)*)"


@dataclass(frozen=True, slots=True)
class Match:
    """A tool, how well it fits (more is better), and the arguments; ``missing`` lists what was not said."""

    tool: FunctionTool
    score: float
    arguments: dict[str, Any]
    missing: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the sentence really asks for this tool."""
        return self.score >= _ENOUGH


def match_tool(text: str, tools: tuple[FunctionTool, ...], today: dt.date) -> Match | None:
    """Return the tool that fits ``text`` best; ``None`` where there are no tools."""
    if not tools:
        return None
    scored = [(score_tool(text, tool), tool) for tool in tools]
    score, tool = max(scored, key=lambda pair: pair[0])
    arguments, missing = fill_arguments(without_instructions(text), tool.parameters, today)
    return Match(tool, score, arguments, missing)


def score_tool(text: str, tool: FunctionTool) -> float:
    """Return how much of ``text`` speaks of ``tool``."""
    said = _asked(text[:_MAX_READ_CHARS])
    properties = list(properties_of(tool.parameters).items())[:_MAX_READ]
    described = " ".join(
        f"{name[:100]} {str(detail.get('description') or '')[:200]}" for name, detail in properties
    )
    split_name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool.name).replace("_", " ").replace("-", " ")
    in_name = said & _stems(split_name)
    in_description = (said & _stems(tool.description)) - in_name
    in_parameters = (said & _stems(described)) - in_name - in_description
    return (
        len(in_name) * _NAME_WEIGHT
        + len(in_description) * _DESCRIPTION_WEIGHT
        + len(in_parameters) * _PARAMETER_WEIGHT
    )


# One answer asks for the same ones again and again, for each part of a sentence.
@lru_cache(maxsize=512)
def _stems_of(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP)


def _stems(text: str) -> frozenset[str]:
    return _stems_of(text[:_MAX_READ_CHARS])


@lru_cache(maxsize=512)
def _asked(text: str) -> frozenset[str]:
    """Return the stems of a sentence; "times" that multiplies or counts asks for no time."""
    stems, words = _stems_of(text), _WORD.findall(text.lower())
    if "times" not in words or "time" in words:
        return stems
    counts = re.search(r"\b(?:many|few|several|some|all) times\b", text, re.I) is not None
    counts = counts or any(number.following == "times" for number in find_numbers(text))
    return stems - {_stem("times")} if counts else stems


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("e")


# -- arguments ------------------------------------------------------------------------------------------


class _Room:
    """How many parameters may still be looked for, one in another included."""

    def __init__(self) -> None:
        self._left = _MAX_READ

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0


def fill_arguments(
    text: str, schema: dict[str, Any], today: dt.date, room: _Room | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return arguments that ``text`` gives for an object schema, and the required names that it does not."""
    properties, required = properties_of(schema), required_of(schema)
    if not properties:
        return {}, ()
    reader = _Reader(text, today, room or _Room())
    arguments: dict[str, Any] = {}
    wanted = frozenset(required)
    ordered = sorted(properties, key=lambda name: name not in wanted)
    for name in ordered[:_MAX_READ]:
        detail = properties[name]
        value = reader.read(name, detail, alone=len(required) == 1 and name in wanted)
        if value is not None and fits(value, detail):
            arguments[name] = value
    return arguments, tuple(name for name in required if name not in arguments)


class _Reader:
    """Values out of one sentence; each number and each name is used once."""

    def __init__(self, text: str, today: dt.date, room: _Room) -> None:
        self._text = text
        self._today = today
        self._room = room
        self._numbers = find_numbers(text)
        self._used: set[str] = set()

    def read(self, name: str, schema: dict[str, Any], *, alone: bool) -> Any:
        """Return the value for one property, or ``None`` where the sentence does not give it."""
        if not self._room.take():
            return None
        if (options := options_of(schema)) is not None:
            return self._choice(options)
        match kind_of(schema):
            case "integer":
                value = self._number(name)
                return None if value is None else int(value)
            case "number":
                return self._number(name)
            case "boolean":
                return self._switch(name)
            case "array":
                items = schema.get("items")
                inner = self.read(name, items if isinstance(items, dict) else {}, alone=alone)
                return None if inner is None else [inner]
            case "object":
                arguments, missing = fill_arguments(self._text, schema, self._today, self._room)
                return None if missing or not arguments else arguments
            case "string":
                return self._string(name, schema, alone=alone)
        return None

    def _choice(self, options: list[Any]) -> Any:
        said = self._text.lower()
        for option in sorted((o for o in options if isinstance(o, str)), key=len, reverse=True):
            words = option.lower().replace("_", " ")
            if words in said and re.search(rf"\b{re.escape(words)}\b", said):
                return option
        numbers = {number.value for number in self._numbers}
        return next((o for o in options if isinstance(o, int | float) and o in numbers), None)

    def _number(self, name: str) -> float | None:
        unit = next(
            (unit for unit in _UNIT_SECONDS if unit in name.lower() or f"{unit[:3]}s" == name[-4:]), None
        )
        for number in self._numbers:
            said_unit = number.following.rstrip("s")
            if unit and said_unit in _UNIT_SECONDS:
                return self._take(number, number.value * _UNIT_SECONDS[said_unit] / _UNIT_SECONDS[unit])
        return self._take(self._numbers[0], self._numbers[0].value) if self._numbers else None

    def _take(self, number: SpokenNumber, value: float) -> float:
        self._numbers.remove(number)
        return int(value) if value == int(value) else value

    def _switch(self, name: str) -> bool | None:
        if not _stems(name.replace("_", " ")) & _stems(self._text) and not re.search(
            r"\b(?:on|off|enable|disable)\b", self._text, re.I
        ):
            return None
        return _NEGATION.search(self._text) is None

    def _string(self, name: str, schema: dict[str, Any], *, alone: bool) -> str | None:
        words = set(_WORD.findall(name.lower().replace("_", " ")))
        if "date" in words or "day" in words or schema.get("format") == "date":
            return self._date()
        if words & _IDENTIFIER:
            return self._identifier()
        if words & _ORIGIN:
            return self._after("from", anything=False)
        if words & _TARGET and (found := self._after("to", anything=False)):
            return found
        if words & _PLACE:
            return self._after("in|at|near|for|to|of", anything=False) or self._capitalised()
        if words & _PERSON and (found := self._person()):
            return found
        if words & _TEXT:
            return self._after("that|saying|say|about|for|to", anything=True) or self._text.strip()
        found = self._behind(words) or self._capitalised()
        return found or (self._text.strip(" .?!") if alone else None)

    def _identifier(self) -> str | None:
        """Return "7" of "order 7", "A-17" of "code A-17", and what answers the question for one."""
        for found in _WITH_DIGITS.finditer(self._text):
            if found[1] not in self._used:
                self._used.add(found[1])
                return found[1]
        if self._numbers:
            return f"{self._take(self._numbers[0], self._numbers[0].value)}"
        return self._capitalised() or self._behind(_IDENTIFIER) or self._after("for", anything=True)

    def _behind(self, words: Set[str]) -> str | None:
        """Return the word that stands behind a parameter's own: "red" of "paint it in the colour red"."""
        own = "|".join(re.escape(word) for word in words if len(word) > 1)
        pattern = rf"\b(?:{own or '(?!)'})\s+(?:is\s+|of\s+|to\s+|called\s+)?(\w[\w-]*)"
        return self._unused(pattern, _STOP, re.I)

    def _person(self) -> str | None:
        pattern = rf"(?:^|[.?!]\s+){_CAPITALISED}\s+(?:is|was|has|lives?|works?)\b"
        found = self._unused(pattern, _STOP | _NO_NAME)
        return found or self._after("named|called|call|name is|to|for", anything=False)

    def _after(self, words: str, *, anything: bool) -> str | None:
        what = r"([^.?!]+)" if anything else _CAPITALISED
        return self._unused(rf"\b(?:{words})\s+(?:the\s+)?{what}", (*_DAYS, "i"))

    def _capitalised(self) -> str | None:
        return self._unused(rf"(?<![.?!]\s)(?<!^)\b{_CAPITALISED}", (*_DAYS, "i", "i'm"))

    def _unused(self, pattern: str, but: Collection[str], flags: int = 0) -> str | None:
        """Return the first that fits and was not taken before; it is taken now."""
        for match in re.finditer(pattern, self._text, flags):
            found = match[1].strip()
            if found not in self._used and found.lower() not in but:
                self._used.add(found)
                return found
        return None

    def _date(self) -> str | None:
        said = self._text.lower()
        if iso := re.search(r"\b\d{4}-\d{2}-\d{2}\b", said):
            return iso[0]
        ahead = next((days for word, days in (("day after tomorrow", 2), ("tomorrow", 1), ("today", 0),
                                              ("tonight", 0)) if word in said), None)  # fmt: skip
        if ahead is None:
            day = next((index for index, day in enumerate(_DAYS) if day in said), None)
            if day is None and "weekend" in said:
                day = 5
            if day is None:
                return None
            ahead = (day - self._today.weekday()) % 7
        return (self._today + dt.timedelta(days=ahead)).isoformat()
