"""Which of a session's tools a sentence asks for, and with what arguments; by words alone, no model."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Set
from dataclasses import dataclass
from typing import Any, Final

from voiceapp.text.brain.clauses import sentences, without_instructions
from voiceapp.text.brain.numbers import SpokenNumber, find_numbers
from voiceapp.text.brain.schemas import fits, kind_of, options_of, properties_of, required_of
from voiceapp.text.brain.scoring import ENOUGH, MAX_READ, STOP, WORD, score_tool, stems
from voiceapp.text.provider import FunctionTool

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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What stands behind "in" and is no place: when it is, and in which language or scale the answer shall be.
_NO_PLACE: Final = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december christmas easter celsius fahrenheit kelvin english french "
    "german spanish italian portuguese dutch norwegian swedish danish finnish polish russian chinese "
    "japanese korean arabic hindi i i'm yes no"
)
# What stands in front of a request, and is no place either.
_NO_PLACE_IN_FRONT: Final = _NO_PLACE | _words(
    "answer example hello help hi important input instruction instructions message note now okay ok "
    "please prompt question request sure system task thanks urgent user weather"
)
_NEGATION: Final = re.compile(r"\b(?:off|not|no|don't|do not|stop|disable|without|never)\b", re.I)
_UNIT_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_DAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_IDENTIFIERS: Final = re.compile(r"\b\w*_\w*\b")
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
        return self.score >= ENOUGH


def match_tool(text: str, tools: tuple[FunctionTool, ...], today: dt.date) -> Match | None:
    """Return the tool that fits ``text`` best; ``None`` where there are no tools."""
    if not tools:
        return None
    scored = [(score_tool(text, tool), tool) for tool in tools]
    score, tool = max(scored, key=lambda pair: pair[0])
    arguments, missing = fill_arguments(without_instructions(text), tool.parameters, today)
    arguments |= _of_best_sentence(text, tool, arguments, today)
    return Match(tool, score, arguments, missing)


def _of_best_sentence(
    text: str, tool: FunctionTool, arguments: dict[str, Any], today: dt.date
) -> dict[str, Any]:
    """Return the arguments that the sentence gives which asks for the tool, where others give some as well.

    "I live in Norway. What is the weather in Oslo?" asks for Oslo.
    """
    # A tool that is only named is not asked for there: "Use get_forecast, and answer in French."
    scored = [(score_tool(_IDENTIFIERS.sub(" ", one), tool), one) for one in sentences(text)]
    if len(scored) < 2:
        return {}
    best, sentence = max(scored, key=lambda pair: pair[0])
    if [score for score, _ in scored].count(best) > 1:
        return {}
    given, _ = fill_arguments(sentence, tool.parameters, today)
    return {
        name: value
        for name, value in given.items()
        if name in arguments and not (isinstance(value, str) and set(WORD.findall(name.lower())) & _TEXT)
    }


# -- arguments ------------------------------------------------------------------------------------------


class _Room:
    """How many parameters may still be looked for, one in another included."""

    def __init__(self) -> None:
        self._left = MAX_READ

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
    timed = [name for name in properties if _unit_of(name)]
    reader = _Reader(text, today, room or _Room(), adds_up=len(timed) == 1)
    arguments: dict[str, Any] = {}
    wanted = frozenset(required)
    ordered = sorted(properties, key=lambda name: name not in wanted)
    for name in ordered[:MAX_READ]:
        detail = properties[name]
        value = reader.read(name, detail, alone=len(required) == 1 and name in wanted)
        if value is not None and fits(value, detail):
            arguments[name] = value
    return arguments, tuple(name for name in required if name not in arguments)


def _unit_of(name: str) -> str | None:
    """Return the unit of time that a parameter's name has, if it has one."""
    return next((unit for unit in _UNIT_SECONDS if unit in name.lower() or f"{unit[:3]}s" == name[-4:]), None)


def _in_numbers(text: str) -> str:
    """Return a text in which "half an hour", "an hour" and "an hour and a half" are numbers of hours."""
    unit = f"({'|'.join(_UNIT_SECONDS)})"
    text = re.sub(rf"\bhalf an? (?={unit}\b)", "0.5 ", text, flags=re.I)
    text = re.sub(rf"\b(?:an?|one) {unit} and a half\b", r"1.5 \1s", text, flags=re.I)
    return re.sub(rf"\ban? (?={unit}\b)", "1 ", text, flags=re.I)


class _Reader:
    """Values out of one sentence; each number and each name is used once."""

    def __init__(self, text: str, today: dt.date, room: _Room, *, adds_up: bool) -> None:
        """``adds_up``: "one hour and ten minutes" is one value, as only one is asked for that is a time."""
        self._text = text
        self._today = today
        self._room = room
        self._numbers = find_numbers(_in_numbers(text) if adds_up else text)
        self._adds_up = adds_up
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
        unit = _unit_of(name)
        for index, number in enumerate(self._numbers):
            said_unit = number.following.rstrip("s")
            if unit and said_unit in _UNIT_SECONDS:
                smaller = self._smaller(index) if self._adds_up else 0.0
                seconds = number.value * _UNIT_SECONDS[said_unit] + smaller
                return self._take(number, seconds / _UNIT_SECONDS[unit])
        return self._take(self._numbers[0], self._numbers[0].value) if self._numbers else None

    def _smaller(self, index: int) -> float:
        """Return, in seconds, what smaller units follow a number: "ten minutes" of "one hour ten minutes"."""
        before = self._numbers[index]
        if len(self._numbers) <= index + 1:
            return 0.0
        number = self._numbers[index + 1]
        sizes = [_UNIT_SECONDS.get(one.following.rstrip("s"), 0) for one in (before, number)]
        if not 0 < sizes[1] < sizes[0] or number.value * sizes[1] >= sizes[0]:
            return 0.0
        more = number.value * sizes[1] + self._smaller(index + 1)
        del self._numbers[index + 1]
        return more

    def _take(self, number: SpokenNumber, value: float) -> float:
        self._numbers.remove(number)
        return int(value) if value == int(value) else value

    def _switch(self, name: str) -> bool | None:
        if not stems(name.replace("_", " ")) & stems(self._text) and not re.search(
            r"\b(?:on|off|enable|disable)\b", self._text, re.I
        ):
            return None
        return _NEGATION.search(self._text) is None

    def _string(self, name: str, schema: dict[str, Any], *, alone: bool) -> str | None:
        words = set(WORD.findall(name.lower().replace("_", " ")))
        if "date" in words or "day" in words or schema.get("format") == "date":
            return self._date()
        if words & _IDENTIFIER:
            return self._identifier()
        if words & _ORIGIN:
            return self._after("from", anything=False)
        if words & _TARGET and (found := self._after("to", anything=False)):
            return found
        if words & _PLACE:
            found = self._after("in|at|near|for|to|of", anything=False, but=_NO_PLACE)
            return found or self._capitalised(_NO_PLACE) or self._in_front()
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
        return self._unused(pattern, STOP, re.I)

    def _person(self) -> str | None:
        pattern = rf"(?:^|[.?!]\s+){_CAPITALISED}\s+(?:is|was|has|lives?|works?)\b"
        found = self._unused(pattern, STOP | _NO_NAME)
        return found or self._after("named|called|call|name is|to|for", anything=False)

    def _after(self, words: str, *, anything: bool, but: Collection[str] = ("i",)) -> str | None:
        what = r"([^.?!]+)" if anything else _CAPITALISED
        return self._unused(rf"\b(?:{words})\s+(?:the\s+)?{what}", (*_DAYS, *but))

    def _capitalised(self, but: Collection[str] = ("i", "i'm")) -> str | None:
        return self._unused(rf"(?<![.?!]\s)(?<!^)\b{_CAPITALISED}", (*_DAYS, *but))

    def _in_front(self) -> str | None:
        """Return "Oslo" of "Oslo: what is the weather?" and of "Oslo, please."."""
        return self._unused(
            rf"(?:^|[.?!]\s+){_CAPITALISED}(?=\s*(?::|,\s*please\b|[.!?]?$))", _NO_PLACE_IN_FRONT
        )

    def _unused(self, pattern: str, but: Collection[str], flags: int = 0) -> str | None:
        """Return the first that fits and was not taken before; it is taken now."""
        for match in re.finditer(pattern, self._text, flags):
            found = match[1].strip()
            if found not in self._used and found.lower() not in but and "_" not in found:
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
