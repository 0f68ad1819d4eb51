"""Sound files that ``manage.py talk`` says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from voiceapp.audio import g711, pcm
from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError


@dataclass(frozen=True)
class Sound:
    """What is to be said: samples of one channel from -1 to 1, so many a second."""

    samples: NDArray[np.float32]
    rate_hz: int

    def encoded(self, audio_format: AudioFormat) -> bytes:
        """Return it in a session's format."""
        data = pcm.from_float(soxr.resample(self.samples, self.rate_hz, audio_format.rate_hz, quality="HQ"))
        return data if audio_format is AudioFormat.PCM16 else g711.encode(data, audio_format)


def read_sound(path: Path) -> Sound:
    """Return a sound file, anything that soundfile reads, its channels mixed.

    Raises ``AudioFormatError`` where the file cannot be read.
    """
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError) as error:
        raise AudioFormatError(f"{path} cannot be read as sound: {error}", code="unreadable_file") from error
    return Sound(np.ascontiguousarray(samples.mean(axis=1)), rate)
