"""Spoken turns with the engine over a real socket, from the microphone to the speaker."""

from __future__ import annotations

import asyncio
import base64
import json

import numpy as np
import pytest
import soxr

from tests.parts.chat_server import ChatServer, chat_provider, chat_server, sse, text
from tests.parts.engine_parts import (
    heard_as,
    kinds,
    loaded,
    quiet,
    recording,
    understood,
    word_errors,
)
from tests.parts.engine_server import TRANSCRIPTION, EngineHere, EngineServer, connect
from tests.parts.waits import PATIENCE_S
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs
from voiceapp.text import providers
from voiceapp.text.chat.provider import ChatProvider


async def test_a_spoken_turn_from_the_microphone_to_the_speaker(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
        await client.speak(recording("joke"), paced=True)
        await client.finish_turn()
        await client.until("response.done")
    order = [kind for kind in kinds(client.events) if not kind.startswith(TRANSCRIPTION)]
    assert order[2:10] == [
        "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed", "conversation.item.added", "conversation.item.done",
        "response.created", "response.output_item.added", "conversation.item.added",
    ]  # fmt: skip
    assert order[-6:] == [
        "response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
        "conversation.item.done", "response.output_item.done", "response.done",
    ]  # fmt: skip
    (completed,) = client.of(f"{TRANSCRIPTION}.completed")
    assert heard_as(completed["transcript"]) == "joke"
    deltas = [event["delta"] for event in client.of(f"{TRANSCRIPTION}.delta")]
    captions = "".join(deltas)
    # A word at their end that a later decoding contradicts is left to the whole transcript.
    assert word_errors(captions, completed["transcript"][: len(captions)]) <= 1
    # The first words are there while the user still speaks.
    all_kinds = kinds(client.events)
    assert all_kinds.index(f"{TRANSCRIPTION}.delta") < all_kinds.index("input_audio_buffer.speech_stopped")
    audio = client.audio()
    assert 3 <= len(audio) / 48_000 <= 12
    assert level_dbfs(audio) > -35
    (said,) = client.of("response.output_audio_transcript.done")
    samples = soxr.resample(np.frombuffer(audio, "<i2").astype(np.float32) / 32768, 24_000, 16_000)
    assert understood(said["transcript"], loaded().recogniser.recognise(samples).text)
    assert said["transcript"] == "".join(
        event["delta"] for event in client.of("response.output_audio_transcript.delta")
    )


async def test_push_to_talk_in_g711_both_ways(engine: EngineServer) -> None:
    for law in (AudioFormat.PCMU, AudioFormat.PCMA):
        async with connect(engine) as client:
            updated = await client.update(
                audio={
                    "input": {"format": law.to_ga(), "turn_detection": None, "transcription": {}},
                    "output": {"format": law.to_ga()},
                }
            )
            assert updated["session"]["audio"]["output"]["format"] == law.to_ga()
            await client.speak(recording("hello", law), law)
            await client.send("input_audio_buffer.commit")
            completed = await client.until(f"{TRANSCRIPTION}.completed")
            assert heard_as(completed["transcript"]) == "hello"
            assert "response.created" not in kinds(client.events)
            await client.send("response.create")
            done = await client.until("response.done")
            said = done["response"]["output"][0]["content"][0]["transcript"]
            assert said.startswith("Yes, I can hear you")
            assert level_dbfs(g711.decode(client.audio(), law)) > -35


async def test_silence_committed_by_hand_says_nothing(engine: EngineServer) -> None:
    noise = np.random.default_rng(3).normal(0, 100, 24 * 3000).astype("<i2").tobytes()
    for audio in (quiet(3000), noise):
        async with connect(engine) as client:
            await client.update(audio={"input": {"turn_detection": None, "transcription": {}}})
            await client.speak(audio)
            await client.send("input_audio_buffer.commit")
            assert (await client.until(f"{TRANSCRIPTION}.completed"))["transcript"] == ""


async def test_a_file_sent_at_once_is_heard_whole(engine: EngineServer) -> None:
    async with connect(engine) as client:
        await client.update(
            audio={
                "input": {
                    "transcription": {},
                    "turn_detection": {"type": "server_vad", "create_response": False},
                }
            }
        )
        audio = recording("timer") + quiet(2000) + recording("train") + quiet(2000)
        await client.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())
        for _ in range(2):
            await client.until(f"{TRANSCRIPTION}.completed")
    # Transcripts come as they are ready; the items have the order.
    said = {event["item_id"]: event["transcript"] for event in client.of(f"{TRANSCRIPTION}.completed")}
    first, second = (event["item_id"] for event in client.of("input_audio_buffer.committed"))
    assert heard_as(said[first]) == "timer"
    assert heard_as(said[second]) == "train"


async def test_barge_in_stops_the_answer_and_truncation_keeps_what_was_heard(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        first = await client.until("response.output_audio.delta")
        await client.speak(recording("hello"), paced=True)
        done = await client.until("response.done")
        assert done["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        item_id = first["item_id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=2000)
        await client.until("conversation.item.truncated")
        await client.send("conversation.item.retrieve", item_id=item_id)
        part = (await client.until("conversation.item.retrieved"))["item"]["content"][0]
        assert "Once upon a time a small" in part["transcript"]
        assert len(part["transcript"]) < 60
        assert len(base64.b64decode(part["audio"])) <= 2000 * 48


async def test_the_assistants_own_echo_is_no_speech_and_a_louder_voice_is(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        while len(client.audio()) < 4 * 48_000:
            await client.until("response.output_audio.delta")
        said = np.frombuffer(client.audio(), "<i2").astype(np.float32)
        # As a room would return it: 120 ms late and 20 dB down, for as long as it is being heard.
        echo = np.concatenate((np.zeros(2880, np.float32), said[:48_000] * 0.1))
        await client.speak(echo.astype("<i2").tobytes(), paced=True)
        assert "input_audio_buffer.speech_started" not in kinds(client.events)
        voice = np.frombuffer(recording("hello"), "<i2").astype(np.float32)[12_000:]
        loudness = np.sqrt(np.mean(said**2)) / np.sqrt(np.mean(voice**2)) * 0.5
        rest = said[48_000 : 48_000 + voice.size] * 0.1
        mixed = voice[: rest.size] * loudness + rest
        await client.speak(mixed.clip(-32768, 32767).astype("<i2").tobytes(), paced=True)
        done = await client.until("response.done")
        assert done["response"]["status_details"]["reason"] == "turn_detected"


async def test_speech_is_sent_ahead_of_the_listener_but_not_all_at_once(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        started = asyncio.get_running_loop().time()
        while len(client.audio()) < 6 * 48_000:
            await client.until("response.output_audio.delta")
        elapsed = asyncio.get_running_loop().time() - started
        # The listener has four seconds in hand.
        assert 1.8 <= round(elapsed, 6) <= 2.2
        await client.send("response.cancel")
        done = await client.until("response.done")
        assert done["response"]["status_details"]["reason"] == "client_cancelled"


async def test_a_tool_is_called_and_its_result_spoken(engine: EngineServer) -> None:
    tool = {
        "type": "function", "name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }  # fmt: skip
    async with connect(engine) as client:
        await client.update(tools=[tool], output_modalities=["text"])
        await client.say("What is the weather in Paris?")
        await client.send("response.create")
        call = await client.until("response.function_call_arguments.done")
        assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Paris"})
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"sky": "blue"}'}
        await client.send("conversation.item.create", item=output)
        await client.until("response.done")
        await client.send("response.create")
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["text"].endswith("sky is blue.")


async def test_a_silent_user_is_spoken_to_again(engine_here: EngineHere) -> None:
    async with connect(engine_here) as client:
        await client.update(
            audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}}
        )
        await client.speak(quiet(500))
        await client.say("Hello!")
        await client.send("response.create", response={"output_modalities": ["text"]})
        await client.until("input_audio_buffer.timeout_triggered")
        await client.until("response.done")
        (said,) = client.of("response.output_audio_transcript.done")
        assert said["transcript"].startswith("I did not hear any words")


def think_by(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine ask a chat endpoint."""
    provider = chat_provider(chat.base_url)

    async def this_provider(*given: object) -> ChatProvider:
        return provider

    monkeypatch.setattr(providers, "provider", this_provider)


async def test_a_chat_endpoint_is_spoken_sentence_by_sentence_while_it_streams(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("The first "), text("sentence is here. And a sec"))
    async with chat_server(script=script, hold=asyncio.Event()) as chat:
        think_by(chat, monkeypatch)
        async with connect(engine) as client:
            await client.say("Go on")
            await client.send("response.create")
            await client.until("response.output_audio.delta")
            # The endpoint still holds its stream open: what was said came before its end.
            assert not chat.left.is_set()
            await client.send("response.cancel")
            done = await client.until("response.done")
            said = done["response"]["output"][0]["content"][0]["transcript"]
            assert said
            assert "The first sentence is here. ".startswith(said)
            await asyncio.wait_for(chat.left.wait(), PATIENCE_S)
        assert chat.requests[0]["messages"][-1] == {"role": "user", "content": "Go on"}


async def test_a_chat_endpoint_that_refuses_fails_the_response_with_its_code(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_server(status="429 Too Many Requests", script=[b"{}"]) as chat:
        think_by(chat, monkeypatch)
        async with connect(engine) as client:
            await client.say("Go on")
            await client.send("response.create")
            done = await client.until("response.done")
            assert done["response"]["status"] == "failed"
            assert done["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded"
