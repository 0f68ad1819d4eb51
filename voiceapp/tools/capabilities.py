"""What a session lets its tools do beyond answering: narrow doors to the call and to the user's own things.

A tool finds them in its ``ToolContext``. Everything here concerns the one user and the one session that the
tool was called for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class RunningTimer:
    """A timer that is not over yet: what it is for, if that was said, and how long it still runs."""

    label: str
    left_s: float


class Timers(Protocol):
    """Timers of this session; the user is told in the conversation when one is over."""

    def start(self, label: str, seconds: float) -> None:
        """Start a timer. Raises ``ToolFailed`` with the code ``too_many_timers`` or ``timer_too_long``."""

    def running(self) -> Sequence[RunningTimer]:
        """Return the timers that are not over, the next one first."""

    def cancel(self, label: str) -> Sequence[RunningTimer]:
        """Stop the timers whose label has these words, all of them where none is given; return those."""


@dataclass(frozen=True)
class KeptNote:
    """A note as it is kept."""

    note_id: int
    text: str


class Notes(Protocol):
    """The user's own notes, which stay after the session."""

    async def save(self, text: str) -> None:
        """Keep a note. Raises ``ToolFailed`` with the code ``too_many_notes`` or ``note_too_long``."""

    async def find(self, words: str) -> Sequence[KeptNote]:
        """Return the notes that have all these words, whole ones, the newest first; without words, all."""

    async def delete(self, notes: Sequence[KeptNote]) -> Sequence[KeptNote]:
        """Delete these notes, and return those that were still there as they are given."""

    async def restore(self) -> Sequence[KeptNote]:
        """Bring back what was deleted last, within a day; return it.

        Raises ``ToolFailed`` with the code ``too_many_notes``.
        """


@dataclass(frozen=True)
class Mention:
    """Where something was said: the day, the conversation's title, and the words around it."""

    day: str
    title: str
    excerpt: str


class Past(Protocol):
    """The user's own earlier conversations."""

    async def search(self, words: str) -> Sequence[Mention]:
        """Return where all these words were said, the newest first."""


class Call(Protocol):
    """The call itself."""

    def end_after_answer(self) -> None:
        """Hang up once the answer that follows has been heard; the user prevents it by speaking."""

    async def hand_over(self, name: str) -> str:
        """Let another assistant go on; return its name.

        Raises ``ToolFailed`` with the code ``assistant_unknown`` where there is none of that name.
        """


@dataclass(frozen=True)
class Capabilities:
    """All doors of one session, for one call of a tool."""

    timers: Timers
    notes: Notes
    past: Past
    call: Call
