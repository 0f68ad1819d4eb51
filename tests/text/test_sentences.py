"""Streams of text cut into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.stalls import growth
from voiceapp.text.sentences import CODE_SAID, SentenceSplitter, SpokenForm


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


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("See https://example.com/a/b?c=d&e=%20f.", "See a link."),
        ("See (www.example.com/x), please.", "See (a link), please."),
        ("Go to <https://example.com>!", "Go to a link!"),
        ("See [the guide](https://example.com/guide) first.", "See the guide first."),
        ("**https://example.com/a_b** and HTTP://EXAMPLE.COM", "**a link** and a link"),
        ("Write to me at example.com or a/b, 3 < 4.", "Write to me at example.com or a/b, 3 < 4."),
        ("f[0](x) is called", "f[0](x) is called"),
        ("Try this:\n```python\nprint(1)\nprint(2)\n```\nDone.", f"Try this:\n{CODE_SAID} \nDone."),
        ("One ```x = 1``` two", f"One {CODE_SAID}  two"),
        ("~~~\nx\n~~~", f"{CODE_SAID} "),
        ("```\nno end https://example.com", f"{CODE_SAID} "),
        ("The sign ` is a backtick, and `x` too.", "The sign ` is a backtick, and `x` too."),
    ],
)
def test_a_voice_says_of_code_and_addresses_that_they_are_there(text: str, read: str) -> None:
    form = SpokenForm()
    assert "".join(map(form.of, split(text))) == read
    assert SpokenForm().of(text) == read


@given(st.lists(st.sampled_from(["```", "x", " ", "\n", "http://a.b", "](", "[", ". "]), max_size=20))
def test_whatever_is_written_something_is_read(pieces: list[str]) -> None:
    form = SpokenForm()
    read = "".join(map(form.of, split("".join(pieces))))
    assert "http" not in read
    assert "```" not in read


@pytest.mark.parametrize("part", ["[", "](", "[x](http://", "www."])
def test_odd_text_is_read_in_the_time_of_its_length(part: str) -> None:
    assert growth(lambda count: SpokenForm().of(part * count), 10_000) < 3
