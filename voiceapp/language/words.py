"""Words of a text, in whatever script, and whether a text has those that are looked for; pure."""

from __future__ import annotations

import unicodedata
from typing import Final

_SPACELESS: Final = (
    "CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN",
    "YI SYLLABLE",
)  # fmt: skip


def words_in(text: str) -> list[str]:
    """Return the words of a text, without case, compatible characters alike (NFKC), without marks between.

    A word is a run of letters, digits and the marks that belong to them (Unicode categories L, N and M).
    """
    alike = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(sign if unicodedata.category(sign)[0] in "LNM" else " " for sign in alike).split()


def has_words(text: str, wanted: str) -> bool:
    """Whether a text has all the words of another: whole ones, but in scripts written without spaces."""
    found = words_in(text)
    return all(
        word in found if not _is_spaceless(word) else any(word in one for one in found)
        for word in words_in(wanted)
    )


def _is_spaceless(word: str) -> bool:
    """Whether a word is of a script in which it may stand within a run of letters."""
    return any(unicodedata.name(sign, "").startswith(_SPACELESS) for sign in word)
