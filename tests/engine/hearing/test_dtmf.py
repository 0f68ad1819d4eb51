"""Telephone keys: all of them in every format, and none where people speak."""

from __future__ import annotations

import time

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray

from tests.parts.dtmf_tones import KEYS, RATE, press
from tests.parts.engine_parts import RECORDINGS, in_format, kinds, loaded, other_voices, quiet, recording
from tests.parts.engine_server import GA, PREVIEW, EngineServer, connect
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import to_float
from voiceapp.engine.hearing.dtmf import RATE_HZ, KeyDetector
from voiceapp.engine.hearing.ear import Ear


def dial(keys: str, ms: int = 80, pause_ms: int = 60) -> NDArray[np.int16]:
    gap = np.zeros(RATE * pause_ms // 1000, np.int16)
    return np.concatenate([part for key in keys for part in (press(key, ms), gap)])


def found(
    samples: NDArray[np.int16], audio_format: AudioFormat = AudioFormat.PCM16, frame_ms: int = 20
) -> str:
    ear = Ear(loaded().detector, audio_format)
    audio = in_format(samples, RATE, audio_format)
    size = frame_ms * audio_format.bytes_per_ms
    return "".join(
        key
        for start in range(0, len(audio), size)
        for _ in [ear.hear(audio[start : start + size])]
        for key in ear.keys_pressed()
    )


@pytest.mark.parametrize("audio_format", list(AudioFormat))
@pytest.mark.parametrize("frame_ms", [7, 20, 1000])
def test_every_key_is_found_in_every_format(audio_format: AudioFormat, frame_ms: int) -> None:
    assert found(dial(KEYS), audio_format, frame_ms) == KEYS


def test_a_key_counts_once_however_long_and_twice_when_pressed_twice() -> None:
    assert found(press("5", 3000)) == "5"
    assert found(dial("5500")) == "5500"
    assert found(np.concatenate([press("1", 200), press("2", 200)])) == "12"


@pytest.mark.parametrize(("ms", "heard"), [(20, ""), (45, "7"), (60, "7")])
def test_a_key_must_last_for_forty_milliseconds(ms: int, heard: str) -> None:
    silence = np.zeros(RATE // 2, np.int16)
    assert found(np.concatenate([silence, press("7", ms), silence])) == heard


@pytest.mark.parametrize(
    ("change", "heard"),
    [
        ({"shift": 0.005}, "0"), ({"shift": -0.005}, "0"), ({"twist_db": 4}, "0"), ({"twist_db": -6}, "0"),
        ({"db": -36}, "0"), ({"shift": 0.04}, ""), ({"twist_db": -14}, ""), ({"db": -60}, ""),
    ],
)  # fmt: skip
def test_keys_may_be_off_a_little(change: dict[str, float], heard: str) -> None:
    assert found(press("0", 100, **change)) == heard


def test_noise_hides_no_key_and_is_none() -> None:
    noise = np.random.default_rng(5).normal(0, 1, RATE * 5)
    assert found((noise * 3000).astype(np.int16)) == ""
    tones = dial(KEYS)
    assert found((tones + noise[: tones.size] * 600).astype(np.int16)) == KEYS


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_no_voice_presses_keys(audio_format: AudioFormat) -> None:
    said = [(name, recording(name, audio_format)) for name in RECORDINGS]
    for name, audio in [*said, *other_voices(audio_format).items()]:
        # As the ear does it, which also looks for speech and takes ten times as long.
        samples = audio if audio_format is AudioFormat.PCM16 else g711.decode(audio, audio_format)
        heard = soxr.resample(to_float(samples), audio_format.rate_hz, RATE_HZ, quality="LQ")
        assert KeyDetector().feed(heard) == [], name


def test_the_engines_own_voice_presses_none() -> None:
    said = loaded().voice.speak("One two three four five six seven eight nine zero, star and hash.").samples
    ear = Ear(loaded().detector, AudioFormat.PCM16)
    ear.hear(said)
    assert ear.keys_pressed() == []


def test_samples_may_come_one_by_one() -> None:
    detector = KeyDetector()
    samples = soxr.resample(press("9", 60).astype(np.float32) / 32768, RATE, RATE_HZ)
    assert [key for one in samples for key in detector.feed(np.array([one], np.float32))] == ["9"]


# -- over the wire --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["ga", "preview", "contract"])
async def test_each_dialect_tells_of_keys_in_its_own_way(engine: EngineServer, dialect: str) -> None:
    law = AudioFormat.PCMU
    async with connect(engine, GA if dialect == "ga" else f"{PREVIEW}&dialect={dialect}") as client:
        if dialect == "ga":
            await client.update(audio={"input": {"format": law.to_ga()}})
        else:
            await client.send("session.update", session={"input_audio_format": law.beta_name})
            await client.until("session.updated")
        await client.speak(in_format(dial("42#"), RATE, law), law)
        # Speech that was sent after the keys is heard after them.
        await client.speak(recording("hello", law) + quiet(500, law), law)
        await client.until("input_audio_buffer.speech_started")
    events = client.of("input_audio_buffer.dtmf_event_received")
    match dialect:
        case "ga":
            assert [list(event) for event in events] == [["type", "event", "received_at"]] * 3
            assert [event["event"] for event in events] == ["4", "2", "#"]
            assert abs(events[0]["received_at"] - time.time()) < 60
        case "contract":
            assert [event["digit"] for event in events] == ["4", "2", "#"]
            assert len({event["event_id"] for event in events}) == 3
        case _:
            assert events == []
    assert kinds(client.events)[-1] == "input_audio_buffer.speech_started"
