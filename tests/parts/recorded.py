"""Tones that are recorded, and what an archive holds of them."""

from __future__ import annotations

import numpy as np
import soundfile

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording.archive import archiver
from voiceapp.records.recording.recorder import Recorder

PCM16, PCMU, PCMA = AudioFormat.PCM16, AudioFormat.PCMU, AudioFormat.PCMA
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def tone(ms: float, audio_format: AudioFormat = PCM16, hz: float = 1000, start_ms: float = 0) -> bytes:
    """Return a tone whose phase follows from ``start_ms``, so that pieces laid in order have no seam."""
    rate = audio_format.rate_hz
    time_s = np.arange(round(start_ms * rate / 1000), round((start_ms + ms) * rate / 1000)) / rate
    samples = (8000 * np.sin(2 * np.pi * hz * time_s)).astype("<i2").tobytes()
    return samples if audio_format is PCM16 else g711.encode(samples, audio_format)


def level(track: Floats, from_ms: float, to_ms: float) -> float:
    """Return the RMS of a part of a 24 kHz track."""
    part = track[round(from_ms * 24) : round(to_ms * 24)]
    return float(np.sqrt(np.mean(part**2)))


def frequency(track: Floats, from_ms: float, to_ms: float) -> float:
    part = track[round(from_ms * 24) : round(to_ms * 24)]
    spectrum = np.abs(np.fft.rfft(part * np.hanning(part.size)))
    return float(np.argmax(spectrum) * 24_000 / part.size)


async def archived(recorder: Recorder) -> tuple[Floats, Floats]:
    """Close; return what the archive holds: user, assistant."""
    path = await recorder.aclose()
    archiver().wait()
    assert path is not None
    samples, rate = soundfile.read(path)
    assert rate == 24_000
    assert samples.shape[1] == 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return samples[:, 0], samples[:, 1]
