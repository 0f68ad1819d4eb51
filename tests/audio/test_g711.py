"""G.711 after ITU-T: every code and every sample."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
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
