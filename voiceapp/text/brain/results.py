"""How the brain calls tools and tells what they brought."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal, DecimalException
from typing import Any, Final

from voiceapp.language.punctuation import ended, without_end
from voiceapp.text.brain.matching import Match
from voiceapp.text.brain.numbers import say_number
from voiceapp.text.brain.schemas import placeholder, properties_of
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    ReplyRequest,
    Returned,
)

_ARGUMENT_PIECE: Final = 16
_MAX_RESULT_CHARS: Final = 100_000
"""Characters of a result that is read as JSON; nobody wants to hear a longer one."""
_MAX_SPOKEN_DEPTH: Final = 4
_MAX_FACTS: Final = 8
_MAX_OF_LIST: Final = 5
_MAX_READ_OUT, _MIN_READ_OUT = Decimal(10) ** 15, Decimal(1) / 10**4


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
        name = names.get(result.call_id, "")
        value: Any = result.output[:_MAX_RESULT_CHARS]
        with suppress(ValueError, RecursionError):
            # Decimals, as a float would have lost digits already.
            value = json.loads(value, parse_float=Decimal)
        sentences.append(_tell(name, value))
    return " ".join(sentences)


def _tell(tool: str, value: Any) -> str:
    if isinstance(value, dict) and "error" in value:
        error = value["error"]
        if isinstance(error, dict) and error.get("code") == "not_approved":
            # Its message is about the user, to whom this is said.
            return "I did not do that, as you did not allow it."
        reason = error.get("message", error) if isinstance(error, dict) else error
        return ended(f"I am sorry, that did not work: {_plain(reason)}")
    value = _unwrapped(value)
    match value:
        case dict():
            return _facts_in_words(value)
        case []:
            return "There is nothing."
        case bool() | None:
            return f"{_plain(value).capitalize()}."
        case int() | float() | Decimal():
            subject = _VERBS.sub("", spoken_name(tool))
            return f"{f'The {subject} is' if subject else 'That is'} {_said(value)}."
    plain = _plain(value)
    plain = plain[:1].upper() + plain[1:]
    return ended(plain) or plain.strip() or "There is nothing."


_VERBS: Final = re.compile(
    r"^(?:(?:get|fetch|read|find|look up|search|show|list|query|check|count|calculate|compute|tell|the)\b ?)+"
)
# What programs tell each other about an answer, beside the answer.
_NOISE: Final = frozenset(
    [
        "method", "path", "url", "uri", "href", "link", "links", "headers", "etag", "id", "uuid", "object",
        "status code", "content type", "request id", "trace id", "created at", "updated at", "cursor",
    ]
)  # fmt: skip
_WRAPPINGS: Final = frozenset(
    ["data", "result", "response", "answer", "output", "message", "text", "content"]
)
_TITLES: Final = ("name", "title", "label")


def _unwrapped(value: Any) -> Any:
    """Return what is inside objects of one field that only says that something is inside."""
    for _ in range(_MAX_SPOKEN_DEPTH):
        if not isinstance(value, dict) or len(value) != 1:
            break
        ((key, inner),) = value.items()
        if spoken_name(key) not in _WRAPPINGS:
            break
        value = inner
    return value


def _facts_in_words(value: dict[str, Any]) -> str:
    """Return an object's fields as one sentence, without those that only programs read."""
    named = [(spoken_name(key), inner) for key, inner in value.items()]
    # That it failed is told, that it did not fail is not worth a word.
    telling = [
        (key, inner)
        for key, inner in named
        if inner not in (None, "", [], {}) and not (key in ("ok", "success") and inner is True)
    ]
    plain = [(key, inner) for key, inner in telling if not _is_noise(key, inner)]
    kept = plain or telling
    if not kept:
        return "That is done."
    facts = [_fact(key, inner) for key, inner in kept[:_MAX_FACTS]]
    if len(kept) > _MAX_FACTS:
        facts.append("there is more")
    spoken = _listed(facts)
    return f"{spoken[:1].upper()}{spoken[1:]}."


def _is_noise(key: str, value: Any) -> bool:
    return key in _NOISE or (isinstance(value, str) and value.startswith(("http://", "https://")))


def _fact(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{key}: {_plain(value)}"
    several = isinstance(value, list) and len(value) > 1
    return f"the {key} {'are' if several else 'is'} {without_end(_plain(value))}"


def _listed(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _said(value: float | Decimal) -> str:
    """Return a number to be heard: with at most four decimals, and words for what has too many digits."""
    try:
        exact = Decimal(str(value))
        if not exact.is_finite():
            return str(value)
    except DecimalException:
        return str(value)
    if abs(exact) >= _MAX_READ_OUT or 0 < abs(exact) < _MIN_READ_OUT:
        power = exact.adjusted()
        digits = f"{exact.scaleb(-power):.2f}".rstrip("0").rstrip(".").replace("-", "minus ")
        return f"about {digits} times ten to the power of {str(power).replace('-', 'minus ')}"
    spoken = say_number(float(exact))
    return spoken if exact == round(exact, 4) else f"about {spoken}"


def _plain(value: Any, depth: int = 0) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "nothing"
        case int() | float() | Decimal():
            return _said(value)
        case list() | dict() if depth > _MAX_SPOKEN_DEPTH:
            return "more"
        case list():
            spoken = [_plain(inner, depth + 1) for inner in value[:_MAX_OF_LIST]]
            rest = len(value) - len(spoken)
            return _listed([*spoken, f"{rest} more"] if rest else spoken) or "nothing"
        case dict():
            titles = [value[key] for key in _TITLES if isinstance(value.get(key), str)]
            if titles and depth > 0:
                return str(titles[0]).strip()
            parts = list(value.items())[:_MAX_OF_LIST]
            return ", ".join(f"{spoken_name(key)} {_plain(inner, depth + 1)}" for key, inner in parts)
        case _:
            return str(value).strip()


def spoken_name(name: str) -> str:
    """Return an identifier as words: ``get_weather`` is "get weather"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-]+", " ", name).strip().lower()
