"""The words of one stretch of audio, found while it grows."""

from __future__ import annotations

import asyncio

from tests.parts.ears import ear_with
from tests.parts.engine_parts import (
    heard_as,
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
