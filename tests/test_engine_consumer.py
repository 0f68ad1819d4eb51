"""The engine on a real socket with the real models: whole turns, every dialect, every refusal."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import gc
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest
import soxr
import websockets
from django.conf import settings

from tests.chat_server import chat_provider, chat_server, sse, text
from tests.engine_parts import kinds, loaded, quiet, recording, word_errors, words_of
from tests.engine_server import GA, PREVIEW, EngineServer, connect, engine_server
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs
from voiceapp.engine import models, thinking
from voiceapp.engine.connection import Connection
from voiceapp.engine.faults import FaultScript
from voiceapp.engine.weights import ModelError
from voiceapp.protocol.dialects import Dialect
from voiceapp.text.chat import ChatProvider

TRANSCRIPTION = "conversation.item.input_audio_transcription"


@pytest.fixture(scope="module")
def server() -> Iterator[EngineServer]:
    loaded()
    with engine_server() as running:
        yield running


# -- the upgrade ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (GA, {}, 401),
        (GA, {"api-key": "wrong"}, 401),
        (GA, {"Authorization": "Bearer wrong"}, 401),
        (GA, {"Authorization": "Basic KEY"}, 401),
        (f"{GA}&api-key=wrong", {}, 401),
        ("/openai/v1/realtime", {"api-key": "KEY"}, 400),
        ("/openai/realtime?deployment=x", {"api-key": "KEY"}, 404),
        ("/openai/realtime?api-version=2025-04-01-preview", {"api-key": "KEY"}, 400),
        ("/elsewhere?model=x", {"api-key": "KEY"}, 404),
        (f"{GA}&intent=poetry", {"api-key": "KEY"}, 400),
    ],
)
async def test_a_refused_upgrade_has_a_status_and_a_reason(
    server: EngineServer, path: str, headers: dict[str, str], status: int
) -> None:
    headers = {name: value.replace("KEY", settings.VOICE.engine_api_key) for name, value in headers.items()}
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with websockets.connect(server.address + path, additional_headers=headers):
            pass
    response = caught.value.response
    assert response.status_code == status
    error = json.loads(response.body or b"")["error"]
    assert error["code"]
    assert settings.VOICE.engine_api_key not in error["message"]


@pytest.mark.parametrize("how", ["header", "bearer", "query", "subprotocol"])
async def test_the_key_opens_the_engine_however_it_is_given(server: EngineServer, how: str) -> None:
    key = settings.VOICE.engine_api_key
    options: dict[str, Any] = {"additional_headers": {"x-ms-client-request-id": "req-1"}}
    path = GA
    if how == "header":
        options["additional_headers"]["api-key"] = key
    elif how == "bearer":
        options["additional_headers"]["Authorization"] = f"Bearer {key}"
    elif how == "query":
        path += f"&api-key={key}"
    else:
        options["subprotocols"] = ["realtime", f"openai-insecure-api-key.{key}"]
    async with connect(server, path, **options) as client:
        assert client.events[0]["session"]["model"] == "some-model"
        assert client.connection.subprotocol == ("realtime" if how == "subprotocol" else None)


# -- turns ----------------------------------------------------------------------------------------------


async def test_a_spoken_turn_from_the_microphone_to_the_speaker(server: EngineServer) -> None:
    async with connect(server) as client:
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
    assert word_errors(words_of("joke"), completed["transcript"]) <= 1
    deltas = [event["delta"] for event in client.of(f"{TRANSCRIPTION}.delta")]
    assert completed["transcript"].startswith("".join(deltas))
    # The first words are there while the user still speaks.
    all_kinds = kinds(client.events)
    assert all_kinds.index(f"{TRANSCRIPTION}.delta") < all_kinds.index("input_audio_buffer.speech_stopped")
    audio = client.audio()
    assert 3 <= len(audio) / 48_000 <= 12
    assert level_dbfs(audio) > -35
    (said,) = client.of("response.output_audio_transcript.done")
    samples = soxr.resample(np.frombuffer(audio, "<i2").astype(np.float32) / 32768, 24_000, 16_000)
    assert word_errors(said["transcript"], loaded().recogniser.recognise(samples).text) <= 2
    assert said["transcript"] == "".join(
        event["delta"] for event in client.of("response.output_audio_transcript.delta")
    )


async def test_push_to_talk_in_g711_both_ways(server: EngineServer) -> None:
    for law in (AudioFormat.PCMU, AudioFormat.PCMA):
        async with connect(server) as client:
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
            # The first word is short and comes without a beginning: G.711 makes it hard.
            assert word_errors(words_of("hello"), completed["transcript"]) <= 2
            assert "response.created" not in kinds(client.events)
            await client.send("response.create")
            done = await client.until("response.done")
            said = done["response"]["output"][0]["content"][0]["transcript"]
            assert said.startswith("Yes, I can hear you")
            assert level_dbfs(g711.decode(client.audio(), law)) > -35


async def test_silence_committed_by_hand_says_nothing(server: EngineServer) -> None:
    noise = np.random.default_rng(3).normal(0, 100, 24 * 3000).astype("<i2").tobytes()
    for audio in (quiet(3000), noise):
        async with connect(server) as client:
            await client.update(audio={"input": {"turn_detection": None, "transcription": {}}})
            await client.speak(audio)
            await client.send("input_audio_buffer.commit")
            assert (await client.until(f"{TRANSCRIPTION}.completed"))["transcript"] == ""


async def test_a_file_sent_at_once_is_heard_whole(server: EngineServer) -> None:
    async with connect(server) as client:
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
    assert word_errors(words_of("timer"), said[first]) <= 1
    assert word_errors(words_of("train"), said[second]) <= 1


async def test_barge_in_stops_the_answer_and_truncation_keeps_what_was_heard(server: EngineServer) -> None:
    async with connect(server) as client:
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


async def test_the_assistants_own_echo_is_no_speech_and_a_louder_voice_is(server: EngineServer) -> None:
    async with connect(server) as client:
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


async def test_speech_is_sent_ahead_of_the_listener_but_not_all_at_once(server: EngineServer) -> None:
    async with connect(server) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        started = asyncio.get_running_loop().time()
        while len(client.audio()) < 6 * 48_000:
            await client.until("response.output_audio.delta")
        elapsed = asyncio.get_running_loop().time() - started
        assert 1 <= elapsed <= 5
        await client.send("response.cancel")
        done = await client.until("response.done")
        assert done["response"]["status_details"]["reason"] == "client_cancelled"


async def test_a_tool_is_called_and_its_result_spoken(server: EngineServer) -> None:
    tool = {
        "type": "function", "name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }  # fmt: skip
    async with connect(server) as client:
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


async def test_a_silent_user_is_spoken_to_again(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The protocol's shortest time is five seconds; the clock of the test need not wait for it.
    real = Connection._await_idle
    monkeypatch.setattr(Connection, "_await_idle", lambda self, idle_ms: real(self, idle_ms // 50))
    async with connect(server) as client:
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


async def test_a_chat_endpoint_is_spoken_sentence_by_sentence_while_it_streams(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("The first "), text("sentence is here. And a sec"))
    async with chat_server(script=script, hold=asyncio.Event()) as chat:
        provider = chat_provider(chat.base_url)

        async def this_provider(*given: object) -> ChatProvider:
            return provider

        monkeypatch.setattr(thinking, "provider", this_provider)
        async with connect(server) as client:
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
            await asyncio.wait_for(chat.left.wait(), 10)
        assert chat.requests[0]["messages"][-1] == {"role": "user", "content": "Go on"}


async def test_a_chat_endpoint_that_refuses_fails_the_response_with_its_code(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_server(status="429 Too Many Requests", script=[b"{}"]) as chat:
        provider = chat_provider(chat.base_url)

        async def this_provider(*given: object) -> ChatProvider:
            return provider

        monkeypatch.setattr(thinking, "provider", this_provider)
        async with connect(server) as client:
            await client.say("Go on")
            await client.send("response.create")
            done = await client.until("response.done")
            assert done["response"]["status"] == "failed"
            assert done["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded"


# -- dialects -------------------------------------------------------------------------------------------


async def test_the_preview_dialect_is_pure(server: EngineServer) -> None:
    async with connect(server, PREVIEW) as client:
        session = client.events[0]["session"]
        assert session["modalities"] == ["audio", "text"]
        assert session["input_audio_format"] == "pcm16"
        assert session["turn_detection"]["type"] == "server_vad"
        assert "type" not in session
        await client.send(
            "session.update",
            session={
                "input_audio_format": "g711_ulaw",
                "turn_detection": {"type": "none"},
                "temperature": 0.7,
            },
        )
        updated = await client.until("session.updated")
        assert updated["session"]["input_audio_format"] == "g711_ulaw"
        assert updated["session"]["turn_detection"] is None
        await client.send("session.update", session={"output_audio_format": "opus"})
        error = (await client.until("error"))["error"]
        assert error["param"] == "session.output_audio_format"
        await client.say("Hello!")
        created = await client.until("conversation.item.created")
        assert created["item"]["object"] == "realtime.item"
        await client.send("response.create", response={"modalities": ["audio", "text"]})
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["type"] == "audio"
        seen = set(kinds(client.events))
        assert {"response.audio.delta", "response.audio_transcript.delta", "response.audio.done"} <= seen
        assert not [kind for kind in seen if "output_audio" in kind or kind == "conversation.item.done"]
        assert level_dbfs(client.audio("response.audio.delta")) > -35


async def test_the_contract_dialect_has_ga_names_and_preview_payloads(server: EngineServer) -> None:
    async with connect(server, f"{PREVIEW}&dialect=contract") as client:
        assert client.events[0]["session"]["modalities"] == ["audio", "text"]
        await client.say("Hello!")
        await client.send("response.create", response={"modalities": ["text"]})
        done = await client.until("response.done")
        assert done["response"]["modalities"] == ["text"]
        seen = set(kinds(client.events))
        assert {"response.output_text.delta", "conversation.item.added", "conversation.item.done"} <= seen


async def test_the_openai_sdk_holds_a_text_and_an_audio_turn(server: EngineServer) -> None:
    client = openai.AsyncOpenAI(
        api_key=settings.VOICE.engine_api_key, websocket_base_url=f"{server.address}/openai/v1"
    )
    async with client.realtime.connect(model="some-model") as connection:
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Add 2 and 3"}],
            }
        )
        await connection.response.create()
        said = ""
        async for event in connection:
            if event.type == "response.output_text.delta":
                said += event.delta
            elif event.type == "response.done":
                break
        assert said == "That is 5."
        await connection.response.create(response={"output_modalities": ["audio"]})
        size = 0
        async for event in connection:
            if event.type == "response.output_audio.delta":
                size += len(base64.b64decode(event.delta))
            elif event.type == "response.done":
                break
        assert size > 24_000
    await client.close()


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        (b"\x00\x01", "invalid_event"),
        ('{"type": "no.such.event", "event_id": "e"}', "invalid_value"),
        ("{}", "missing_required_parameter"),
        ('{"type": "session.update", "session": 3, "event_id": "e"}', "invalid_type"),
        ('{"type": "input_audio_buffer.append", "audio": "!!!!", "event_id": "e"}', "invalid_value"),
        ('{"type": "input_audio_buffer.append", "audio": "AAAA", "event_id": "e"}', "invalid_value"),
        ('{"type": "input_audio_buffer.append", "event_id": "e"}', "missing_required_parameter"),
        ('{"type": "input_audio_buffer.commit", "event_id": "e"}', "input_audio_buffer_commit_empty"),
        ('{"type": "response.cancel", "event_id": "e"}', "response_cancel_not_active"),
        (
            '{"type": "conversation.item.delete", "item_id": "x", "event_id": "e"}',
            "item_delete_invalid_item_id",
        ),
        (f'{{"type": "response.cancel", "event_id": "{"x" * 513}"}}', "string_above_max_length"),
        (
            json.dumps({"type": "input_audio_buffer.append", "audio": "A" * (21 * 1024 * 1024)}),
            "string_above_max_length",
        ),
    ],
)
@pytest.mark.parametrize("path", [GA, PREVIEW])
async def test_bad_input_is_told_and_the_session_goes_on(
    server: EngineServer, path: str, message: str | bytes, code: str
) -> None:
    async with connect(server, path) as client:
        await client.connection.send(message)
        error = (await client.until("error"))["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", code)
        if '"event_id": "e"' in str(message):
            assert error["event_id"] == "e"
        await client.say("Still there?")
        await client.until("conversation.item.added", "conversation.item.created")


async def test_an_append_may_be_as_long_as_the_protocol_lets_it_be(server: EngineServer) -> None:
    longest = 15 * 1024 * 1024
    async with connect(server) as client:
        await client.update(
            audio={"input": {"format": {"type": "audio/pcmu"}, "turn_detection": None, "transcription": None}}
        )
        for size in (longest + 1, longest):
            audio = base64.b64encode(bytes([0xFF]) * size).decode()
            await client.send("input_audio_buffer.append", audio=audio, event_id="e" * 512)
        error = (await client.until("error"))["error"]
        assert (error["code"], error["param"]) == ("string_above_max_length", "audio")
        assert error["event_id"] == "e" * 512
        await client.send("input_audio_buffer.clear")
        await client.until("input_audio_buffer.cleared")
        assert len(client.of("error")) == 1


# -- when something is missing --------------------------------------------------------------------------


async def test_without_models_text_goes_on_and_speech_fails_with_a_code(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_models() -> models.Models:
        raise ModelError("The voice is missing.")

    monkeypatch.setattr(models, "ready", no_models)
    async with connect(server) as client:
        await client.update(audio={"input": {"turn_detection": None, "transcription": {}}})
        await client.speak(quiet(500))
        await client.send("input_audio_buffer.commit")
        failed = await client.until(f"{TRANSCRIPTION}.failed")
        assert failed["error"]["code"] == "model_unavailable"
        await client.say("Add 2 and 3")
        await client.send("response.create")
        done = await client.until("response.done")
        assert done["response"]["status_details"]["error"]["code"] == "model_unavailable"
        await client.send("response.create", response={"output_modalities": ["text"]})
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["text"] == "That is 5."


class _Broken:
    def recognise(self, samples: object, draft: object = ()) -> None:
        raise RuntimeError("the recogniser broke")

    def speak(self, sentence: str, speed: float = 1.0) -> None:
        raise RuntimeError("the voice broke")


async def test_a_model_that_breaks_fails_its_turn_and_not_the_session(
    server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: Any = _Broken()
    half = dataclasses.replace(loaded(), recogniser=broken, voice=broken)

    async def half_broken() -> models.Models:
        return half

    monkeypatch.setattr(models, "ready", half_broken)
    async with connect(server) as client:
        await client.update(audio={"input": {"transcription": {}}})
        await client.speak(recording("hello") + quiet(1500))
        failed = await client.until(f"{TRANSCRIPTION}.failed")
        assert failed["error"]["code"] == "transcription_failed"
        done = await client.until("response.done")
        assert done["response"]["status"] == "failed"
        assert done["response"]["status_details"]["error"]["code"] == "server_error"
        await client.say("Add 2 and 3")
        await client.send("response.create", response={"output_modalities": ["text"]})
        done = await client.until("response.done")
        assert done["response"]["output"][0]["content"][0]["text"] == "That is 5."


async def test_several_people_talk_at_once(server: EngineServer) -> None:
    async def talk(name: str) -> str:
        async with connect(server) as client:
            await client.update(audio={"input": {"transcription": {}}})
            await client.speak(recording(name))
            await client.finish_turn()
            completed = await client.until(f"{TRANSCRIPTION}.completed")
            await client.until("response.output_audio.delta")
            transcript: str = completed["transcript"]
            return transcript

    names = ("joke", "hello", "thanks", "capital")
    said = await asyncio.gather(*(talk(name) for name in names))
    for name, transcript in zip(names, said, strict=True):
        assert word_errors(words_of(name), transcript) <= 1


async def test_a_client_that_vanishes_in_mid_answer_leaves_nothing_behind(
    server: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = _engine_tasks()
    async with connect(server) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        client.connection.transport.abort()
    for _ in range(500):
        if _engine_tasks() <= tasks:
            break
        await asyncio.sleep(0.01)
    assert _engine_tasks() <= tasks
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


def _engine_tasks() -> int:
    """Count the connections that are alive anywhere in this process."""
    gc.collect()
    return sum(type(thing) is Connection for thing in gc.get_objects())


async def test_a_client_that_does_not_read_is_not_given_everything(server: EngineServer) -> None:
    async with connect(server, max_queue=1) as client:
        await client.update(output_modalities=["text"])
        transport = client.connection.transport
        transport.pause_reading()
        long = "word " * 20_000

        async def talk() -> None:
            # The server ends the session at some point and then takes no more of this.
            with contextlib.suppress(websockets.ConnectionClosed):
                for _ in range(500):
                    await client.say(f"Repeat after me: {long}")

        talking = asyncio.create_task(talk())
        # Less than the time after which the server would miss an answer to its pings.
        await asyncio.wait([talking], timeout=15)
        transport.resume_reading()
        async with asyncio.timeout(60):
            with pytest.raises(websockets.ConnectionClosed) as caught:
                while True:
                    await client.until_any()
            await talking
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4014


async def test_a_client_that_goes_while_it_is_written_to_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loaded()
    tried: list[str] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        tried.append(message["type"])
        raise ConnectionResetError

    connection = Connection(
        receive,
        send,
        dialect=Dialect.GA,
        provider=await thinking.provider(settings.VOICE),
        model="some-model",
        kind="realtime",
        preset=None,
        faults=FaultScript(),
        may_close_1001=True,
    )
    async with asyncio.timeout(10):
        await connection.run()
    assert tried == ["websocket.send"]
    assert "An engine session failed" not in caplog.text
