"""Whether a sentence is over, judged by its words alone; English. Pure.

A recogniser puts a full stop behind whatever it hears, so a full stop says nothing; a question mark says
much, and a comma a little.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class Completeness(Enum):
    """How a pause leaves what was said."""

    OVER = "over"
    """Nothing is missing."""
    OPEN = "open"
    """It could be all, and it could go on."""
    UNFINISHED = "unfinished"
    """Something is missing."""
    HANGING = "hanging"
    """The last word announces another."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD: Final = re.compile(r"[a-z0-9]+(?:['’][a-z]+)*")
_BROKEN_OFF: Final = re.compile(r"(?:\.\.\.|…|[:–—-])\s*$")

_FILLERS: Final = _words("um umm uh uhm er erm hmm hm mm ah")
_JOINS: Final = _words(
    "and or but nor because if unless although though while whereas whether than as so then plus"
)
_DETERMINERS: Final = _words("a an the my your his our their its every each another no some any which whose")
_PREPOSITIONS: Final = _words(
    "of to at from with for by about into onto between without against among during towards toward per via "
    "like under until till since after before around near behind beside"
)
_PARTICLES: Final = _words("in on off up down out over back through away along here there")
_SUBJECTS: Final = _words(
    "i he she we they i'm i'd i'll i've we're we'd we'll they're he's she's it's that's there's what's let's "
    "you're you'd you'll"
)
_AUXILIARIES: Final = _words(
    "is are was were am be been can could will would shall should may might must do does did have has had "
    "don't doesn't didn't can't couldn't won't wouldn't isn't aren't wasn't"
)
_DEGREES: Final = _words("very really too quite more most less least such just only even maybe probably")
# What is wanted, given or done must still be said.
_NEED_OBJECT: Final = _words(
    "want need love prefer wanna gimme find buy get give make take bring put send tell ask show say called "
    "named"
)
_ASKING: Final = _words("what when where who whom why how which whose")
_SETTLED: Final = _words(
    "yes yeah yep no nope okay ok sure right thanks hello hi hey bye goodbye stop wait please exactly "
    "correct never mind nothing sorry cheers great fine perfect"
)
_CONDITIONS: Final = _words("if unless although though whenever")
_NUMBERS: Final = _words(
    "zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand double triple"
)
# Runs of digits as people dictate them are seldom this short, and common lengths end them.
_MIN_DICTATED: Final = 3
_WHOLE_NUMBERS: Final = (7, 10, 11, 12, 16)
_SHORT: Final = 2


def judge(text: str) -> Completeness:
    """Return how ``text``, all that was said in a turn so far, ends."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words:
        return Completeness.OPEN
    last = words[-1]
    if len(words) <= _SHORT and (last in _SETTLED or words[0] == "good"):
        return Completeness.OVER
    # "What I want is" asks nothing.
    asked = words[0] in _ASKING and not set(words[1:2]) & (_SUBJECTS | {"you"})
    question = asked or text.rstrip().endswith("?") or _inverted(words)
    if last in _FILLERS or last in _DETERMINERS or (last in _JOINS and last not in ("so", "then")):
        return Completeness.HANGING
    if (found := _missing(words, asked=asked, question=question)) is not None:
        # The recogniser hears a comma where the voice stays up.
        going_on = found is Completeness.OPEN and text.rstrip().endswith(",")
        return Completeness.UNFINISHED if going_on else found
    if _counting(text, words) or _BROKEN_OFF.search(text):
        return Completeness.UNFINISHED
    if words[0] in _CONDITIONS and not question and "," not in text:
        return Completeness.UNFINISHED
    return _whole(words, question=question, level=text.rstrip().endswith(","))


def _missing(words: list[str], *, asked: bool, question: bool) -> Completeness | None:
    """Judge by a last word after which something has to come, unless the sentence began with it."""
    last, long = words[-1], len(words) > _SHORT + 1
    if last in _PREPOSITIONS or last in ("so", "then"):
        # "Where are you from?" ends with what others begin with.
        return Completeness.OPEN if asked and long else Completeness.HANGING
    if last in _DEGREES:
        return Completeness.OPEN if asked and long else Completeness.HANGING
    if last in _SUBJECTS:
        return Completeness.HANGING
    if last in _AUXILIARIES:
        # "Yes, I can", "what time it is".
        answered = len(words) > 1 and words[-2] in _SUBJECTS | {"you", "it", "that"}
        return Completeness.OPEN if answered or (asked and long) else Completeness.HANGING
    if last in _NEED_OBJECT and not asked:
        # "That is all I need", "tell me what you want".
        return Completeness.OPEN if {"all", "what", "everything"} & set(words) else Completeness.UNFINISHED
    if last == "please" and not long and words[0] in _AUXILIARIES:
        return Completeness.UNFINISHED
    if last in _PARTICLES and not question:
        return Completeness.OPEN
    return None


def _inverted(words: list[str]) -> bool:
    """Whether an auxiliary stands before its subject: "Can you …", "Is there …"."""
    return len(words) > _SHORT and words[0] in _AUXILIARIES


def _counting(text: str, words: list[str]) -> bool:
    """Whether a row of numbers is being dictated that may go on."""
    tail = re.search(r"(?:\d[\d\s,.-]*)$", text.rstrip(" .?!"))
    digits = len(re.findall(r"\d", tail[0])) if tail else 0
    grouped = bool(tail) and re.search(r"\d[\s,.-]+\d", tail[0] if tail else "") is not None
    spelled = 0
    for word in reversed(words):
        if word not in _NUMBERS:
            break
        spelled += 1
    count = max(spelled, digits if grouped or digits > _MIN_DICTATED + 1 else 0)
    return count >= _MIN_DICTATED and count not in _WHOLE_NUMBERS


def _whole(words: list[str], *, question: bool, level: bool) -> Completeness:
    """Judge a sentence in which nothing is missing; ``level`` says that the voice did not fall at its end."""
    if words[-1] in _SETTLED or words[0] == "thank" or (question and len(words) > _SHORT):
        return Completeness.OVER
    return Completeness.OVER if len(words) > _SHORT and not level else Completeness.OPEN
