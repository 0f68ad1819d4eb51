"""G.711 after ITU-T, resampling without seams, formats in every spelling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.audio import g711, pcm
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Resampler, Transcoder
from voiceapp.errors import AudioFormatError

LAWS = [AudioFormat.PCMU, AudioFormat.PCMA]


def itu_expand(code: int, law: AudioFormat) -> int:
    """The decoder of ITU-T G.711, written from the standard's decision tables, in 16-bit scale."""
    if law is AudioFormat.PCMU:
        code = ~code & 0xFF
        segment, step = code >> 4 & 7, code & 15
        value = (((2 * step + 33) << segment) - 33) * 4
        return -value if code & 0x80 else value
    code ^= 0x55
    segment, step = code >> 4 & 7, code & 15
    value = (2 * step + 1) * 8 if segment == 0 else (2 * step + 33) << (segment + 2)
    return value if code & 0x80 else -value


@pytest.mark.parametrize("law", LAWS)
def test_all_256_codes_decode_as_in_the_standard(law: AudioFormat) -> None:
    decoded = np.frombuffer(g711.decode(bytes(range(256)), law), "<i2")
    assert decoded.tolist() == [itu_expand(code, law) for code in range(256)]


@pytest.mark.parametrize("law", LAWS)
def test_every_code_survives_decoding_and_encoding(law: AudioFormat) -> None:
    back = g711.encode(g711.decode(bytes(range(256)), law), law)
    # μ-law has two zeros; the standard sends the positive one.
    expected = [0xFF if law is AudioFormat.PCMU and code == 0x7F else code for code in range(256)]
    assert list(back) == expected


@pytest.mark.parametrize("law", LAWS)
def test_each_sample_is_off_by_half_a_step_at_most(law: AudioFormat) -> None:
    samples = np.arange(-32768, 32768, dtype=np.int32)
    decoded = np.frombuffer(g711.decode(g711.encode(samples.astype("<i2").tobytes(), law), law), "<i2")
    # Half a step: the standard's steps are a thirty-second of the (biased) magnitude, or finer.
    assert np.all(np.abs(decoded - samples) <= (np.abs(samples) + 132) / 32 + 16)
    assert np.all(np.diff(decoded.astype(np.int32)) >= 0)


def test_an_odd_byte_is_refused() -> None:
    with pytest.raises(AudioFormatError):
        g711.encode(b"\0", AudioFormat.PCMU)


def tone(hz: float, rate: int, seconds: float = 1.0) -> bytes:
    t = np.arange(int(rate * seconds)) / rate
    return pcm.from_float((0.5 * np.sin(2 * np.pi * hz * t)).astype(np.float32))


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


@given(st.binary(max_size=200).map(lambda data: data[: len(data) // 2 * 2]))
def test_float_and_back_is_exact(samples: bytes) -> None:
    assert pcm.from_float(pcm.to_float(samples)) == samples


def test_levels() -> None:
    assert pcm.level_dbfs(b"") == -math.inf
    assert abs(pcm.level_dbfs(tone(1000, 24_000)) + 9.03) < 0.05


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
