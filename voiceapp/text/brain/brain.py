"""The built-in brain: honest, deterministic, and small.

It is no language model. It greets, remembers a name, tells the time and the date, does sums, counts, repeats,
tells jokes and stories, answers about this product from its guide, calls the session's tools by matching
words, and says plainly what it cannot do. ``instructions`` bind it only in what it can: its name, brevity,
language.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from voiceapp.text.brain import numbers, repertoire, results
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.brain.matching import Match, match_tool
from voiceapp.text.brain.several import match_several
from voiceapp.text.brain.shipped import asks_elsewhere, is_shipped, match_shipped
from voiceapp.text.provider import Delta, Finished, ReplyRequest, Returned, Said, TextDelta

_MAX_COUNTED: Final = 100
# This brain thinks on the event loop, where nobody's long text may hold up others' speech.
_MAX_READ_CHARS: Final = 4_000
_MAX_INSTRUCTIONS_CHARS: Final = 20_000
_MAX_ANSWER_CHARS: Final = 8_000
_MAX_TOOLS: Final = 128
_EARLIER_TURNS, _EARLIER_CHARS = 500, 500
# What takes longer than a few milliseconds is thought in a thread: many tools, or many words about them.
_TOOLS_AT_ONCE, _CHARS_AT_ONCE = 16, 400
_OTHER_LANGUAGE: Final = re.compile(
    r"\b(?:in|speak|only)\s+(German|French|Spanish|Italian|Portuguese|Dutch|Polish|Chinese|Japanese|Korean|Arabic"
    r"|Hindi|Russian|Turkish|Swedish)\b"
)
_I_CAN: Final = (
    "I can tell you the time and the date, do sums, count, remember your name, repeat what you say, tell a "
    "joke or a story, and explain this application."
)
_ONE_MORE: Final = "I can do that, but I need to know one more thing."
_ABOUT_ME: Final = "I am a small built-in brain and not a language model."


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one answer may depend on."""

    text: str
    said: str
    request: ReplyRequest
    now: dt.datetime

    def asks(self, pattern: str) -> bool:
        return re.search(pattern, self.said) is not None

    @property
    def earlier(self) -> list[str]:
        """What the user said before, oldest first."""
        users = [item.text for item in self.request.history if isinstance(item, Said) and item.role == "user"]
        return [text[:_EARLIER_CHARS] for text in users[-_EARLIER_TURNS - 1 : -1]]


class Brain:
    """A ``TextProvider`` that needs no model and no network."""

    def __init__(self, guide: ProductGuide, clock: Callable[[], dt.datetime]) -> None:
        self._guide = guide
        self._clock = clock
        self._skills: tuple[Callable[[_Turn], str | None], ...] = (
            _repeat, _names, _greet, _courtesy, _abilities, _clock_and_calendar, _sum, _count, _entertain,
            self._product,
        )  # fmt: skip

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """Stream the answer to the history's last turn, sentence by sentence, or the calls of tools."""
        request = replace(
            request,
            instructions=request.instructions[:_MAX_INSTRUCTIONS_CHARS],
            tools=request.tools[:_MAX_TOOLS],
        )
        if _takes_long(request):
            deltas: Iterable[Delta] = await asyncio.to_thread(lambda: list(self.think(request)))
        else:
            deltas = self.think(request)
        for number, delta in enumerate(deltas):
            if number % 32 == 31:
                # Nothing here ever waits, and whoever listens may not either.
                await asyncio.sleep(0)
            yield delta

    async def aclose(self) -> None:
        """Nothing is open."""

    def think(self, request: ReplyRequest) -> Iterator[Delta]:
        """Return the whole reply; the same request always gets the same one within a minute."""
        turn = _turn(request, self._clock())
        fresh = results.fresh_results(request)
        if news := _news(request):
            text = news
        elif not fresh:
            wanted = _wanted_tools(turn)
            if isinstance(wanted, list):
                yield from results.calls(wanted, request)
                yield Finished()
                return
            text = wanted or self._answer(turn)
        else:
            text = results.tell_results(fresh, request)
        for piece in re.findall(r"\S+\s*", _brief(_shortened(text), request.instructions)):
            yield TextDelta(piece)
        yield Finished()

    def _answer(self, turn: _Turn) -> str:
        if command := _spoken_command(turn.request.instructions, turn):
            return command
        if not turn.text:
            return _opening(turn)
        for skill in self._skills:
            if answer := skill(turn):
                return answer
        return _cannot(turn)

    def _product(self, turn: _Turn) -> str | None:
        if not turn.asks(
            r"\b(?:this|the) (?:app|application|product|program|software|project|page|site)\b|\bvoiceapp\b"
            r"|\b(?:azure|recording|transcripts?|engine|realtime)\b"
        ):
            return None
        answer = self._guide.answer(turn.text)
        return answer or "I know nothing about that: the guide that came with me does not say."


def _news(request: ReplyRequest) -> str:
    """Return what the application, in the conversation's last message, wants the user to be told now."""
    last = request.history[-1] if request.history else None
    if not isinstance(last, Said) or last.role != "system":
        return ""
    found = re.fullmatch(r"(.+?[.!?])\s+Tell the user so\b.*", last.text, re.S)
    return found[1] if found else ""


# -- what was said --------------------------------------------------------------------------------------


def _turn(request: ReplyRequest, now: dt.datetime) -> _Turn:
    last = next((item for item in reversed(request.history) if isinstance(item, Said)), None)
    text = " ".join(last.text[:_MAX_READ_CHARS].split()) if last and last.role == "user" else ""
    said = re.sub(r"[^\w\s'.+*/^%-]", " ", text.lower().replace("’", "'"))
    return _Turn(text, " ".join(said.split()), request, now)


def _my_name(instructions: str) -> str | None:
    found = re.search(r"\b(?:[Yy]our name is|[Yy]ou are called|[Cc]all yourself) ([A-Z]\w+)", instructions)
    found = found or re.search(r"\b[Yy]ou are ([A-Z][a-z]+)\b(?=[,.])", instructions)
    return found[1] if found else None


def _brief(text: str, instructions: str) -> str:
    """Shorten to the first sentence where the instructions ask for brevity."""
    if not re.search(
        r"\b(?:brief|briefly|concise|terse|one sentence|short (?:answers?|replies))\b", instructions, re.I
    ):
        return text
    return re.split(r"(?<=[.!?])\s+", text, maxsplit=1)[0]


def _shortened(text: str) -> str:
    """Cut what nobody would listen to until its end."""
    if len(text) <= _MAX_ANSWER_CHARS:
        return text
    return f"{text[:_MAX_ANSWER_CHARS].rsplit(None, 1)[0]} … and more."


def _takes_long(request: ReplyRequest) -> bool:
    last = request.history[-1] if request.history else None
    if isinstance(last, Returned):
        return len(last.output) > _MAX_ANSWER_CHARS
    words = len(last.text) if isinstance(last, Said) else 0
    return len(request.tools) > _TOOLS_AT_ONCE or (bool(request.tools) and words > _CHARS_AT_ONCE)


def _spoken_command(instructions: str, turn: _Turn) -> str | None:
    """Obey "Say exactly: …" and "Greet the user with: …", which applications use for an opening line."""
    found = re.search(r"(?:say exactly|greet the user with)\s*:\s*(.+)", instructions, re.I | re.S)
    if found and (not turn.earlier or not turn.text):
        return found[1].strip().strip('"“”')
    return None


# -- tools ----------------------------------------------------------------------------------------------


def _wanted_tools(turn: _Turn) -> list[Match] | str | None:
    """Return the calls to make, a question for what is missing, or ``None``."""
    request = turn.request
    tools, choice = request.tools, request.tool_choice
    if choice == "none" or not tools:
        return None
    if choice not in ("auto", "required"):
        tools = tuple(tool for tool in tools if tool.name == choice)
    text, today = _with_question(turn), turn.now.date()
    wish = match_shipped(text, tools) if turn.text else None
    if wish is not None and (choice == "auto" or not wish.question):
        calls = wish.calls(several=request.several_calls)
        return f"{_ONE_MORE} {wish.question}" if wish.question else calls
    if choice == "auto":
        tools = tuple(tool for tool in tools if not is_shipped(tool))
        if not tools:
            return None
    if request.several_calls and (several := match_several(text, tools, today)):
        return several
    match = match_tool(text, tools, today)
    if match is None:
        return None
    if choice != "auto":
        return [match]
    if not match.fits or not turn.text:
        return None
    if match.missing:
        missing = results.spoken_name(match.missing[0])
        return f"{_ONE_MORE} What is the {missing}?"
    return [match]


def _with_question(turn: _Turn) -> str:
    """Join an answer with the request that it completes ("What is the city?" "Paris.")."""
    history = turn.request.history
    asked = history[-2] if len(history) >= 2 else None
    if isinstance(asked, Said) and asked.role == "assistant" and _ONE_MORE in asked.text:
        return f"{turn.earlier[-1].rstrip(' .?!')} for {turn.text}" if turn.earlier else turn.text
    return turn.text


# -- skills ---------------------------------------------------------------------------------------------


def _repeat(turn: _Turn) -> str | None:
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


def _told_name(text: str) -> str | None:
    found = re.search(r"\b(?:my name is|my name's|call me|i am called)\s+([A-Za-z][\w'’-]*)", text, re.I)
    return found[1].capitalize() if found else None


def _names(turn: _Turn) -> str | None:
    if name := _told_name(turn.text):
        return f"Nice to meet you, {name}. I will remember your name for as long as we talk."
    if turn.asks(r"\b(?:what is|what's|do you (?:know|remember)|say) my name\b|\bwho am i\b"):
        known = [name for text in turn.earlier if (name := _told_name(text))]
        return f"Your name is {known[-1]}." if known else "You have not told me your name yet. What is it?"
    if turn.asks(r"\b(?:what is|what's) your name\b|\bwho are you\b|\bwhat are you\b"):
        mine = _my_name(turn.request.instructions)
        me = f"My name is {mine}, and I am" if mine else "I am"
        return f"{me} the built-in brain of this voice application. I am not a language model. {_I_CAN}"
    return None


def _greet(turn: _Turn) -> str | None:
    if turn.asks(r"\bcan you hear me\b|\bare you there\b|\bdo you hear me\b"):
        return "Yes, I can hear you clearly. What can I do for you?"
    if turn.asks(r"^(?:hello|hi|hey|good (?:morning|afternoon|evening)|howdy)\b(?:\W+\w+){0,2}\W*$"):
        return _opening(turn)
    if turn.asks(r"\bhow are you\b|\bhow do you do\b"):
        return "I am well, thank you. All my parts are running on this computer. How can I help you?"
    return None


def _opening(turn: _Turn) -> str:
    if (
        turn.request.history
        and not turn.text
        and any(isinstance(item, Said) and item.role == "user" for item in turn.request.history)
    ):
        return "I did not hear any words. Could you say that again?"
    hour = turn.now.hour
    part = "morning" if 4 <= hour < 12 else "afternoon" if 12 <= hour < 18 else "evening"
    known = [name for text in turn.earlier if (name := _told_name(text))]
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


def _courtesy(turn: _Turn) -> str | None:
    if turn.asks(r"\b(?:thank you|thanks|cheers)\b"):
        return "You are welcome. It was a pleasure."
    if turn.asks(r"^(?:good ?bye|bye|bye bye|see you|good night)\b"):
        return "Goodbye! Talk to you soon."
    if turn.asks(r"^(?:yes|no|okay|ok|sure|right|stop|never ?mind|cancel|wait)\W*$"):
        return "All right. Just tell me what you would like."
    return None


def _abilities(turn: _Turn) -> str | None:
    if not turn.asks(
        r"\bwhat (?:can|could) you do\b|\bhelp\b|\bwhat else\b|\byour abilities\b|\bcan you help\b"
    ):
        return None
    tools = ", ".join(results.spoken_name(tool.name) for tool in turn.request.tools)
    more = f" I can also use these tools: {tools}." if tools else ""
    return f"{_I_CAN}{more} You can interrupt me at any time."


def _clock_and_calendar(turn: _Turn) -> str | None:
    now, elsewhere = turn.now, asks_elsewhere(turn.text)
    if elsewhere or turn.asks(
        r"\bwhat(?:'s| is)? (?:the )?(?:current )?time(?: is it)?(?: now| right now| please)*\W*$"
        r"|\bthe (?:current )?time(?: now| right now| please)*\W*$|\btime is it\b"
    ):
        told = f"It is {now.hour % 12 or 12}:{now.minute:02d} {'a.m.' if now.hour < 12 else 'p.m.'}"
        return f"I only know the time here. {told}" if elsewhere else told
    if turn.asks(r"\b(?:what day|what date|what's the date|the (?:current )?date|today's date|which day)\b"):
        ahead = dt.timedelta(days=1 if "tomorrow" in turn.said else 0)
        day = now + ahead
        return f"{'Tomorrow' if ahead else 'Today'} is {day:%A}, {day:%B} {day.day}, {day.year}."
    if turn.asks(r"\bwhat year\b|\bwhich year\b"):
        return f"It is the year {now.year}."
    return None


def _sum(turn: _Turn) -> str | None:
    try:
        value = numbers.solve(turn.text)
    except ZeroDivisionError:
        return "Nobody can divide by zero, not even a computer."
    except (OverflowError, ValueError):
        return "That number is too large for me."
    return None if value is None else f"That is {numbers.say_number(value)}."


def _count(turn: _Turn) -> str | None:
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


def _entertain(turn: _Turn) -> str | None:
    told = len(turn.earlier)
    if turn.asks(r"\bjokes?\b|\bmake me laugh\b|\bsomething funny\b"):
        earlier = sum("joke" in text.lower() for text in turn.earlier)
        return repertoire.JOKES[earlier % len(repertoire.JOKES)]
    if turn.asks(r"\b(?:story|stories|tale)\b"):
        earlier = sum("story" in text.lower() for text in turn.earlier)
        return repertoire.STORIES[earlier % len(repertoire.STORIES)]
    if turn.asks(r"\b(?:demo|demonstration|dialogue|scene|show me what)\b"):
        return repertoire.DIALOGUE
    if turn.asks(r"\b(?:heads or tails|flip a coin|toss a coin)\b"):
        return "Heads." if told % 2 else "Tails."
    return None


def _cannot(turn: _Turn) -> str:
    reason = next((why for asked, why in repertoire.REASONS if turn.asks(asked)), "")
    excuse = f"Sorry, I cannot answer that. {reason}".strip()
    said = [i.text for i in turn.request.history if isinstance(i, Said) and i.role == "assistant"]
    # The same explanation every time would be tiresome.
    if any(_ABOUT_ME in text for text in said):
        return f"{excuse} Ask me what I can do."
    return f"{excuse} {_ABOUT_ME} Ask me what I can do."
