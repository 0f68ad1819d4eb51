"""Sound files that are said to a server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.clients.sound_file import read_sound
from voiceapp.errors import AudioFormatError


def tone(rate: int, hz: int = 500) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(rate) / rate)).astype(np.float32)


@pytest.mark.parametrize("audio_format", AudioFormat)
@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000])
def test_a_file_of_any_rate_is_said_in_the_sessions_format(
    audio_format: AudioFormat, rate: int, tmp_path: Path
) -> None:
    soundfile.write(tmp_path / "a.wav", tone(rate), rate)
    data = read_sound(tmp_path / "a.wav").encoded(audio_format)
    assert abs(audio_format.duration_ms(len(data)) - 1000) <= 1
    samples = data if audio_format is AudioFormat.PCM16 else g711.decode(data, audio_format)
    heard = np.frombuffer(samples, "<i2")
    spectrum = np.abs(np.fft.rfft(heard))
    assert abs(spectrum.argmax() * audio_format.rate_hz / heard.size - 500) <= 2


def test_channels_are_mixed(tmp_path: Path) -> None:
    both = np.stack([np.full(100, 0.5, np.float32), np.full(100, -0.25, np.float32)], axis=1)
    soundfile.write(tmp_path / "a.flac", both, 8_000)
    sound = read_sound(tmp_path / "a.flac")
    assert (sound.rate_hz, sound.samples.shape) == (8_000, (100,))
    assert np.allclose(sound.samples, 0.125, atol=1e-4)


@pytest.mark.parametrize("content", [None, b"", b"no sound at all"])
def test_a_file_that_is_no_sound_is_an_error_that_names_it(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AudioFormatError) as refused:
        read_sound(path)
    assert refused.value.code == "unreadable_file"
    assert str(path) in refused.value.message
