"""The detector of speech: high for a voice, low for silence, and the same however long it has run."""

from __future__ import annotations

import numpy as np

from tests.parts.engine_parts import loaded, recording
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import to_float
from voiceapp.audio.resample import Resampler
from voiceapp.engine.inference.vad import WINDOW_SAMPLES, Detector


def probabilities(samples: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[float]:
    detector = Detector(loaded().detector)
    whole = samples[: samples.size // WINDOW_SAMPLES * WINDOW_SAMPLES]
    return [detector.feed(window) for window in whole.reshape(-1, WINDOW_SAMPLES)]


def spoken() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    rate_hz = AudioFormat.PCM16.rate_hz
    return to_float(Resampler(rate_hz, 16_000).feed(recording("weather"), last=True))


def test_a_voice_is_told_from_silence() -> None:
    found = probabilities(spoken())
    assert max(found) > 0.9
    assert max(probabilities(np.zeros(16_000, np.float32))) < 0.2
    assert all(0 <= one <= 1 for one in found)


def test_each_detector_hears_for_itself() -> None:
    first, second = probabilities(spoken()), probabilities(spoken())
    assert np.allclose(first, second, atol=1e-3)
