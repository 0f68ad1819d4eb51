"""Ears that have heard something, and what it was."""

from __future__ import annotations

import asyncio

from tests.parts.engine_parts import loaded
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.ear import Ear
from voiceapp.engine.hearing.utterance import Utterance
from voiceapp.engine.inference.pool import Priority


def ear_with(audio: bytes, audio_format: AudioFormat = AudioFormat.PCM16, frame_ms: int = 20) -> Ear:
    ear = Ear(loaded().detector, audio_format)
    size = frame_ms * audio_format.bytes_per_ms
    for start in range(0, len(audio), size):
        ear.hear(audio[start : start + size])
    return ear


def transcript(ear: Ear) -> str:
    """Return the words of all that an ear has heard."""
    utterance = Utterance(loaded(), ear, 0)
    return asyncio.run(utterance.words(ear.end_ms, Priority.FINAL))
