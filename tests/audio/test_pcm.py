"""Samples as numbers and as bytes, and how loud they are."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.tones import tone
from voiceapp.audio import pcm


@given(st.binary(max_size=200).map(lambda data: data[: len(data) // 2 * 2]))
def test_float_and_back_is_exact(samples: bytes) -> None:
    assert pcm.from_float(pcm.to_float(samples)) == samples


def test_levels() -> None:
    assert pcm.level_dbfs(b"") == -math.inf
    assert abs(pcm.level_dbfs(tone(1000, 24_000)) + 9.03) < 0.05


def test_what_is_louder_than_full_scale_is_clipped() -> None:
    samples = np.array([-2.0, -1.0, 1.0, 2.0, 0.5 / 32768], np.float32)
    assert np.frombuffer(pcm.from_float(samples), "<i2").tolist() == [-32768, -32768, 32767, 32767, 0]


def test_silence_has_no_level() -> None:
    assert pcm.level_dbfs(bytes(960)) == -math.inf
    full = np.full(480, -32768, "<i2").tobytes()
    assert pcm.level_dbfs(full) == 0.0
