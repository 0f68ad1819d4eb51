"""What the built-in brain can do by itself: each skill answers a turn, or leaves it to the next; pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from voiceapp.language.zones import zone_in
from voiceapp.text.brain import numbers, repertoire, results
from voiceapp.text.brain.shipped import asks_elsewhere
from voiceapp.text.provider import ReplyRequest, Said

_MAX_COUNTED: Final = 100
_EARLIER_TURNS: Final = 500
_EARLIER_CHARS: Final = 500
_OTHER_LANGUAGE: Final = re.compile(
    r"\b(?:in|speak|only)\s+(German|French|Spanish|Italian|Portuguese|Dutch|Polish|Chinese|Japanese|Korean|Arabic"
    r"|Hindi|Russian|Turkish|Swedish)\b"
)
_I_CAN: Final = (
    "I can tell you the time and the date, do sums, count, remember your name, repeat what you say, tell a "
    "joke or a story, and explain this application."
)
_ABOUT_ME: Final = "I am a small built-in brain and not a language model."


@dataclass(frozen=True, slots=True)
class Turn:
    """What one answer may depend on."""

    text: str
    said: str
    request: ReplyRequest
    now: dt.datetime

    def asks(self, pattern: str) -> bool:
        """Whether what was said, in lower case, has the pattern."""
        return re.search(pattern, self.said) is not None

    @property
    def earlier(self) -> list[str]:
        """What the user said before, oldest first."""
        users = [item.text for item in self.request.history if isinstance(item, Said) and item.role == "user"]
        return [text[:_EARLIER_CHARS] for text in users[-_EARLIER_TURNS - 1 : -1]]


def _my_name(instructions: str) -> str | None:
    found = re.search(r"\b(?:[Yy]our name is|[Yy]ou are called|[Cc]all yourself) ([A-Z]\w+)", instructions)
    found = found or re.search(r"\b[Yy]ou are ([A-Z][a-z]+)\b(?=[,.])", instructions)
    return found[1] if found else None


def spoken_command(instructions: str, turn: Turn) -> str | None:
    """Obey "Say exactly: …" and "Greet the user with: …", which applications use for an opening line."""
    found = re.search(r"(?:say exactly|greet the user with)\s*:\s*(.+)", instructions, re.I | re.S)
    if found and (not turn.earlier or not turn.text):
        return found[1].strip().strip('"“”')
    return None


def _repeat(turn: Turn) -> str | None:
    found = re.search(
        r"\b(?:repeat after me|say after me|please repeat|repeat)\b[\s:,.]*(.*)", turn.text, re.I | re.S
    )
    found = found or re.match(
        r"\s*(?:please )?say\s+(?!something|anything|that|it)(.+)", turn.text, re.I | re.S
    )
    if found and found[1].strip() and not re.fullmatch(r"(?:that|it|again)[\s.!?]*", found[1], re.I):
        return found[1].strip()
    if turn.asks(r"\b(?:repeat|say) (?:that|it)\b|\bsay again\b|^(?:pardon|repeat)\b"):
        said = [
            i.text for i in turn.request.history if isinstance(i, Said) and i.role == "assistant" and i.text
        ]
        return said[-1] if said else "I have not said anything yet."
    return None


def _name_in(text: str) -> str | None:
    found = re.search(r"\b(?:my name is|my name's|call me|i am called)\s+([A-Za-z][\w'’-]*)", text, re.I)
    return found[1].capitalize() if found else None


def _names(turn: Turn) -> str | None:
    if name := _name_in(turn.text):
        return f"Nice to meet you, {name}. I will remember your name for as long as we talk."
    if turn.asks(r"\b(?:what is|what's|do you (?:know|remember)|say) my name\b|\bwho am i\b"):
        known = [name for text in turn.earlier if (name := _name_in(text))]
        return f"Your name is {known[-1]}." if known else "You have not told me your name yet. What is it?"
    if turn.asks(r"\b(?:what is|what's) your name\b|\bwho are you\b|\bwhat are you\b"):
        mine = _my_name(turn.request.instructions)
        me = f"My name is {mine}, and I am" if mine else "I am"
        return f"{me} the built-in brain of this voice application. I am not a language model. {_I_CAN}"
    return None


def _greet(turn: Turn) -> str | None:
    if turn.asks(r"\bcan you hear me\b|\bare you there\b|\bdo you hear me\b"):
        return "Yes, I can hear you clearly. What can I do for you?"
    if turn.asks(r"^(?:hello|hi|hey|good (?:morning|afternoon|evening)|howdy)\b(?:\W+\w+){0,2}\W*$"):
        return opening(turn)
    if turn.asks(r"\bhow are you\b|\bhow do you do\b"):
        return "I am well, thank you. All my parts are running on this computer. How can I help you?"
    return None


def opening(turn: Turn) -> str:
    """Return a greeting; for a turn without words, that none were heard."""
    if (
        turn.request.history
        and not turn.text
        and any(isinstance(item, Said) and item.role == "user" for item in turn.request.history)
    ):
        return "I did not hear any words. Could you say that again?"
    hour = turn.now.hour
    part = "morning" if 4 <= hour < 12 else "afternoon" if 12 <= hour < 18 else "evening"
    known = [name for text in turn.earlier if (name := _name_in(text))]
    mine = _my_name(turn.request.instructions)
    hello = f"Good {part}, {known[-1]}!" if known else f"Good {part}!"
    me = f" I am {mine}." if mine else ""
    return f"{hello}{me}{_language(turn.request.instructions)} What would you like to talk about?"


def _language(instructions: str) -> str:
    """Own up where the instructions ask for a language that the voice does not have."""
    found = _OTHER_LANGUAGE.search(instructions)
    if not found:
        return ""
    return f" I was asked to speak {found[1]}, but English is the only language I have."


def _courtesy(turn: Turn) -> str | None:
    if turn.asks(r"\b(?:thank you|thanks|cheers)\b"):
        return "You are welcome. It was a pleasure."
    if turn.asks(r"^(?:good ?bye|bye|bye bye|see you|good night)\b"):
        return "Goodbye! Talk to you soon."
    if turn.asks(r"^(?:yes|no|okay|ok|sure|right|stop|never ?mind|cancel|wait)\W*$"):
        return "All right. Just tell me what you would like."
    return None


def _capabilities(turn: Turn) -> str | None:
    if not turn.asks(
        r"\bwhat (?:can|could) you do\b|\bhelp\b|\bwhat else\b|\byour abilities\b|\bcan you help\b"
    ):
        return None
    tools = ", ".join(results.spoken_name(tool.name) for tool in turn.request.tools)
    more = f" I can also use these tools: {tools}." if tools else ""
    return f"{_I_CAN}{more} You can interrupt me at any time."


def _clock_and_calendar(turn: Turn) -> str | None:
    now, elsewhere = turn.now, asks_elsewhere(turn.text)
    if elsewhere or turn.asks(
        r"\bwhat(?:'s| is)? (?:the )?(?:current )?time(?: is it)?(?: now| right now| please)*\W*$"
        r"|\bthe (?:current )?time(?: now| right now| please)*\W*$|\btime is it\b"
    ):
        # Nobody said where the user is: what the computer's clock shows may be hours away from theirs.
        zone = "" if zone_in(turn.request.instructions) else f" {now:%Z}".rstrip()
        sentence = f"It is {now.hour % 12 or 12}:{now.minute:02d} {'a.m.' if now.hour < 12 else 'p.m.'}{zone}"
        return f"I only know the time here. {sentence}" if elsewhere else sentence
    if turn.asks(r"\b(?:what day|what date|what's the date|the (?:current )?date|today's date|which day)\b"):
        ahead = dt.timedelta(days=1 if "tomorrow" in turn.said else 0)
        day = now + ahead
        return f"{'Tomorrow' if ahead else 'Today'} is {day:%A}, {day:%B} {day.day}, {day.year}."
    if turn.asks(r"\bwhat year\b|\bwhich year\b"):
        return f"It is the year {now.year}."
    return None


def _sum(turn: Turn) -> str | None:
    try:
        value = numbers.solve(turn.text)
    except ZeroDivisionError:
        return "Nobody can divide by zero, not even a computer."
    except (OverflowError, ValueError):
        return "That number is too large for me."
    return None if value is None else f"That is {numbers.say_number(value)}."


def _count(turn: Turn) -> str | None:
    if not turn.asks(r"\bcount\b"):
        return None
    # What is beyond all bounds is as far as any number that is too far.
    found = [int(min(number.value, 1e9)) for number in numbers.find_numbers(turn.text)]
    first, last = (found[0], found[1]) if len(found) > 1 else (1, found[0] if found else 10)
    if abs(last - first) > _MAX_COUNTED or min(first, last) < 0 or max(first, last) > 999:
        return "That would take too long. I count as far as one hundred."
    step = 1 if last >= first else -1
    words = [numbers.number_words(value) for value in range(first, last + step, step)]
    # Full stops make sentences, so that counting starts at once and can be interrupted anywhere.
    groups = [", ".join(words[start : start + 5]) for start in range(0, len(words), 5)]
    return " ".join(f"{group[:1].upper()}{group[1:]}." for group in groups)


def _entertain(turn: Turn) -> str | None:
    turns = len(turn.earlier)
    if turn.asks(r"\bjokes?\b|\bmake me laugh\b|\bsomething funny\b"):
        earlier = sum("joke" in text.lower() for text in turn.earlier)
        return repertoire.JOKES[earlier % len(repertoire.JOKES)]
    if turn.asks(r"\b(?:story|stories|tale)\b"):
        earlier = sum("story" in text.lower() for text in turn.earlier)
        return repertoire.STORIES[earlier % len(repertoire.STORIES)]
    if turn.asks(r"\b(?:demo|demonstration|dialogue|scene|show me what)\b"):
        return repertoire.DIALOGUE
    if turn.asks(r"\b(?:heads or tails|flip a coin|toss a coin)\b"):
        return "Heads." if turns % 2 else "Tails."
    return None


def own_up(turn: Turn) -> str:
    """Say that this is beyond the brain, and why where that is known."""
    reason = next((why for asked, why in repertoire.REASONS if turn.asks(asked)), "")
    excuse = f"Sorry, I cannot answer that. {reason}".strip()
    said = [i.text for i in turn.request.history if isinstance(i, Said) and i.role == "assistant"]
    # The same explanation every time would be tiresome.
    if any(_ABOUT_ME in text for text in said):
        return f"{excuse} Ask me what I can do."
    return f"{excuse} {_ABOUT_ME} Ask me what I can do."


SKILLS: Final[tuple[Callable[[Turn], str | None], ...]] = (
    _repeat, _names, _greet, _courtesy, _capabilities, _clock_and_calendar, _sum, _count, _entertain,
)  # fmt: skip
"""The first that answers a turn counts."""
