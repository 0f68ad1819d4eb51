"""The gate that keeps the assistant from hearing itself."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parts.engine_parts import in_format
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.echo import EchoGate


def tone(ms: int, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """A sine of -20 dBFS RMS."""
    time = np.arange(24 * ms) / 24_000
    return in_format((np.sin(2 * np.pi * 440 * time) * 4634).astype(np.int16), 24_000, audio_format)


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_only_what_is_far_below_the_assistant_is_echo(audio_format: AudioFormat) -> None:
    gate = EchoGate()
    gate.spoken(tone(1000, audio_format), audio_format, now_s=100.0)
    assert gate.is_echo(-40, 100.5)
    assert not gate.is_echo(-26, 100.5)


def test_before_and_long_after_the_assistant_is_heard_nothing_is_echo() -> None:
    gate = EchoGate()
    assert not gate.is_echo(-90, 99.0)
    gate.spoken(tone(1000), AudioFormat.PCM16, now_s=100.0)
    gate.spoken(tone(1000), AudioFormat.PCM16, now_s=100.0)
    assert gate.until_s == pytest.approx(102.0)
    assert gate.is_echo(-40, 102.5)
    assert not gate.is_echo(-40, 103.5)


def test_after_an_interruption_nothing_is_echo() -> None:
    gate = EchoGate()
    gate.spoken(tone(1000), AudioFormat.PCM16, now_s=100.0)
    gate.interrupted()
    assert not gate.is_echo(-40, 100.5)
    gate.spoken(tone(1000), AudioFormat.PCM16, now_s=101.0)
    assert gate.until_s == pytest.approx(102.0)


def test_silence_of_the_assistant_hides_nobody() -> None:
    gate = EchoGate()
    gate.spoken(bytes(48_000), AudioFormat.PCM16, now_s=100.0)
    gate.spoken(b"", AudioFormat.PCMU, now_s=100.0)
    assert not gate.is_echo(-60, 100.2)
