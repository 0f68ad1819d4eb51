"""Faults that a client orders from the engine, for tests and rehearsals: ``faults=rate_limit@2,expire@30``.

Each is a name and a number. ``rate_limit``, ``content_filter``, ``stall`` and ``drop`` befall the response of
that number, the last three once it has said something; ``drop_after`` cuts the connection after so many
events; ``fail_transcription`` loses the words of that user's turn; ``expire`` is the session's life in
seconds; ``rate_limits`` (without a number) tells of the limits after each response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from channels.exceptions import StopConsumer

from voiceapp.engine.session.actions import Failed, ReplyFact, Spoken
from voiceapp.engine.speaking.reply import ReplyProduction
from voiceapp.protocol.events import RateLimitsUpdated
from voiceapp.text.provider import CallArguments, Finished, TextDelta

_REQUESTS, _TOKENS = 1_000, 100_000
_RESET_S: Final = 60.0


class FaultScriptError(ValueError):
    """A script cannot be read."""


class ReplyFault(Enum):
    """What befalls a response."""

    RATE_LIMIT = "rate_limit"
    CONTENT_FILTER = "content_filter"
    STALL = "stall"
    DROP = "drop"


class Dropped(StopConsumer):  # type: ignore[misc]  # Channels has no types.
    """The connection is to be cut, without a word."""


class _Reached(Exception):
    """A response has said something."""


@dataclass(slots=True)
class FaultScript:
    """The faults of one connection, and how far it is. The empty script does nothing."""

    replies: dict[int, ReplyFault] = field(default_factory=dict)
    lost_turns: set[int] = field(default_factory=set)
    drop_after: int | None = None
    life_s: float | None = None
    rate_limits: bool = False
    _reply: int = 0
    _turn: int = 0
    _event: int = 0
    _tokens: int = 0

    @classmethod
    def parse(cls, text: str) -> FaultScript:
        """Read a script; raise ``FaultScriptError`` with a sentence."""
        script = cls()
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = entry.partition("@")
            if name == "rate_limits" and not number:
                script.rate_limits = True
                continue
            # More digits than any session has events.
            if not number.isdecimal() or len(number) > 9 or int(number) == 0:
                raise FaultScriptError(f"{entry!r} needs a number from 1, such as {name}@1.")
            script._add(name, int(number))
        return script

    def _add(self, name: str, number: int) -> None:
        if name in {fault.value for fault in ReplyFault}:
            self.replies[number] = ReplyFault(name)
        elif name == "fail_transcription":
            self.lost_turns.add(number)
        elif name == "drop_after":
            self.drop_after = number
        elif name == "expire":
            self.life_s = float(number)
        else:
            known = [fault.value for fault in ReplyFault]
            known += ["fail_transcription", "drop_after", "expire", "rate_limits"]
            raise FaultScriptError(f"{name!r} is no fault; there are {', '.join(known)}.")

    def next_reply(self) -> ReplyFault | None:
        """Return what befalls the next response."""
        self._reply += 1
        return self.replies.get(self._reply)

    def next_turn_is_lost(self) -> bool:
        """Whether the words of the user's next turn are lost."""
        self._turn += 1
        return self._turn in self.lost_turns

    def sent(self) -> None:
        """Count an event; raise ``Dropped`` where it was the last."""
        self._event += 1
        if self._event == self.drop_after:
            raise Dropped

    def limits(self, event_id: str, response: dict[str, Any]) -> RateLimitsUpdated:
        """Return the limits after a response: of imagined quotas, less what this connection really used."""
        self._tokens += int((response.get("usage") or {}).get("total_tokens", 0))
        left = {"requests": (_REQUESTS, self._reply), "tokens": (_TOKENS, self._tokens)}
        return RateLimitsUpdated(
            event_id=event_id,
            rate_limits=[
                {"name": name, "limit": limit, "remaining": max(0, limit - used), "reset_seconds": _RESET_S}
                for name, (limit, used) in left.items()
            ],
        )


async def deliver(
    work: ReplyProduction,
    fault: ReplyFault | None,
    take: Callable[[ReplyFact], None],
    drained: Callable[[], Awaitable[None]],
) -> None:
    """Hand a reply over as ``ReplyProduction.deliver`` does, but for its fault."""
    if fault is None:
        await work.deliver(take, drained)
        return
    if fault is ReplyFault.RATE_LIMIT:
        take(Failed("rate_limit_exceeded", "Rate limit reached for requests. Try again in a minute."))
        return

    def until_content(fact: ReplyFact) -> None:
        take(fact)
        if isinstance(fact, TextDelta | Spoken | CallArguments):
            raise _Reached

    try:
        await work.deliver(until_content, drained)
    except* _Reached:
        pass
    match fault:
        case ReplyFault.CONTENT_FILTER:
            take(Finished("content_filter"))
        case ReplyFault.STALL:
            # Until the client gives up: a cancelled response cancels this as well.
            await asyncio.Event().wait()
        case ReplyFault.DROP:
            raise Dropped
