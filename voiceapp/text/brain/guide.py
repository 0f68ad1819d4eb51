"""Answers about the product, out of the guide that is packaged with it (``guide.md``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GUIDE: Final = Path(__file__).with_name("guide.md")

_WORD: Final = re.compile(r"[a-z]+")
_STOP: Final = frozenset([
    "a", "about", "an", "and", "app", "application", "are", "can", "could", "do", "does", "for", "from",
    "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "please", "product",
    "should", "tell", "that", "the", "this", "to", "use", "voice", "voiceapp", "was", "what", "when",
    "where", "which", "who", "why", "will", "with", "work", "works", "would", "you", "your",
])  # fmt: skip
_MAX_CHARS: Final = 420


@dataclass(frozen=True, slots=True)
class _Paragraph:
    heading: str
    text: str
    words: frozenset[str]
    heading_words: frozenset[str]


class ProductGuide:
    """A guide in Markdown as paragraphs that can be read aloud.

    A heading is not read: its words, and those of the paragraphs, say which questions a paragraph answers.
    """

    def __init__(self, markdown: str) -> None:
        self._paragraphs = _paragraphs(markdown)

    @classmethod
    def load(cls) -> ProductGuide:
        """Read the guide of the product."""
        return cls(GUIDE.read_text("utf-8"))

    def introduction(self) -> str | None:
        """Return the first paragraph."""
        return self._paragraphs[0].text if self._paragraphs else None

    def answer(self, question: str) -> str | None:
        """Return the paragraph that speaks of what is asked, or ``None``."""
        asked = _content_words(question)
        if not asked:
            return self.introduction()
        best, score = None, 0.0
        for paragraph in self._paragraphs:
            found = len(asked & paragraph.words) + 1.5 * len(asked & paragraph.heading_words)
            if found > score:
                best, score = paragraph, found
        return best.text if best else None


def _paragraphs(markdown: str) -> list[_Paragraph]:
    found: list[_Paragraph] = []
    heading = ""
    for block in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", markdown, flags=re.S)):
        lines = block.strip().splitlines()
        if lines and lines[0].startswith("#"):
            heading = lines.pop(0).lstrip("# ")
        text = _plain(" ".join(lines))
        # Tables, pictures and lists of commands cannot be read aloud.
        if len(text.split()) < 6 or "|" in text:
            continue
        found.append(_Paragraph(heading, text, _content_words(text), _content_words(heading)))
    return found


def _plain(text: str) -> str:
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*`>]+|^\s*[-+]\s+", "", text)
    text = " ".join(text.split())
    if len(text) <= _MAX_CHARS:
        return text
    sentences = re.split(r"(?<=[.!?])\s+", text)
    short = sentences[0]
    for sentence in sentences[1:]:
        if len(short) + len(sentence) > _MAX_CHARS:
            break
        short += f" {sentence}"
    return short


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word.rstrip("s") for word in _WORD.findall(text.lower()) if word not in _STOP)
