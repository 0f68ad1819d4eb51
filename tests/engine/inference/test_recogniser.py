"""The recogniser: its vocabulary, repeats, and drafts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parts.ears import ear_with
from tests.parts.engine_parts import (
    loaded,
    recording,
    word_errors,
)
from voiceapp.engine.inference.recogniser import (
    collapse_repeats,
    parse_tokenizer,
)
from voiceapp.engine.inference.weights import ModelError


def test_a_draft_changes_the_time_and_not_the_words() -> None:
    recogniser = loaded().recogniser
    ear = ear_with(recording("timer"))
    samples = ear.samples(0, ear.end_ms)
    early = recogniser.recognise(samples[: samples.size * 2 // 3])
    without = recogniser.recognise(samples)
    for draft in (early.tokens, (5000, 6000, 7000)):
        # A draft is checked in one pass, in which quantised weights may round a near choice otherwise.
        assert word_errors(without.text, recogniser.recognise(samples, draft).text) <= 1


def test_too_little_audio_says_nothing() -> None:
    assert loaded().recogniser.recognise(np.ones(1023, np.float32)).text == ""


def test_the_vocabulary_has_lengths_of_one_and_two_bytes() -> None:
    long = b"x" * 200
    content = b"".join(bytes([1, number % 256]) for number in range(259)) + bytes([128 + 200 % 128, 1]) + long
    assert parse_tokenizer(content)[-1] == long
    with pytest.raises(ModelError, match="cut short"):
        parse_tokenizer(content[:-1])
    with pytest.raises(ModelError, match="too small"):
        parse_tokenizer(b"\x01a")


def test_repeats_are_said_once_but_digits_may_repeat() -> None:
    assert collapse_repeats([9, 4, 9, 4, 9, 4]) == [9, 4]
    assert collapse_repeats([1, 7, 8, 7, 8, 7, 8, 2]) == [1, 7, 8, 2]
    assert collapse_repeats([5, 5, 5]) == [5, 5, 5]
    assert collapse_repeats([5] * 40) == [5]
    assert collapse_repeats([1, 2, 3, 1, 2, 3]) == [1, 2, 3, 1, 2, 3]
