"""Ears that have heard something."""

from __future__ import annotations

from tests.parts.engine_parts import loaded
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.ear import Ear


def ear_with(audio: bytes, audio_format: AudioFormat = AudioFormat.PCM16, frame_ms: int = 20) -> Ear:
    ear = Ear(loaded().detector, audio_format)
    size = frame_ms * audio_format.bytes_per_ms
    for start in range(0, len(audio), size):
        ear.hear(audio[start : start + size])
    return ear
