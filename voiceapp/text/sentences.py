"""A stream of text cut into sentences as soon as each is complete, so that speech can begin early; pure.

What a voice says of a sentence is here too: of code and of addresses it says that they are there.
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = re.compile(r"""(?<![.!?…])[.!?…]++["'”’)\]]*+(?=\s)|\n""")
_CLAUSE: Final = re.compile(r"[,;:—](?=\s)")
_ABBREVIATIONS: Final = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "jr",
        "st",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "approx",
        "no",
        "vol",
        "fig",
        "inc",
        "ltd",
        "co",
        "dept",
        "est",
        "a.m",
        "p.m",
        "u.s",
        "u.k",
    ]
)
# A first sentence longer than this is begun at a comma: the listener waits for it.
_EAGER_CHARACTERS: Final = 60
_MAX_CHARS: Final = 280
_AT_ONCE: Final = 1_000


class SentenceSplitter:
    """Feed text as it streams; get whole sentences, whose concatenation is exactly the text fed."""

    def __init__(self) -> None:
        self._text = ""
        self._first = True

    def feed(self, text: str) -> list[str]:
        """Take more text; return the sentences that it completed, each with the space behind it."""
        found: list[str] = []
        # Piece by piece: in a text of any length each sentence would be looked for from end to end.
        for start in range(0, len(text), _AT_ONCE):
            self._text += text[start : start + _AT_ONCE]
            while (end := self._end()) is not None:
                found.append(self._text[:end])
                self._text = self._text[end:]
                self._first = False
        return found

    def finish(self) -> list[str]:
        """Return what is left."""
        rest, self._text = self._text, ""
        return [rest] if rest else []

    def _end(self) -> int | None:
        """Return where the first sentence ends, after its space, or ``None`` while it is not complete."""
        for match in _END.finditer(self._text):
            end = match.end()
            if self._text[:end].strip() and not self._abbreviated(match.start(), end):
                return self._after_space(end)
        limit = _EAGER_CHARACTERS if self._first else _MAX_CHARS
        if len(self._text) > limit:
            return self._clause_end(limit)
        return None

    def _clause_end(self, limit: int) -> int | None:
        ends = [match.end() for match in _CLAUSE.finditer(self._text) if match.end() > limit // 3]
        if ends:
            return self._after_space(ends[0] if self._first else ends[-1])
        if len(self._text) > _MAX_CHARS * 2:
            space = self._text.rfind(" ", 0, _MAX_CHARS)
            return space + 1 if space > 0 else _MAX_CHARS
        return None

    def _abbreviated(self, stop: int, end: int) -> bool:
        if self._text[stop:end] != ".":
            return False
        word = (self._text[:stop].split() or [""])[-1].lstrip("(\"'“‘").lower()
        if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i"):
            return True
        following = self._text[end:].lstrip()
        return bool(following) and following[0].islower()

    def _after_space(self, end: int) -> int:
        while end < len(self._text) and self._text[end].isspace():
            end += 1
        return end


CODE_SAID: Final = "The code is in the text."
LINK_SAID: Final = "a link"
_FENCE: Final = re.compile(r"```|~~~")
_NAMED_LINK: Final = re.compile(
    r"!?\[([^\[\]]{1,200})\]\((?:https?://|www\.|/|#)[^\s()]{0,2000}(?:\([^\s()]*\))?\)"
)
_ADDRESS: Final = re.compile(r"<?(?:https?://|www\.)[^\s<>]+>?", re.IGNORECASE)
# What ends a sentence or a bracket behind an address is seldom part of it.
_BEHIND: Final = ".,;:!?)]}'\"*_>`"


class SpokenForm:
    """Feed the sentences of one text; get what a voice reads of each."""

    def __init__(self) -> None:
        self._in_code = False

    def of(self, sentence: str) -> str:
        """Return what is read of the next sentence, nothing of lines of code."""
        if not self._in_code and not _FENCE.search(sentence):
            return _without_addresses(sentence)
        read: list[str] = []
        for position, part in enumerate(_FENCE.split(sentence)):
            if position:
                self._in_code = not self._in_code
                read += [f"{CODE_SAID} "] if self._in_code else []
            if not self._in_code:
                read.append(_without_addresses(part))
        return "".join(read)


def _without_addresses(text: str) -> str:
    if "://" not in text and "www." not in text.lower() and "](" not in text:
        return text
    return _ADDRESS.sub(_as_link, _NAMED_LINK.sub(r"\1", text))


def _as_link(address: re.Match[str]) -> str:
    found = address.group()
    return LINK_SAID + found[len(found.rstrip(_BEHIND)) :].replace(">", "")
