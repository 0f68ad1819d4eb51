"""How much of a sentence speaks of a tool, by the stems of their words; pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from voiceapp.text.brain.numbers import find_numbers
from voiceapp.text.brain.schemas import properties_of
from voiceapp.text.provider import FunctionTool

WORD: Final = re.compile(r"[a-z0-9]+")
STOP: Final = frozenset(
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
ENOUGH: Final = 3.0
_MAX_READ_CHARS: Final = 4_000
"""Characters of a tool's description, and of all that its parameters are described with, that are read."""
MAX_READ: Final = 64
"""Parameters of a tool, inner ones included, that are looked for in a sentence."""


def score_tool(text: str, tool: FunctionTool) -> float:
    """Return how much of ``text`` speaks of ``tool``."""
    said = _asked(text[:_MAX_READ_CHARS])
    named, described, asked_for = _words_of(tool)
    in_name = said & named
    in_description = (said & described) - in_name
    in_parameters = (said & asked_for) - in_name - in_description
    return (
        len(in_name) * _NAME_WEIGHT
        + len(in_description) * _DESCRIPTION_WEIGHT
        + len(in_parameters) * _PARAMETER_WEIGHT
    )


def tool_stems(tool: FunctionTool) -> frozenset[str]:
    """Return the stems of the words with which a tool is named and described."""
    return frozenset().union(*_words_of(tool))


def _words_of(tool: FunctionTool) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the stems of a tool's name, of its description, and of its parameters."""
    properties = list(properties_of(tool.parameters).items())[:MAX_READ]
    parameters = " ".join(
        f"{name[:100]} {str(detail.get('description') or '')[:200]}" for name, detail in properties
    )
    split_name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool.name).replace("_", " ").replace("-", " ")
    return stems(split_name), stems(tool.description), stems(parameters)


# One answer asks for the same ones again and again, for each part of a sentence.
@lru_cache(maxsize=512)
def _stems_of(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in WORD.findall(text.lower()) if word not in STOP)


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say something."""
    return _stems_of(text[:_MAX_READ_CHARS])


@lru_cache(maxsize=512)
def _asked(text: str) -> frozenset[str]:
    """Return the stems of a sentence; "times" that multiplies or counts asks for no time."""
    found, words = _stems_of(text), WORD.findall(text.lower())
    if "times" not in words or "time" in words:
        return found
    counts = re.search(r"\b(?:many|few|several|some|all) times\b", text, re.I) is not None
    counts = counts or any(number.following == "times" for number in find_numbers(text))
    return found - {_stem("times")} if counts else found


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("e")
