"""How a sentence ends that somebody said or wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.language.punctuation import ended, without_end


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("Set a timer for ten seconds,", "Set a timer for ten seconds."),
        ("Set a timer for ten seconds.", "Set a timer for ten seconds."),
        ("Set a timer for ten seconds", "Set a timer for ten seconds."),
        ("by milk,.", "by milk."),
        ("by milk.,", "by milk."),
        ("by milk ,", "by milk."),
        ("I want;", "I want."),
        ("He said:", "He said."),
        ("And then -", "And then."),
        ("And then\N{EM DASH}", "And then."),
        ("And then\N{EN DASH} ", "And then."),
        ("Well...", "Well."),
        ("Well..", "Well."),
        ("Well…", "Well."),
        ("Well, . . .", "Well."),
        ("Is it?", "Is it?"),
        ("Is it?...", "Is it?"),
        ("Is it?!", "Is it?!"),
        ("Stop!,", "Stop!"),
        ("At 5 p.m.", "At 5 p.m."),
        ("It is 3.5", "It is 3.5."),
        ("Well, no - I mean: one, two; three,", "Well, no - I mean: one, two; three."),
        ('He said "yes,"', 'He said "yes."'),
        ('He said "yes"', 'He said "yes".'),
        ('He said "yes",', 'He said "yes".'),
        ('He said "stop!",', 'He said "stop!"'),
        ("“Hi…”", "“Hi.”"),
        ("the dogs'", "the dogs'."),
        ("two litres (or three)", "two litres (or three)."),
        ("你好。", "你好。"),
        ("  Hello,  ", "  Hello."),
        ("...", ""),
        (",", ""),
        ('"…"', ""),
        ("", ""),
    ],
)
def test_a_sentence_ends_in_one_full_stop_or_in_its_own_mark(said: str, sentence: str) -> None:
    assert ended(said) == sentence


@given(st.text(alphabet="ab1 .,;:!?…-\"')", max_size=12))
def test_every_end_is_an_end_and_stays_one(said: str) -> None:
    sentence = ended(said)
    assert ended(sentence) == sentence
    assert bool(sentence) == any(character.isalnum() for character in said)
    assert not sentence or sentence.rstrip("\"')")[-1] in ".!?"
    assert not sentence.endswith(("..", ",.", ";.", ":."))
    assert [one for one in sentence if one.isalnum()] == [one for one in said if one.isalnum()]


@pytest.mark.parametrize(
    ("text", "rest"),
    [("buy milk,", "buy milk"), ("buy milk (2 l).", "buy milk (2 l)"), ("why?!", "why"), ("", ""), ("…", "")],
)
def test_marks_behind_the_last_word_are_left_out(text: str, rest: str) -> None:
    assert without_end(text) == rest
