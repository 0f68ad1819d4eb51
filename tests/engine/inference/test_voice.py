"""The real voice: what it says, how long, and when each word is heard."""

from __future__ import annotations

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parts.engine_parts import loaded, plain_words, understood
from voiceapp.engine.inference.voice import Speech, align_words
from voiceapp.engine.session.items import TimedWord

SENTENCES = (
    "Hello there, I am the assistant.",
    "Once upon a time a small robot lived in a lighthouse at the edge of the sea.",
    "At nine thirty we have twelve apples, and the doctor said hello.",
)


def samples_of(speech: Speech) -> NDArray[np.float32]:
    return np.frombuffer(speech.samples, "<i2").astype(np.float32) / np.float32(32768)


def heard(speech: Speech, until_ms: float | None = None) -> str:
    samples = samples_of(speech)
    if until_ms is not None:
        samples = samples[: int(until_ms * 24)]
    padded = np.concatenate((np.zeros(4800, np.float32), samples, np.zeros(4800, np.float32)))
    return loaded().recogniser.recognise(soxr.resample(padded, 24_000, 16_000)).text


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_voice_is_understood(sentence: str) -> None:
    # How many words are right is measured by ``tests.benchmarks.bench_ear``.
    assert understood(sentence, heard(loaded().voice.speak(sentence)))


@pytest.mark.parametrize("sentence", [*SENTENCES, "  Hi.  ", "At 9:30 it costs $5, Dr. Smith said.\n"])
def test_words_join_to_the_sentence_and_their_times_go_forward(sentence: str) -> None:
    speech = loaded().voice.speak(sentence)
    assert "".join(word.text for word in speech.words) == sentence
    clock = 0.0
    for word in speech.words:
        assert clock - 0.01 <= word.start_ms <= word.end_ms
        clock = word.end_ms
    assert speech.duration_ms - 300 <= clock <= speech.duration_ms


def test_speech_begins_at_once_and_ends_with_a_short_pause() -> None:
    samples = np.abs(samples_of(loaded().voice.speak(SENTENCES[0])))
    audible = np.flatnonzero(samples > 0.01)
    assert audible[0] / 24 < 40
    assert 150 <= (samples.size - audible[-1]) / 24 <= 300


def test_audio_cut_at_a_words_end_holds_the_words_before_it() -> None:
    speech = loaded().voice.speak(SENTENCES[1])
    for count in (4, 8, 12):
        kept = speech.words[:count]
        words = heard(speech, kept[-1].end_ms)
        assert understood("".join(word.text for word in kept), words)
        assert abs(len(plain_words(words)) - count) <= 2


def test_speed_changes_the_length() -> None:
    voice = loaded().voice
    slow, fast = voice.speak(SENTENCES[0], 0.75), voice.speak(SENTENCES[0], 1.5)
    assert slow.duration_ms > 1.5 * fast.duration_ms
    assert understood(SENTENCES[0], heard(slow))


def test_the_same_sentence_sounds_the_same() -> None:
    voice = loaded().voice
    assert voice.speak(SENTENCES[0]) == voice.speak(SENTENCES[0])


@pytest.mark.parametrize(
    "text", ["", "   ", "\n", "😀", "漢字", "…", "* _ #", "x" * 3000, "https://a.b/c?d=e&f"]
)
def test_nothing_that_is_written_breaks_the_voice(text: str) -> None:
    speech = loaded().voice.speak(text)
    assert len(speech.samples) % 2 == 0
    assert "".join(word.text for word in speech.words).strip() == text.strip()


def test_a_very_long_sentence_is_spoken_whole() -> None:
    text = "one two three four five six seven eight nine ten " * 15
    speech = loaded().voice.speak(text)
    assert len(speech.words) == 150
    assert speech.duration_ms > 30_000


def test_written_numbers_share_the_time_of_the_spoken_ones() -> None:
    spoken = [
        TimedWord("at", 0, 100),
        TimedWord("nine", 100, 300),
        TimedWord("thirty", 300, 600),
        TimedWord("now", 600, 700),
    ]
    assert align_words("At 9:30 now", spoken) == (
        TimedWord("At ", 0, 100), TimedWord("9:30 ", 100, 600), TimedWord("now", 600, 700),
    )  # fmt: skip


@given(st.lists(st.sampled_from(["a", "bee", "12", "$5", "—"]), max_size=12), st.integers(0, 12))
def test_alignment_keeps_every_word_and_never_goes_back(written: list[str], spoken_count: int) -> None:
    spoken = [TimedWord(f"w{n}" if n % 2 else "bee", n * 100.0, n * 100.0 + 100) for n in range(spoken_count)]
    words = align_words(" ".join(written), spoken)
    assert "".join(word.text for word in words) == " ".join(written)
    clock = 0.0
    for word in words:
        assert word.start_ms <= word.end_ms
        assert word.end_ms >= clock
        clock = word.end_ms
