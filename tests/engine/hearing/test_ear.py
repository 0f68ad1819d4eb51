"""Listening with the real models: words, silence, formats, partials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.ears import ear_with, transcript
from tests.parts.engine_parts import (
    LEAD_MS,
    heard_as,
    in_format,
    loaded,
    quiet,
    recording,
)
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.ear import Captions, Ear
from voiceapp.engine.turns.detector import SpeechStarted, SpeechStopped, TurnDetector, TurnSettings
from voiceapp.language.punctuation import ended


def noise(ms: int, dbfs: float) -> bytes:
    samples = np.random.default_rng(7).normal(0, 32768 * 10 ** (dbfs / 20), 24 * ms)
    return samples.clip(-32768, 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_what_is_said_is_heard_in_every_format(audio_format: AudioFormat) -> None:
    # How many words are right is measured by ``tests.benchmarks.bench_ear``.
    for name in ("train", "joke", "hello"):
        audio = recording(name, audio_format) + quiet(500, audio_format)
        assert heard_as(transcript(ear_with(audio, audio_format))) == name


@pytest.mark.parametrize("audio", [quiet(3000), noise(3000, -50), noise(3000, -35)])
def test_silence_and_noise_say_nothing(audio: bytes) -> None:
    assert transcript(ear_with(audio)) == ""


def test_noise_starts_no_turn_and_speech_does() -> None:
    def turns(audio: bytes) -> list[object]:
        detector = TurnDetector(TurnSettings())
        ear = Ear(loaded().detector, AudioFormat.PCM16)
        return [
            mark for window in ear.hear(audio) for mark in detector.feed(window.probability, window.start_ms)
        ]

    assert turns(noise(5000, -50)) == []
    marks = turns(quiet(1000) + recording("hello") + quiet(1000))
    started = [mark for mark in marks if isinstance(mark, SpeechStarted)]
    stopped = [mark for mark in marks if isinstance(mark, SpeechStopped)]
    assert len(started) == len(stopped) == 1
    assert 1000 <= started[0].audio_start_ms <= 1000 + LEAD_MS + 200
    assert stopped[0].audio_end_ms > started[0].audio_start_ms + 1000


def test_the_size_of_frames_does_not_matter() -> None:
    audio = recording("digits")
    whole = Ear(loaded().detector, AudioFormat.PCM16)
    expected = whole.hear(audio)
    pieces = Ear(loaded().detector, AudioFormat.PCM16)
    size = 7 * AudioFormat.PCM16.bytes_per_ms
    frames = [audio[at : at + size] for at in range(0, len(audio), size)]
    found = [window.probability for frame in frames for window in pieces.hear(frame)]
    assert found == pytest.approx([window.probability for window in expected], abs=0.01)
    assert pieces.end_ms == whole.end_ms


def test_the_clock_goes_on_over_a_change_of_format() -> None:
    ear = ear_with(quiet(1000))
    ear.change_format(AudioFormat.PCMA)
    ear.hear(recording("hello", AudioFormat.PCMA) + quiet(500, AudioFormat.PCMA))
    span = ear.speech_span(0, ear.end_ms)
    assert span is not None
    assert span[0] > 1000
    assert heard_as(transcript(ear)) == "hello"


def test_forgotten_audio_is_gone_and_the_clock_stays() -> None:
    ear = ear_with(noise(2000, -20))
    kept = ear.samples(1500, 1600)
    ear.forget(1200)
    assert np.array_equal(ear.samples(1500, 1600), kept)
    assert ear.samples(0, 1200).size == 0
    assert ear.samples(1100, 1300).size == 1600


# -- captions -------------------------------------------------------------------------------------------


def test_a_word_is_given_out_when_two_decodings_agree_or_three_words_follow() -> None:
    captions = Captions()
    assert captions.feed("Turn") == ""
    assert captions.feed("Turn of") == "Turn"
    assert captions.feed("Turn off the") == ""
    assert captions.feed("Turn off the light in") == " off the"
    assert captions.feed("Turn off the light in my big room") == " light in"
    assert captions.finish("Turn off the light in my room.") == " my room."


def test_the_first_word_may_come_unconfirmed() -> None:
    captions = Captions()
    assert captions.feed("What.", eager=True) == "What"
    assert captions.feed("What is", eager=True) == ""


def test_what_was_given_out_is_never_contradicted() -> None:
    captions = Captions()
    captions.feed("I can go")
    captions.feed("I can see")
    assert captions.said == "I can"
    assert captions.feed("I cannot go now or ever") == ""
    assert captions.finish("I cannot go now.") == ""


@given(st.lists(st.text(alphabet="abc .,", max_size=20), max_size=8), st.text(alphabet="abc .,", max_size=30))
def test_pieces_always_join_to_what_was_said(decodings: list[str], final: str) -> None:
    captions = Captions()
    pieces = [captions.feed(text) for text in decodings]
    pieces.append(captions.finish(final))
    assert "".join(pieces) == captions.said


@given(st.text(alphabet='ab ,.-?"', max_size=20), st.booleans())
def test_pieces_of_words_that_are_not_contradicted_join_to_the_sentence(heard: str, eager: bool) -> None:
    captions = Captions()
    text = " ".join(heard.split())
    pieces = [captions.feed(text, eager=eager), captions.feed(text), captions.finish(ended(text))]
    assert "".join(pieces) == ended(text)


def test_a_tone_is_heard_at_its_pitch_in_every_format() -> None:
    time = np.arange(24_000) / 24_000
    tone = (np.sin(2 * np.pi * 1000 * time) * 8000).astype(np.int16)
    for audio_format in AudioFormat:
        ear = ear_with(in_format(tone, 24_000, audio_format), audio_format)
        samples = ear.samples(200, 900)
        spectrum = np.abs(np.fft.rfft(samples))
        assert abs(spectrum.argmax() * 16_000 / samples.size - 1000) <= 5
