"""The pieces in which speech is sent."""

from __future__ import annotations

import pytest

from tests.parts.engine_parts import loaded
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.speaking.reply import Chunks

SENTENCES = (
    "Hello there, I am the assistant.",
    "Once upon a time a small robot lived in a lighthouse at the edge of the sea.",
    "At nine thirty we have twelve apples, and the doctor said hello.",
)


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_speech_is_sent_in_the_services_pieces_without_loss(audio_format: AudioFormat) -> None:
    chunks = Chunks(audio_format)
    speeches = [loaded().voice.speak(sentence) for sentence in SENTENCES]
    pieces = [piece for speech in speeches for piece in chunks.feed(speech)] + chunks.finish()
    bytes_per_ms = audio_format.bytes_per_ms
    assert [len(piece.audio) for piece in pieces[:3]] == [
        100 * bytes_per_ms,
        150 * bytes_per_ms,
        250 * bytes_per_ms,
    ]
    assert max(len(piece.audio) for piece in pieces) == 250 * bytes_per_ms
    said = "".join(word.text for piece in pieces for word in piece.words)
    assert said == "".join(SENTENCES)
    total_ms = sum(len(piece.audio) for piece in pieces) / bytes_per_ms
    assert total_ms == pytest.approx(sum(speech.duration_ms for speech in speeches), abs=2)


def test_words_come_with_the_piece_in_which_they_begin() -> None:
    chunks = Chunks(AudioFormat.PCM16)
    clock = 0.0
    for piece in chunks.feed(loaded().voice.speak(SENTENCES[1])):
        end = clock + len(piece.audio) / 48
        for word in piece.words:
            assert clock - 0.01 <= word.start_ms < end
        clock = end
