"""The engine over a real socket when models are missing or break, and clients vanish or do not read."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import weakref
from typing import Any

import pytest
import websockets
from django.conf import settings

from tests.parts.engine_parts import heard_as, loaded, quiet, recording
from tests.parts.engine_server import TRANSCRIPTION, EngineServer, connect
from tests.parts.waits import PATIENCE_S
from voiceapp.engine.inference.loading import Models, models
from voiceapp.engine.inference.weights import ModelError
from voiceapp.engine.server import connection
from voiceapp.engine.server.connection import Connection
from voiceapp.engine.server.consumer import RealtimeConsumer


async def test_without_models_text_goes_on_and_speech_fails_with_a_code(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_models() -> Models:
        raise ModelError("The voice is missing.")

    monkeypatch.setattr(models(), "ready", no_models)
    async with connect(engine) as client:
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
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: Any = _Broken()
    half = dataclasses.replace(loaded(), recogniser=broken, voice=broken)

    async def half_broken() -> Models:
        return half

    monkeypatch.setattr(models(), "ready", half_broken)
    async with connect(engine) as client:
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


async def test_several_people_talk_at_once(engine: EngineServer) -> None:
    async def talk(name: str) -> str:
        async with connect(engine) as client:
            await client.update(audio={"input": {"transcription": {}}})
            await client.speak(recording(name))
            await client.finish_turn()
            completed = await client.until(f"{TRANSCRIPTION}.completed")
            await client.until("response.output_audio.delta")
            transcript: str = completed["transcript"]
            return transcript

    names = ("joke", "hello", "train", "weather")
    said = await asyncio.gather(*(talk(name) for name in names))
    for name, transcript in zip(names, said, strict=True):
        assert heard_as(transcript) == name


async def test_a_client_that_vanishes_in_mid_answer_leaves_nothing_behind(
    engine: EngineServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = weakref.WeakSet[Connection]()
    begin = Connection.__init__

    def noted(self: Connection, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        alive.add(self)

    monkeypatch.setattr(Connection, "__init__", noted)
    async with connect(engine) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        client.connection.transport.abort()
        assert len(alive) == 1
    async with asyncio.timeout(PATIENCE_S):
        while alive:
            gc.collect()
            await asyncio.sleep(0.05)
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


async def test_a_client_that_does_not_read_is_not_given_everything(engine: EngineServer) -> None:
    async with connect(engine, max_queue=1) as client:
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

    arrived: list[dict[str, Any]] = [{"type": "websocket.connect"}]

    async def receive() -> dict[str, Any]:
        if not arrived:
            await asyncio.Event().wait()
        return arrived.pop()

    async def send(message: dict[str, Any]) -> None:
        tried.append(message["type"])
        if message["type"] == "websocket.send":
            raise ConnectionResetError

    key = settings.VOICE.engine_api_key.encode()
    scope = {"type": "websocket", "path": "/openai/v1/realtime", "query_string": b"model=m"}
    async with asyncio.timeout(PATIENCE_S):
        await RealtimeConsumer.as_asgi()({**scope, "headers": [(b"api-key", key)]}, receive, send)
    assert tried == ["websocket.accept", "websocket.send"]
    assert "failed" not in caplog.text


async def test_a_client_that_never_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(loaded)
    monkeypatch.setattr(connection, "WRITE_S", 0.1)
    arrived: list[dict[str, Any]] = [{"type": "websocket.connect"}]
    for_ever = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not arrived:
            await for_ever.wait()
        return arrived.pop()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send":
            await for_ever.wait()

    key = settings.VOICE.engine_api_key.encode()
    scope = {"type": "websocket", "path": "/openai/v1/realtime", "query_string": b"model=m"}
    async with asyncio.timeout(PATIENCE_S):
        await RealtimeConsumer.as_asgi()({**scope, "headers": [(b"api-key", key)]}, receive, send)
