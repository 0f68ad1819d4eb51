"""A title and a summary made of a conversation's own sentences, without a language model; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from voiceapp.language.punctuation import ended, without_end

TITLE_CHARS: Final = 60
SENTENCES: Final = 3
SUMMARY_CHARS: Final = 400

_WORD: Final = re.compile(r"[^\W\d_]{3,}")
# A mark inside a word or number ("12.5", "example.com") ends nothing.
_BETWEEN_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n+")
# Words that say nothing about what a conversation is about.
_EMPTY: Final = frozenset({
    "about", "after", "again", "all", "also", "and", "any", "anything", "are", "because", "been", "but",
    "can", "could", "did", "does", "doing", "done", "for", "from", "get", "going", "good", "had", "has",
    "have", "hello", "here", "how", "into", "its", "just", "know", "let", "like", "maybe", "more", "much",
    "not", "now", "okay", "only", "other", "our", "out", "please", "really", "say", "should", "some",
    "something", "sorry", "still", "such", "sure", "tell", "than", "thank", "thanks", "that", "the",
    "their", "them", "then", "there", "these", "they", "thing", "think", "this", "those", "too", "very",
    "want", "was", "well", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "yes", "you", "your",
})  # fmt: skip
_GREETING: Final = re.compile(
    r"^(?:(?:hello|hi|hey|good (?:morning|afternoon|evening)|okay|ok|well|so|please"
    r"|can you hear me(?: clearly| now| well)?)\b[\s,.!?]*)+",
    re.IGNORECASE,
)


def title_of(said: Sequence[str]) -> str:
    """Return the first thing that the user wanted, without its greeting; nothing where nothing was said."""
    return next(themes_of(said), "")


def titles_besides(title: str, said: Sequence[str]) -> Iterator[str]:
    """Yield further titles for where other conversations have this one: each with one more theme of this.

    ``title`` and theme are cut to have room together in ``TITLE_CHARS``.
    """
    for theme in dict.fromkeys(themes_of(said)):
        if theme.casefold() != title.casefold():
            room = (TITLE_CHARS - len("; ")) // 2
            yield f"{_cut(title, TITLE_CHARS - len('; ') - min(len(theme), room))}; {_cut(theme, room)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def themes_of(said: Sequence[str]) -> Iterator[str]:
    """Yield what the user wanted, one thing after the other, each without its greeting."""
    for text in said:
        for sentence in _sentences(text):
            words = without_end(_GREETING.sub("", sentence).lstrip(" ,.!?"))
            # One word is seldom what somebody wants.
            if len(_content(words)) >= 2:
                words = (words[0].upper() if words[0].isascii() else words[0]) + words[1:]
                yield _cut(words, TITLE_CHARS)


def summary_of(said: Sequence[str]) -> str:
    """Return those of the user's sentences whose words the conversation comes back to, in their order."""
    spoken = [sentence for text in said for sentence in _sentences(text)]
    sentences = [sentence for sentence in spoken if _content(_GREETING.sub("", sentence))]
    weight = Counter(word for sentence in sentences for word in set(_content(sentence)))

    def score(position: int) -> tuple[float, int]:
        words = _content(sentences[position])
        # The earlier of two that say as much: what is asked for first is mostly what it is about.
        return (sum(weight[word] for word in words) / (len(words) + 2), -position)

    ranked = sorted(range(len(sentences)), key=score, reverse=True)
    chosen: list[str] = []
    seen: set[str] = set()
    for position in ranked:
        key = " ".join(_content(sentences[position]))
        if key not in seen:
            seen.add(key)
            chosen.append(sentences[position])
        if len(chosen) == SENTENCES:
            break
    kept = [sentence for sentence in dict.fromkeys(sentences) if sentence in chosen]
    summary = " ".join(map(ended, kept))
    return _cut(summary, SUMMARY_CHARS)


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _BETWEEN_SENTENCES.split(text) if _WORD.search(part)]


def _content(text: str) -> list[str]:
    return [word for word in (found.lower() for found in _WORD.findall(text)) if word not in _EMPTY]
