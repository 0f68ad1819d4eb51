"""Listening with the real models: words, silence, formats, partials."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.engine_parts import (
    LEAD_MS,
    heard_as,
    in_format,
    loaded,
    plain_words,
    quiet,
    recording,
    word_errors,
    words_of,
)
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.ear import SEGMENT_MS, Captions, Ear
from voiceapp.engine.hearing.utterance import Utterance
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.inference.recogniser import (
    DECODER,
    ENCODER,
    TOKENIZER,
    collapse_repeats,
    parse_tokenizer,
)
from voiceapp.engine.inference.vad import WEIGHTS
from voiceapp.engine.inference.weights import ModelError, WeightFile
from voiceapp.engine.turns.detector import SpeechStarted, SpeechStopped, TurnDetector, TurnSettings


def ear_with(audio: bytes, audio_format: AudioFormat = AudioFormat.PCM16, frame_ms: int = 20) -> Ear:
    ear = Ear(loaded().detector, audio_format)
    size = frame_ms * audio_format.bytes_per_ms
    for start in range(0, len(audio), size):
        ear.hear(audio[start : start + size])
    return ear


def transcript(ear: Ear) -> str:
    utterance = Utterance(loaded(), ear, 0)
    return asyncio.run(utterance.words(ear.end_ms, Priority.FINAL))


def noise(ms: int, dbfs: float) -> bytes:
    samples = np.random.default_rng(7).normal(0, 32768 * 10 ** (dbfs / 20), 24 * ms)
    return samples.clip(-32768, 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_what_is_said_is_heard_in_every_format(audio_format: AudioFormat) -> None:
    # How many words are right is measured by ``tests.benchmarks.bench_ear``.
    for name in ("austen-2", "train", "joke", "hello"):
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
    pieces = ear_with(audio, frame_ms=7)
    found = [window.probability for window in pieces._windows]
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


def test_a_draft_changes_the_time_and_not_the_words() -> None:
    recogniser = loaded().recogniser
    for name in ("timer", "weather"):
        ear = ear_with(recording(name))
        samples = ear.samples(0, ear.end_ms)
        early = recogniser.recognise(samples[: samples.size * 2 // 3])
        without = recogniser.recognise(samples)
        for draft in (early.tokens, (5000, 6000, 7000)):
            # A draft is checked in one pass, in which quantised weights may round a near choice otherwise.
            assert word_errors(without.text, recogniser.recognise(samples, draft).text) <= 1


def test_too_little_audio_says_nothing() -> None:
    assert loaded().recogniser.recognise(np.ones(1023, np.float32)).text == ""


def test_long_speech_is_divided_and_nothing_is_lost() -> None:
    names = ("austen-1", "austen-2", "jfk", "capital", "timer")
    audio = b"".join(recording(name) + quiet(300) for name in names)
    ear = ear_with(audio)
    assert ear.end_ms > 2 * SEGMENT_MS
    utterance = Utterance(loaded(), ear, 0)

    async def run() -> str:
        # Settling on the way lets go of the beginning.
        await utterance.settle(ear.end_ms * 2 // 3)
        assert utterance.needed_from_ms > 0
        ear.forget(utterance.needed_from_ms)
        return await utterance.words(ear.end_ms, Priority.FINAL)

    said = [words_of(name) for name in names]
    # Had one of the sentences been lost, even the shortest, there would be more.
    assert word_errors(" ".join(said), asyncio.run(run())) < min(len(plain_words(text)) for text in said)


def test_partials_arrive_word_by_word_and_lead_to_the_final() -> None:
    audio = recording("weather")
    ear = Ear(loaded().detector, AudioFormat.PCM16)
    captions = Captions()
    utterance = Utterance(loaded(), ear, 0)
    pieces: list[str] = []

    async def run() -> str:
        step = 400 * 48
        for start in range(0, len(audio), step):
            ear.hear(audio[start : start + step])
            pieces.append(captions.feed(await utterance.partial(ear.end_ms)))
        return await utterance.words(ear.end_ms, Priority.FINAL)

    final = asyncio.run(run())
    pieces.append(captions.finish(final))
    assert "".join(pieces) == captions.said
    assert heard_as(captions.said) == heard_as(final) == "weather"
    assert len([piece for piece in pieces if piece]) >= 4


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


# -- weights and tokens ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [ENCODER, DECODER, TOKENIZER, WEIGHTS])
def test_altered_weights_are_refused(weights: WeightFile) -> None:
    assert weights.read()
    with pytest.raises(ModelError, match="not the file") as caught:
        WeightFile(weights.package, weights.path, "0" * 64).read()
    assert caught.value.code == "model_unavailable"


def test_missing_weights_say_what_is_missing() -> None:
    with pytest.raises(ModelError, match="no_such_package is not installed"):
        WeightFile("no_such_package", "x", "").read()
    with pytest.raises(ModelError, match="cannot be read"):
        WeightFile("hibari", "assets/nothing.onnx", "").read()


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


def test_a_tone_is_heard_at_its_pitch_in_every_format() -> None:
    time = np.arange(24_000) / 24_000
    tone = (np.sin(2 * np.pi * 1000 * time) * 8000).astype(np.int16)
    for audio_format in AudioFormat:
        ear = ear_with(in_format(tone, 24_000, audio_format), audio_format)
        samples = ear.samples(200, 900)
        spectrum = np.abs(np.fft.rfft(samples))
        assert abs(spectrum.argmax() * 16_000 / samples.size - 1000) <= 5
