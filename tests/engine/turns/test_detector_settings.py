"""Turn detection by silence, over the wire: every setting does what it is named after."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.parts.dtmf_tones import RATE, press
from tests.parts.engine_parts import heard_as, in_format, quiet, recording
from tests.parts.engine_server import EngineServer, RealtimeClient, connect
from voiceapp.audio.formats import AudioFormat

WINDOW_MS = 32
"""What speech is detected by, and so how exact a time is."""
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"


async def one_turn(
    client: RealtimeClient, audio_format: AudioFormat = AudioFormat.PCM16, **detection: Any
) -> tuple[int, int]:
    """Say something after a second of silence; return where the turn began and ended, in milliseconds."""
    turns = {"type": "server_vad", "create_response": False, **detection}
    await client.update(
        audio={"input": {"format": audio_format.to_ga(), "turn_detection": turns, "transcription": {}}}
    )
    audio = quiet(1000, audio_format) + recording("weather", audio_format) + quiet(2500, audio_format)
    await client.speak(audio, audio_format)
    started = await client.until("input_audio_buffer.speech_started")
    stopped = await client.until("input_audio_buffer.speech_stopped")
    assert started["item_id"] == stopped["item_id"]
    return started["audio_start_ms"], stopped["audio_end_ms"]


async def turn_of(engine: EngineServer, **detection: Any) -> tuple[int, int]:
    async with connect(engine) as client:
        return await one_turn(client, **detection)


async def test_a_turn_ends_after_the_silence_and_begins_before_the_speech_that_were_asked_for(
    engine: EngineServer,
) -> None:
    usual = await turn_of(engine, silence_duration_ms=300, prefix_padding_ms=100)
    longer = await turn_of(engine, silence_duration_ms=1300, prefix_padding_ms=600)
    assert longer[1] - usual[1] == pytest.approx(1000, abs=WINDOW_MS)
    assert usual[0] - longer[0] == pytest.approx(500, abs=WINDOW_MS)
    length_ms = len(recording("weather")) / 48
    # On the buffer's clock, whose first second is silent.
    assert 900 <= usual[0] <= 2000
    assert usual[0] + 500 <= usual[1] <= 1000 + length_ms + 400


@pytest.mark.parametrize(("threshold", "turns"), [(0.5, 1), (1.0, 0)])
async def test_the_threshold_decides_what_is_speech(
    engine: EngineServer, threshold: float, turns: int
) -> None:
    # A key at the end tells when everything was heard.
    end = in_format(press("#", 100), RATE, AudioFormat.PCM16) + quiet(100)
    async with connect(engine) as client:
        detection = {"type": "server_vad", "create_response": False, "threshold": threshold}
        await client.update(audio={"input": {"turn_detection": detection}})
        await client.speak(recording("weather") + quiet(1000) + end)
        await client.until("input_audio_buffer.dtmf_event_received")
        assert len(client.of("input_audio_buffer.speech_stopped")) == turns


async def test_the_format_may_change_in_mid_session_and_the_clock_goes_on(engine: EngineServer) -> None:
    async with connect(engine) as client:
        turns = []
        for audio_format in (AudioFormat.PCM16, AudioFormat.PCMU, AudioFormat.PCMA):
            turns.append(await one_turn(client, audio_format))
            heard = await client.until(TRANSCRIBED)
            assert heard_as(heard["transcript"]) == "weather"
    length_ms = 3500 + len(recording("weather")) / 48
    for (start_ms, end_ms), (later_start_ms, later_end_ms) in pairwise(turns):
        # The same sound so much later; the laws cost a window or two.
        assert later_start_ms - start_ms == pytest.approx(length_ms, abs=5 * WINDOW_MS)
        assert later_end_ms - end_ms == pytest.approx(length_ms, abs=8 * WINDOW_MS)
