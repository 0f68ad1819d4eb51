"""The built-in brain: honest, deterministic, and small.

It is no language model. It greets, remembers a name, tells the time and the date, does sums, counts, repeats,
tells jokes and stories, answers about this product from its guide, calls the session's tools by matching
words, and says plainly what it cannot do. ``instructions`` bind it only in what it can: its name, brevity,
language, and the user's time zone.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from voiceapp.language.zones import zone_in
from voiceapp.text.brain import results
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.brain.matching import Match, match_tool
from voiceapp.text.brain.several import match_several
from voiceapp.text.brain.shipped import is_shipped, match_shipped
from voiceapp.text.brain.skills import SKILLS, Turn, opening, own_up, spoken_command
from voiceapp.text.provider import Delta, Finished, ReplyRequest, Returned, Said, TextDelta

# This brain thinks on the event loop, where nobody's long text may hold up others' speech.
_MAX_READ_CHARS: Final = 4_000
_MAX_INSTRUCTIONS_CHARS: Final = 20_000
_MAX_ANSWER_CHARS: Final = 8_000
_MAX_TOOLS: Final = 128
# What takes longer than a few milliseconds is thought in a thread: many tools, or many words about them.
_TOOLS_AT_ONCE, _CHARS_AT_ONCE = 16, 400
_ONE_MORE: Final = "I can do that, but I need to know one more thing."


class Brain:
    """A ``TextProvider`` that needs no model and no network."""

    def __init__(self, guide: ProductGuide, clock: Callable[[], dt.datetime]) -> None:
        self._guide = guide
        self._clock = clock
        self._skills = (*SKILLS, self._product)

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
        turn = _turn(request, self._now(request))
        fresh = results.fresh_results(request)
        if unexpected := _unexpected(request):
            text = unexpected
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

    def _now(self, request: ReplyRequest) -> dt.datetime:
        """Return the time where the user is, if the instructions say so; else the computer's own."""
        now, zone = self._clock(), zone_in(request.instructions)
        return now if zone is None else now.astimezone(zone)

    def _answer(self, turn: Turn) -> str:
        if command := spoken_command(turn.request.instructions, turn):
            return command
        if not turn.text:
            return opening(turn)
        for skill in self._skills:
            if answer := skill(turn):
                return answer
        return own_up(turn)

    def _product(self, turn: Turn) -> str | None:
        if not turn.asks(
            r"\b(?:this|the) (?:app|application|product|program|software|project|page|site)\b|\bvoiceapp\b"
            r"|\b(?:azure|recording|transcripts?|engine|realtime)\b"
        ):
            return None
        answer = self._guide.answer(turn.text)
        return answer or "I know nothing about that: the guide that came with me does not say."


def _unexpected(request: ReplyRequest) -> str:
    """Return what the application, in the conversation's last message, wants the user to be told now."""
    last = request.history[-1] if request.history else None
    if not isinstance(last, Said) or last.role != "system":
        return ""
    found = re.fullmatch(r"(.+?[.!?])\s+Tell the user so\b.*", last.text, re.S)
    return found[1] if found else ""


# -- what was said --------------------------------------------------------------------------------------


def _turn(request: ReplyRequest, now: dt.datetime) -> Turn:
    last = next((item for item in reversed(request.history) if isinstance(item, Said)), None)
    text = " ".join(last.text[:_MAX_READ_CHARS].split()) if last and last.role == "user" else ""
    said = re.sub(r"[^\w\s'.+*/^%-]", " ", text.lower().replace("’", "'"))
    return Turn(text, " ".join(said.split()), request, now)


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


# -- tools ----------------------------------------------------------------------------------------------


def _wanted_tools(turn: Turn) -> list[Match] | str | None:  # noqa: C901 - the order of what is tried
    """Return the calls to make, a question for what is missing, or ``None``."""
    request = turn.request
    tools, choice = request.tools, request.tool_choice
    if choice == "none" or not tools:
        return None
    if choice not in ("auto", "required"):
        tools = tuple(tool for tool in tools if tool.name == choice)
    text, today = _with_question(turn), turn.now.date()
    own = match_shipped(text, tools) if turn.text else None
    if own is not None and (choice == "auto" or not own.question):
        calls = own.calls(several=request.several_calls)
        return f"{_ONE_MORE} {own.question}" if own.question else calls
    if choice == "auto":
        tools = tuple(tool for tool in tools if not is_shipped(tool))
        if not tools:
            return None
    if request.several_calls and (several := match_several(text, tools, today, forced=choice != "auto")):
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


def _with_question(turn: Turn) -> str:
    """Join an answer with the request that it completes ("What is the city?" "Paris.")."""
    history = turn.request.history
    asked = history[-2] if len(history) >= 2 else None
    if isinstance(asked, Said) and asked.role == "assistant" and _ONE_MORE in asked.text:
        return f"{turn.earlier[-1].rstrip(' .?!')} for {turn.text}" if turn.earlier else turn.text
    return turn.text
