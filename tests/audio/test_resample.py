"""Resampling without seams, in any chunks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parts.tones import tone
from voiceapp.audio import g711, pcm
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Resampler, Transcoder


def pitch_hz(samples: bytes, rate: int) -> float:
    x = pcm.to_float(samples) * np.hanning(len(samples) // 2)
    return float(np.argmax(np.abs(np.fft.rfft(x, 1 << 19))) * rate / (1 << 19))


@pytest.mark.parametrize("chunk_ms", [20, 50, 320])
@pytest.mark.parametrize("source", AudioFormat)
@pytest.mark.parametrize("target", AudioFormat)
def test_a_tone_keeps_its_pitch_and_length_in_any_chunks(
    source: AudioFormat, target: AudioFormat, chunk_ms: int
) -> None:
    samples = tone(1000, source.rate_hz)
    data = samples if source is AudioFormat.PCM16 else g711.encode(samples, source)
    size = source.bytes_per_ms * chunk_ms
    stream = Transcoder(source, target)
    out = b"".join(
        stream.feed(data[at : at + size], last=at + size >= len(data)) for at in range(0, len(data), size)
    )
    assert abs(target.duration_ms(len(out)) - 1000) <= 1
    heard = out if target is AudioFormat.PCM16 else g711.decode(out, target)
    assert abs(pitch_hz(heard, target.rate_hz) - 1000) <= 5


def test_seams_are_silent() -> None:
    whole = Resampler(24_000, 8_000)
    parts = Resampler(24_000, 8_000)
    data = tone(440, 24_000)
    once = whole.feed(data, last=True)
    many = b"".join(
        parts.feed(data[at : at + 960], last=at + 960 >= len(data)) for at in range(0, len(data), 960)
    )
    a, b = np.frombuffer(once, "<i2").astype(int), np.frombuffer(many, "<i2").astype(int)
    assert len(a) == len(b)
    assert np.max(np.abs(a - b)) <= 2


def test_going_down_to_8_khz_does_not_alias() -> None:
    out = Resampler(24_000, 8_000).feed(tone(6_000, 24_000), last=True)
    assert pcm.level_dbfs(out) < pcm.level_dbfs(tone(6_000, 24_000)) - 40
