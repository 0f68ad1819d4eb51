"""Which words of an answer were heard, by how much of its sound was; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_LONG_SOUND: Final = "\u30fc"
_JOINED: Final = frozenset("\u200d\u0e33\u0eb3")
"""What belongs to the character before it though Unicode calls it none of the marks: a joiner, and am."""


def heard_words(text: str, cut_ms: float, total_ms: float) -> str:
    """Return the words of ``text`` that fit into ``cut_ms`` of ``total_ms``.

    Speech spreads over its text about evenly by letters, so a word counts as heard when more than half
    of its letters were. Words are what spaces separate, and what Unicode's word boundaries (UAX 29) separate
    in scripts that are written without spaces.
    """
    if total_ms <= 0 or cut_ms <= 0:
        return ""
    if cut_ms >= total_ms:
        return text
    limit = len(text) * cut_ms / total_ms
    end = 0
    for start, at in words(text):
        if (start + at) / 2 > limit:
            break
        end = at
    return text[:end]


def words(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each word begins and ends."""
    for found in re.finditer(r"\S+", text):
        if found[0].isascii():
            yield found.span()
        else:
            yield from _pieces(text, *found.span())


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the words of a stretch without spaces; a mark stays with what it follows."""
    before, kind = start, _kind(text[start])
    for place in range(start + 1, end):
        character = text[place]
        if character in _JOINED or unicodedata.category(character)[0] in "MP":
            continue
        following = _kind(character)
        if kind == following and kind != "alone":
            continue
        yield before, place
        before, kind = place, following
    yield before, end


def _kind(character: str) -> str:
    """Return what a character makes words with: katakana and spaced letters with their like, others alone."""
    if character == _LONG_SOUND:
        return "katakana"
    if character.isascii():
        return "spaced"
    name = unicodedata.name(character, "")
    if name.startswith(("KATAKANA", "HALFWIDTH KATAKANA")):
        return "katakana"
    spaceless = ("CJK", "HIRAGANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "YI SYLLABLE")
    return "alone" if name.startswith(spaceless) else "spaced"
