"""How a sentence ends that somebody said or wrote; pure."""

from __future__ import annotations

from typing import Final

_OWN: Final = "!?。！？؟।"
_OPEN: Final = ".,;:…‥-–—"
_UNFINISHED: Final = ",;:،؛、，；："
_CLOSING: Final = "\"'”’»)]"
UNCERTAIN: Final = f"{_OWN}{_OPEN}{_CLOSING} "
"""What may stand behind a word, and be something else as soon as more was said."""


def ended(text: str) -> str:
    """Return a sentence with a full stop at its end, or with the mark of its own that it has there.

    What goes on after it (a comma, a colon, a dash, an ellipsis) is no end. Without words it is nothing.
    """
    if not any(character.isalnum() for character in text):
        return ""
    body, end = _parted(text)
    quoted = body.rstrip(_CLOSING)
    said, inner_end = _parted(quoted)
    if quoted != body and inner_end:
        return said + inner_end + body[len(quoted) :] + ("" if end == "." else end)
    return body + (end or ".")


def tidied(text: str) -> str:
    """Return a text without a comma, a semicolon or a colon at its end, or before the mark at its end."""
    text = text.strip()
    body = text.rstrip(f"{_OWN}.")
    return body.rstrip(f"{_UNFINISHED} ") + text[len(body) :]


def without_end(text: str) -> str:
    """Return a text without the marks behind its last word."""
    return _parted(text)[0]


def _parted(text: str) -> tuple[str, str]:
    """Return a text without the marks at its end, and what of them ends a sentence."""
    body = text.rstrip(f"{_OWN}{_OPEN} \t\n")
    run = text[len(body) :]
    own = "".join(mark for mark in run if mark in _OWN)
    return body, own or ("." if run.strip() else "")
