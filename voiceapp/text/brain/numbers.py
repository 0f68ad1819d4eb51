"""Numbers and sums as people say them: "twenty five", "three point five", "twelve times three"."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import Final

_SMALL: Final = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS: Final = {
    word: value * 10
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}
_SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_TOKEN: Final = re.compile(r"\d[\d,]*(?:\.\d+)?|[a-z]+|[-+*/x×÷^()%]", re.IGNORECASE)
_MAX_EXPONENT: Final = 64


def number_words(value: int) -> str:
    """Return a whole number from 0 to 999 in words."""
    for word, small in _SMALL.items():
        if value == small:
            return word
    if value < 100:
        tens = next(word for word, ten in _TENS.items() if ten == value // 10 * 10)
        return tens if value % 10 == 0 else f"{tens}-{number_words(value % 10)}"
    rest = f" and {number_words(value % 100)}" if value % 100 else ""
    return f"{number_words(value // 100)} hundred{rest}"


_MAX_NUMBER: Final = 1e300
"""What is said to be larger is taken for this: all that follows can be worked out with it."""


@dataclass(frozen=True, slots=True)
class SpokenNumber:
    """A number found in a sentence, and the words after which it stands or which follow it."""

    value: float
    following: str


def find_numbers(text: str) -> list[SpokenNumber]:
    """Return the numbers in ``text``, in digits or words, with the word that follows each."""
    tokens = _merge(_tokens(text))
    return [
        SpokenNumber(
            min(token, _MAX_NUMBER), str(tokens[index + 1]).lower() if index + 1 < len(tokens) else ""
        )
        for index, token in enumerate(tokens)
        if isinstance(token, float)
    ]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(
        text.replace("-", " - ") if re.search(r"\d\s*-\s*\d", text) else text.replace("-", " ")
    )


def _merge(tokens: list[str]) -> list[str | float]:
    """Replace runs of number words by numbers."""
    merged: list[str | float] = []
    index = 0
    while index < len(tokens):
        value, index_after = _number(tokens, index)
        if value is None:
            merged.append(tokens[index])
            index += 1
        else:
            merged.append(value)
            index = index_after
    return merged


def _number(tokens: list[str], start: int) -> tuple[float | None, int]:
    """Read the number that begins at ``start``; (``None``, start) where there is none."""
    token = tokens[start].lower()
    if token[0].isdigit():
        value, index = float(token.replace(",", "")), start + 1
        while index < len(tokens) and tokens[index].lower() in _SCALES:
            value *= _SCALES[tokens[index].lower()]
            index += 1
        return value, index
    if token not in _SMALL and token not in _TENS and token not in ("hundred", "thousand", "a"):
        return None, start
    following = tokens[start + 1].lower() if start + 1 < len(tokens) else ""
    if token == "a" and following not in ("hundred", *_SCALES):  # noqa: S105 - a word, not a secret
        return None, start
    return _number_in_words(tokens, start)


def _number_in_words(tokens: list[str], start: int) -> tuple[float, int]:
    total, group, index, last = 0, 0, start, 0
    while index < len(tokens):
        word = tokens[index].lower()
        if word == "a" and index == start:
            group = 1
        elif word in _TENS and (last == 0 or last >= 100):
            group, last = group + _TENS[word], _TENS[word]
        elif word in _SMALL and (last == 0 or last >= 100 or (20 <= last <= 90 and 0 < _SMALL[word] < 10)):
            group, last = group + _SMALL[word], max(_SMALL[word], 1)
        elif word == "hundred":
            group, last = max(group, 1) * 100, 100
        elif word in _SCALES:
            total, group, last = total + max(group, 1) * _SCALES[word], 0, 1000
        elif not (word == "and" and last >= 100 and _continues(tokens, index + 1)):
            break
        index += 1
    value = float(min(total + group, int(_MAX_NUMBER)))
    if index + 1 < len(tokens) and tokens[index].lower() == "point":
        digits = ""
        index += 1
        while index < len(tokens) and _SMALL.get(tokens[index].lower(), 10) < 10:
            digits += str(_SMALL[tokens[index].lower()])
            index += 1
        value += float(f"0.{digits or 0}")
    return value, index


def _continues(tokens: list[str], index: int) -> bool:
    return index < len(tokens) and (tokens[index].lower() in _SMALL or tokens[index].lower() in _TENS)


# -- sums -----------------------------------------------------------------------------------------------

_PHRASES: Final = (
    (r"\bdivided by\b|\bover\b", " / "),
    (r"\bmultiplied by\b|\btimes\b", " * "),
    (r"\bto the power of\b", " ^ "),
    (r"\bsquared\b", " ^ 2 "),
    (r"\bcubed\b", " ^ 3 "),
    (r"\bplus\b|\badded to\b", " + "),
    (r"\bminus\b|\bless\b", " - "),
    (r"\bper ?cent of\b|% of\b", " % "),
    (r"(?<=\d)\s*[x×]\s*(?=\d)", " * "),
    (r"\bhalf of\b", " 0.5 * "),
    (r"÷", " / "),
    (r"−", " - "),
)
_PAIRS: Final = (
    (re.compile(r"\b(?:the )?sum of (.+?) and ([^?.!]+)", re.I), r"\1 + \2"),
    (re.compile(r"\badd (.+?) (?:and|to) ([^?.!]+)", re.I), r"\1 + \2"),
    (re.compile(r"\bsubtract (.+?) from ([^?.!]+)", re.I), r"\2 - \1"),
    (re.compile(r"\bmultiply (.+?) (?:by|and|with) ([^?.!]+)", re.I), r"\1 * \2"),
    (re.compile(r"\bdivide (.+?) by ([^?.!]+)", re.I), r"\1 / \2"),
)
_ROOT: Final = re.compile(r"\bsquare root of ([^?.!]+)", re.I)
_ASKING: Final = frozenset(
    [
        "what", "s", "is", "are", "the", "result", "of", "how", "much", "many", "does", "do", "make",
        "makes", "give", "please", "calculate", "compute", "work", "out", "figure", "tell", "me", "can",
        "could", "you", "would", "will", "equal", "equals", "to", "hello", "hi", "hey", "okay", "ok", "and",
        "so", "now", "then", "answer", "value", "it", "get", "we", "i", "need", "know", "want", "if",
        "solve", "evaluate", "for",
    ]
)  # fmt: skip
"""Words around a sum that ask for nothing else."""
_WRITTEN: Final = {"+": "+", "-": "-", "*": "*", "/": "/", "^": "**", "%": "/ 100 *", "(": "(", ")": ")"}
_OPERATORS: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 3}


def solve(text: str) -> float | None:
    """Return the value of the sum asked for in ``text``; ``None`` where there is none.

    Raises ``ZeroDivisionError`` for a division by zero and ``OverflowError`` for what is too large.
    """
    if root := _ROOT.search(text):
        numbers = find_numbers(root[1])
        return math.sqrt(numbers[0].value) if numbers else None
    if re.search(r"\(\s*[-\d]", text):
        return None  # what stands in parentheses comes first, and is not worked out here
    return _evaluate(_longest_sum(_merge(_TOKEN.findall(_with_signs(text)))))


def _with_signs(text: str) -> str:
    for pattern, replacement in _PAIRS:
        text = pattern.sub(replacement, text)
    for phrase, sign in _PHRASES:
        text = re.sub(phrase, sign, text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![\d.])\.(?=\d)", "0.", text)
    return re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text, flags=re.IGNORECASE)


def written_sum(text: str) -> str | None:
    """Return the sum that ``text`` asks for, and nothing else, as Python writes it: "12.5 * 8".

    ``None`` where it asks for anything besides, or for no sum. Digits stay as they are, none is rounded.
    """
    if root := _ROOT.search(text):
        begun, text = text[: root.start()], root[1]
        if not set(_tokens(begun.lower())) <= _ASKING:
            return None
        return f"{written} ** 0.5" if (written := _only_number(text)) else None
    if re.fullmatch(r"\s*\d+(?:-\d+)+\W*", text):
        return None  # a date, or a telephone's number
    tokens = _TOKEN.findall(_with_signs(text).lower())
    while tokens and tokens[0] in _ASKING:
        del tokens[0]
    while tokens and tokens[-1] in _ASKING:
        del tokens[-1]
    pieces: list[str] = []
    index = 0
    while index < len(tokens):
        value, after = _number(tokens, index)
        if value is not None:
            pieces.append(_digits(tokens[index]) if after == index + 1 and tokens[index][0].isdigit()
                          else f"{value:.15g}")  # fmt: skip
        elif sign := _WRITTEN.get(tokens[index]):
            pieces.append(sign)
        else:
            return None
        index = max(after, index + 1)
    written = " ".join(pieces).replace("( ", "(").replace(" )", ")")
    return written if _is_sum(written) else None


def _only_number(text: str) -> str | None:
    tokens = [token for token in _TOKEN.findall(text.lower()) if token not in _ASKING]
    if not tokens:
        return None
    value, after = _number(tokens, 0)
    return None if value is None or after < len(tokens) else f"{value:.15g}"


def _digits(token: str) -> str:
    return re.sub(r"^0+(?=\d)", "", token.replace(",", ""))


def _is_sum(written: str) -> bool:
    try:
        tree = ast.parse(written, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree.body, ast.BinOp) and not any(isinstance(node, ast.Call) for node in ast.walk(tree))


def _longest_sum(tokens: list[str | float]) -> list[str | float]:
    """Return the longest run of number, operator, number, …; empty where no operator is between numbers."""
    best: list[str | float] = []
    index = 0
    while index < len(tokens):
        run: list[str | float] = [tokens[index]]
        index += 1
        if not isinstance(run[0], float):
            continue
        while (
            index + 1 < len(tokens) and tokens[index] in _OPERATORS and isinstance(tokens[index + 1], float)
        ):
            run += tokens[index : index + 2]
            index += 2
        if len(run) >= 3 and len(run) > len(best):
            best = run
    return best


def _evaluate(tokens: list[str | float]) -> float | None:
    if not tokens:
        return None
    values: list[float] = []
    pending: list[str] = []
    for token in tokens:
        if isinstance(token, float):
            values.append(token)
            continue
        while pending and _OPERATORS[pending[-1]] >= _OPERATORS[token]:
            _apply(values, pending.pop())
        pending.append(token)
    while pending:
        _apply(values, pending.pop())
    if not math.isfinite(values[0]):
        raise OverflowError("beyond all bounds")
    return values[0]


def _apply(values: list[float], sign: str) -> None:
    right, left = values.pop(), values.pop()
    if sign == "^" and abs(right) > _MAX_EXPONENT:
        raise OverflowError("exponent too large")
    results = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "%": lambda: left * right / 100,
        "^": lambda: float(left**right),
    }
    values.append(results[sign]())


def say_number(value: float) -> str:
    """Return a number as one would read it out, with at most four decimals."""
    rounded = round(value, 4)
    if rounded == int(rounded) and abs(rounded) < 10**15:
        text = f"{int(abs(rounded)):,}" if abs(rounded) >= 10_000 else str(int(abs(rounded)))
    else:
        text = f"{abs(rounded):.4f}".rstrip("0").rstrip(".") if abs(rounded) < 10**15 else f"{abs(value):.3g}"
    return f"minus {text}" if rounded < 0 else text
