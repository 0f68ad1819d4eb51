"""Streams of text cut into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.stalls import growth
from voiceapp.text.sentences import SentenceSplitter


def split(*pieces: str) -> list[str]:
    splitter = SentenceSplitter()
    return [sentence for piece in pieces for sentence in splitter.feed(piece)] + splitter.finish()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello there! How are you?", ["Hello there! ", "How are you?"]),
        ("Dr. Smith lives at St. James. He is in.", ["Dr. Smith lives at St. James. ", "He is in."]),
        ("It costs 3.50 today. Yes.", ["It costs 3.50 today. ", "Yes."]),
        ('She said "No." Then she left.', ['She said "No." ', "Then she left."]),
        ("One\nTwo", ["One\n", "Two"]),
        ("Well... maybe. so it is. Done", ["Well... ", "maybe. so it is. ", "Done"]),
        ("", []),
        ("No end", ["No end"]),
    ],
)
def test_sentences_end_where_people_end_them(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_the_first_sentence_is_begun_at_a_comma_when_it_is_long() -> None:
    first, *rest = split(
        "When the evening came and the lamps were lit, the old man went down to the sea again."
    )
    assert first == "When the evening came and the lamps were lit, "
    assert "".join(rest) == "the old man went down to the sea again."


def test_text_without_any_end_is_cut_at_a_space() -> None:
    pieces = split("word " * 400)
    assert max(map(len, pieces)) <= 600
    assert all(piece.endswith(" ") for piece in pieces)


@given(st.lists(st.text(alphabet="ab .,!?\n…", max_size=30)))
def test_nothing_is_lost_and_nothing_added(pieces: list[str]) -> None:
    assert "".join(split(*pieces)) == "".join(pieces)


def test_a_sentence_is_there_as_soon_as_the_next_character_shows_its_end() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("I am here") == []
    assert splitter.feed(".") == []
    assert splitter.feed(" ") == ["I am here. "]


@pytest.mark.parametrize("part", ["word ", "mr. ", "x", "a, b ", "."])
def test_a_book_in_one_piece_is_cut_in_the_time_of_its_length(part: str) -> None:
    text = part * 20_000
    sentences = split(text)
    assert "".join(sentences) == text
    assert max(map(len, sentences)) < 3_000
    assert growth(lambda count: split(part * count), 4_000) < 3
