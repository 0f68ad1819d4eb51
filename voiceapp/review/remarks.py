"""A kept conversation as one text for a model to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from voiceapp.records.reading.transcript import TranscriptLine

MAX_CHARS: Final = 24_000
"""About 6,000 tokens: room in any model; what lies in the middle of longer ones is left out."""
_NAMES: Final = {"user": "User", "assistant": "Assistant"}


@dataclass(frozen=True, slots=True)
class Remark:
    """What one side said, as far as the other heard it."""

    role: str
    text: str


def said_in(lines: Iterable[TranscriptLine]) -> list[Remark]:
    """Return who said what in a session, in order."""
    found = [
        Remark(line.role, " ".join((line.text if line.heard_text is None else line.heard_text).split()))
        for line in lines
        if line.kind == "message" and line.role in _NAMES
    ]
    return [said for said in found if said.text]


def as_text(said: Sequence[Remark]) -> str:
    """Return the conversation, a line for each time that somebody spoke."""
    whole = "\n".join(f"{_NAMES[one.role]}: {one.text}" for one in said)
    if len(whole) <= MAX_CHARS:
        return whole
    half = MAX_CHARS // 2
    return f"{whole[:half]}\n[… {len(whole) - 2 * half} characters left out …]\n{whole[-half:]}"
