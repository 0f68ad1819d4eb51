"""Formats in every spelling, their silence and their lengths."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("pcm16", AudioFormat.PCM16),
        ("g711_ulaw", AudioFormat.PCMU),
        ("g711_alaw", AudioFormat.PCMA),
        ("audio/pcmu", AudioFormat.PCMU),
        ({"type": "audio/pcm", "rate": 24000}, AudioFormat.PCM16),
        ({"type": "audio/pcma"}, AudioFormat.PCMA),
    ],
)
def test_formats_are_read_in_every_spelling(spelling: object, expected: AudioFormat) -> None:
    assert AudioFormat.parse(spelling) is expected


@pytest.mark.parametrize("spelling", ["opus", None, 3, {}, {"type": ["audio/pcm"]}])
def test_other_formats_are_refused(spelling: object) -> None:
    with pytest.raises(AudioFormatError):
        AudioFormat.parse(spelling)


@pytest.mark.parametrize("audio_format", AudioFormat)
def test_silence_is_silent(audio_format: AudioFormat) -> None:
    data = audio_format.silence * 800
    samples = data if audio_format is AudioFormat.PCM16 else g711.decode(data, audio_format)
    assert np.max(np.abs(np.frombuffer(samples, "<i2"))) <= 8
    assert audio_format.duration_ms(len(data)) == 800 * 1000 / audio_format.rate_hz


@pytest.mark.parametrize(
    ("audio_format", "rate", "width", "shown", "beta"),
    [
        (AudioFormat.PCM16, 24_000, 2, {"type": "audio/pcm", "rate": 24_000}, "pcm16"),
        (AudioFormat.PCMU, 8_000, 1, {"type": "audio/pcmu"}, "g711_ulaw"),
        (AudioFormat.PCMA, 8_000, 1, {"type": "audio/pcma"}, "g711_alaw"),
    ],
)
def test_a_format_has_its_rate_width_and_names(
    audio_format: AudioFormat, rate: int, width: int, shown: dict[str, object], beta: str
) -> None:
    assert (audio_format.rate_hz, audio_format.sample_bytes) == (rate, width)
    assert audio_format.bytes_per_ms * 1000 == rate * width
    assert (audio_format.to_ga(), audio_format.beta_name) == (shown, beta)
    assert AudioFormat.parse(audio_format.to_ga()) is AudioFormat.parse(beta) is audio_format
