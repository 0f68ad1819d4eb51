"""What a call of a tool would do, found out before it is made: for its user to allow, and for its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from voiceapp.protocol.page import CallPreview

MAX_PREVIEW_LINES: Final = 20
MAX_PREVIEW_CHARS: Final = 200
"""Of its title, and of each line: what is longer is cut, and says so."""


@dataclass(frozen=True)
class Preview:
    """What a call would do: a sentence that asks for it, what it is about, and what the run is to work on.

    The user allows what they were shown and nothing else, so ``chosen`` has no more than ``lines`` tell of,
    and is not looked up again. It may be anything that does not change.
    """

    title: str
    lines: tuple[str, ...]
    chosen: Any


def shown_preview(found: Preview | None) -> CallPreview | None:
    """Return a preview as the page asks with it, within its bounds."""
    if found is None:
        return None
    lines = [_cut(line) for line in found.lines[:MAX_PREVIEW_LINES]]
    if (more := len(found.lines) - len(lines)) > 0:
        lines[-1] = f"… and {more + 1} more"
    return CallPreview(title=_cut(found.title), lines=lines)


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_PREVIEW_CHARS else f"{plain[: MAX_PREVIEW_CHARS - 1].rstrip()}…"
