"""How the brain calls tools and tells what they brought."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from voiceapp.text.foreign_schema import placeholder, properties_of
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    ReplyRequest,
    Returned,
)
from voiceapp.text.tool_matching import Match

_ARGUMENT_PIECE: Final = 16
_LONGEST_RESULT: Final = 100_000
"""Characters of a result that is read as JSON; nobody wants to hear a longer one."""
_DEEPEST_TOLD: Final = 4
_MOST_FACTS: Final = 50


def fresh_results(request: ReplyRequest) -> list[Returned]:
    """Return the tool results at the end of the history, which nobody has told the user yet."""
    fresh: list[Returned] = []
    for item in reversed(request.history):
        if isinstance(item, Returned):
            fresh.append(item)
        elif not isinstance(item, Called):
            break
    return fresh[::-1]


def calls(matches: Sequence[Match], request: ReplyRequest) -> Iterator[Delta]:
    """Yield calls whose arguments are valid for their tools, in pieces, one call after the other."""
    before = sum(isinstance(item, Called) for item in request.history)
    for index, match in enumerate(matches):
        properties = properties_of(match.tool.parameters)
        arguments = dict(match.arguments)
        for name in match.missing:
            arguments[name] = placeholder(properties.get(name, {}))
        yield CallStarted(index, f"call_{before + index}", match.tool.name)
        text = json.dumps(arguments)
        for start in range(0, len(text), _ARGUMENT_PIECE):
            yield CallArguments(index, text[start : start + _ARGUMENT_PIECE])
        yield CallFinished(index)


def tell_results(results: list[Returned], request: ReplyRequest) -> str:
    """Return results as sentences."""
    names = {item.call_id: item.name for item in request.history if isinstance(item, Called)}
    sentences = []
    for result in results:
        name = spoken_name(names.get(result.call_id, "the tool"))
        value: Any = result.output[:_LONGEST_RESULT]
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
        sentences.append(_tell(name, value))
    return " ".join(sentences)


def _tell(name: str, value: Any) -> str:
    if isinstance(value, dict) and "error" in value:
        error = value["error"]
        reason = error.get("message", error) if isinstance(error, dict) else error
        return f"I am sorry, {name} did not work: {_plain(reason).rstrip('.')}."
    if isinstance(value, dict):
        facts = [f"{spoken_name(key)} is {_plain(inner)}" for key, inner in list(value.items())[:_MOST_FACTS]]
        listed = ", ".join(facts[:-1]) + (" and " if facts[:-1] else "") + facts[-1] if facts else "done"
        return f"Here is what {name} says: {listed}."
    plain = _plain(value)
    return plain if plain.endswith((".", "!", "?")) else f"{name.capitalize()} says: {plain}."


def _plain(value: Any, depth: int = 0) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "nothing"
        case list() | dict() if depth > _DEEPEST_TOLD:
            return "more"
        case list():
            return ", ".join(_plain(inner, depth + 1) for inner in value[:5]) or "nothing"
        case dict():
            parts = list(value.items())[:5]
            return ", ".join(f"{spoken_name(key)} {_plain(inner, depth + 1)}" for key, inner in parts)
        case _:
            return str(value).strip()


def spoken_name(name: str) -> str:
    """Return an identifier as words: ``get_weather`` is "get weather"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-]+", " ", name).strip().lower()
