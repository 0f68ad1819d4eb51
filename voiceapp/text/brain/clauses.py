"""A request cut into its clauses: sentences, lists of values, and what is only said about the tools; pure."""

from __future__ import annotations

import re
from typing import Final

_TOOL: Final = r"(?:(?:the|your|a|an|only the|just the)\s+)?[`\"'“]?[\w.-]+[`\"'”]?\s+(?:tool|function)s?"
_ABOUT_TOOLS: Final = re.compile(
    rf"(?:^|(?<=[\s,;:(]))(?:(?:please|and|then|now|also)\s+)*"
    rf"(?:you (?:must|should|may|can)\s+)?"
    rf"(?:use|using|call|calling|invoke|invoking|run|with|via|through|by using)\s+"
    rf"{_TOOL}\b(?:\s+(?:for|to do|to answer)\s+(?:this|that|it))?\s*(?:please)?\s*[,:;)]*\s*",
    re.I,
)
_SENTENCE: Final = re.compile(r"(?<=[.?!;])\s+|\n+")
_VALUE: Final = r"[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*"
_LIST: Final = re.compile(rf"\b{_VALUE}(?:,\s+(?:in\s+)?{_VALUE})+,?\s+(?:and|or)\s+(?:in\s+)?{_VALUE}")
# What is compared is two as well; "than" before a number is a bound.
_JOINED: Final = re.compile(
    r"\s*,?\s*\b(?:and then|and also|as well as|and|then|also|or|than(?=\s+(?:in\s+)?(?-i:[A-Z])))\b\s*", re.I
)
_UNITS: Final = ("second", "minute", "hour", "day")
_UNIT: Final = rf"({'|'.join(_UNITS)})s?"
_DURATION: Final = re.compile(
    rf"\b{_UNIT},?\s+and\s+(?:(a\s+half)\b|(?:[\w.]+[\s-]+){{1,2}}?{_UNIT}\b)", re.I
)
_KEPT: Final = "\0"
MAX_PARTS: Final = 16


def without_instructions(text: str) -> str:
    """Return a request without what it says about the tools: "use the get_forecast tool" is no argument.

    Where it says nothing else it is returned as it is.
    """
    rest = " ".join(_ABOUT_TOOLS.sub(" ", text).split())
    return rest if re.search(r"\w", rest) else text


def sentences(text: str) -> list[str]:
    """Return the sentences of a request, what they say about tools left out."""
    found = [sentence.strip() for sentence in _SENTENCE.split(_ABOUT_TOOLS.sub(" ", text))]
    return [sentence for sentence in found if re.search(r"\w", sentence)][:MAX_PARTS]


def clauses(sentence: str) -> list[str]:
    """Return what one sentence joins: by words such as "and", and in a list of names by its commas."""
    # Other commas stay: they stand in dates and in "Paris, France" as well.
    listed = _LIST.sub(lambda found: re.sub(r",\s+(?!and\b|or\b)", " and ", found[0]), sentence)
    parts = _JOINED.split(_DURATION.sub(_kept, listed), MAX_PARTS)
    return [part.replace(_KEPT, "and") for part in parts if part.strip()][:MAX_PARTS]


def _kept(found: re.Match[str]) -> str:
    """Return "one hour and ten minutes", and "an hour and a half", so that it is not cut in two."""
    smaller = found[2] or _UNITS.index(found[3].lower()) < _UNITS.index(found[1].lower())
    return re.sub(r"\band\b", _KEPT, found[0], flags=re.I) if smaller else found[0]
