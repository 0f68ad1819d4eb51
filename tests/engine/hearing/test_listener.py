"""A room returns the assistant's voice: its echo starts no turn; whoever speaks over it is heard at once."""

from __future__ import annotations

import asyncio

import numpy as np
from numpy.typing import NDArray

from tests.parts.engine_parts import kinds, loaded
from tests.parts.engine_server import EngineHere, RealtimeClient, connect

RATE = 24
"""Samples in a millisecond."""
LATE_MS = 120
BARGE_IN_MS = 300


def rms(samples: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def spoken(words: str) -> NDArray[np.float32]:
    """Return speech that begins with its first sound."""
    samples = np.frombuffer(loaded().voice.speak(words).samples, "<i2").astype(np.float32)
    loud = np.flatnonzero(np.abs(samples) > 0.05 * np.abs(samples).max())
    return samples[loud[0] :]


async def until_started(client: RealtimeClient) -> None:
    while (await client.until_any())["type"] != "input_audio_buffer.speech_started":
        pass


async def test_echo_starts_no_turn_and_a_voice_over_it_does_within_300_ms(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        while len(client.audio()) < 5000 * RATE * 2:
            await client.until("response.output_audio.delta")
        said = np.frombuffer(client.audio(), "<i2").astype(np.float32)
        # 20 dB down and 120 ms late, for as long as it is being heard.
        room = np.concatenate((np.zeros(LATE_MS * RATE, np.float32), said * 0.1))
        alone, under = room[: 2000 * RATE], room[2000 * RATE :]
        await client.speak(alone.astype("<i2").tobytes(), paced=True)
        await client.send("input_audio_buffer.commit")
        # Everything that the echo could have caused comes before the answer to this.
        await client.until("input_audio_buffer.committed", "error")
        assert "input_audio_buffer.speech_started" not in kinds(client.events)
        voice = spoken("Stop, please stop.")[: under.size]
        voice *= rms(said) / rms(voice) * 0.5
        mixed = (voice + under[: voice.size]).clip(-32768, 32767).astype("<i2").tobytes()
        # Not by the client's ``until``, which would let time pass.
        started = asyncio.create_task(until_started(client))
        sent_ms = 0
        while not started.done():
            frame = mixed[sent_ms * RATE * 2 : (sent_ms + 20) * RATE * 2]
            assert frame, "nobody noticed"
            await client.speak(frame, paced=True)
            sent_ms += 20
        # A frame may have been under way.
        assert sent_ms <= BARGE_IN_MS + 20
        done = await client.until("response.done")
        assert done["response"]["status_details"]["reason"] == "turn_detected"
