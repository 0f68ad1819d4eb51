"""What the operator reads of those who are refused: a line a minute for each kind, with their number."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from voiceapp.types import Part

logger = logging.getLogger(__name__)

AGAIN_S: Final = 60.0
"""How long a kind stays out of the log after a line: strangers must not be able to fill a disk."""
MOST_KINDS: Final = 256
"""Kinds that are counted apart. The product has some fifty; more would be made up from outside."""
MAX_SHOWN_CHARS: Final = 100
"""What is shown of a text from outside: the longest name of a host that people still read."""


@dataclass(slots=True)
class _Kind:
    """What came of one kind since its last line."""

    more: int
    sentence: str


class Refusals:
    """Counts and logs those who are refused. To be used on an event loop."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    @property
    def kinds(self) -> list[str]:
        """Return the kinds that came in the last minute."""
        return list(self._kinds)

    def note(self, kind: str, sentence: str) -> None:
        """Log ``sentence``, now or counted with others of its ``kind`` once the minute is over.

        The sentence holds no secret; what it holds from outside has gone through ``shown``.
        """
        known = self._kinds.get(kind)
        if known is not None:
            known.more, known.sentence = known.more + 1, sentence
        elif len(self._kinds) < MOST_KINDS:
            logger.warning("%s", sentence)
            self._wait(kind, _Kind(0, ""))

    def _wait(self, kind: str, counted: _Kind) -> None:
        self._kinds[kind] = counted
        asyncio.get_running_loop().call_later(AGAIN_S, self._again, kind)

    def _again(self, kind: str) -> None:
        counted = self._kinds.pop(kind)
        if counted.more:
            logger.warning("%s (%d times in the last minute)", counted.sentence, counted.more)
            self._wait(kind, _Kind(0, ""))


def shown(text: str) -> str:
    """Return a text from outside as a log line can hold it: quoted, in ASCII, and short."""
    return ascii(text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…")


refusals: Final = Part[Refusals]("count of refusals")
