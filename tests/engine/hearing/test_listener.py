"""A room returns the assistant's voice: its echo starts no turn; whoever speaks over it is heard at once."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.parts.engine_parts import hear_only, kinds, loaded, quiet, recording
from tests.parts.engine_server import (
    GA,
    PREVIEW,
    TRANSCRIPTION,
    EngineHere,
    EngineServer,
    RealtimeClient,
    connect,
)

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


# -- how a transcript ends ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heard", "transcript"),
    [
        ("Set a timer for ten seconds,", "Set a timer for ten seconds."),
        ("Set a timer, for ten seconds:", "Set a timer, for ten seconds."),
        ("Set a timer for...", "Set a timer for."),
        ("Set a timer for,.", "Set a timer for."),
        ('Set a timer "for ten,"', 'Set a timer "for ten."'),
        ("Set a timer -", "Set a timer."),
        ("Set a timer", "Set a timer."),
        ("Can you set a timer?", "Can you set a timer?"),
        ("…", ""),
    ],
)
@pytest.mark.parametrize(
    "path", [GA, PREVIEW, f"{GA}&intent=transcription", f"{PREVIEW}&intent=transcription"]
)
async def test_a_transcript_ends_in_a_full_stop_or_its_own_mark_and_so_do_its_pieces(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, path: str, heard: str, transcript: str
) -> None:
    hear_only(monkeypatch, (0, heard))
    async with connect(engine, path) as client:
        if "intent" not in path and path == GA:
            await client.update(audio={"input": {"transcription": {}}})
        elif "intent" not in path:
            await client.send("session.update", session={"input_audio_transcription": {}})
        await client.speak(recording("hello") + quiet(1000))
        completed = await client.until(f"{TRANSCRIPTION}.completed")
    assert completed["transcript"] == transcript
    assert "".join(event["delta"] for event in client.of(f"{TRANSCRIPTION}.delta")) == transcript
    segments = [event["text"] for event in client.of(f"{TRANSCRIPTION}.segment")]
    assert not segments or segments == [transcript]


async def test_what_came_by_the_talk_button_or_within_an_item_ends_alike(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear_only(monkeypatch, (0, "Set a timer for ten seconds,"))
    async with connect(engine) as client:
        await client.update(audio={"input": {"transcription": {}, "turn_detection": None}})
        await client.speak(recording("hello"))
        await client.send("input_audio_buffer.commit")
        part = {"type": "input_audio", "audio": base64.b64encode(recording("hello")).decode()}
        item = {"type": "message", "role": "user", "content": [part]}
        await client.send("conversation.item.create", item=item)
        for _ in range(2):
            completed = await client.until(f"{TRANSCRIPTION}.completed")
            assert completed["transcript"] == "Set a timer for ten seconds."
