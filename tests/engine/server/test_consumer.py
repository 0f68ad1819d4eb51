"""The engine on a real socket with the real models: whole turns, every dialect, every refusal."""

from __future__ import annotations

import base64
import json
from typing import Any

import openai
import pytest
import websockets
from django.conf import settings

from tests.parts.engine_parts import kinds
from tests.parts.engine_server import GA, PREVIEW, EngineServer, connect
from tests.parts.waits import PATIENCE_S
from voiceapp.audio.pcm import level_dbfs

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
    engine: EngineServer, path: str, headers: dict[str, str], status: int
) -> None:
    headers = {name: value.replace("KEY", settings.VOICE.engine_api_key) for name, value in headers.items()}
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with websockets.connect(
            engine.address + path, additional_headers=headers, open_timeout=PATIENCE_S
        ):
            pass
    response = caught.value.response
    assert response.status_code == status
    error = json.loads(response.body or b"")["error"]
    assert error["code"]
    assert settings.VOICE.engine_api_key not in error["message"]


@pytest.mark.parametrize("how", ["header", "bearer", "query", "subprotocol"])
async def test_the_key_opens_the_engine_however_it_is_given(engine: EngineServer, how: str) -> None:
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
    async with connect(engine, path, **options) as client:
        assert client.events[0]["session"]["model"] == "some-model"
        assert client.connection.subprotocol == ("realtime" if how == "subprotocol" else None)


# -- dialects -------------------------------------------------------------------------------------------


async def test_the_preview_dialect_is_pure(engine: EngineServer) -> None:
    async with connect(engine, PREVIEW) as client:
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


BETA = "openai-beta.realtime-v1"


@pytest.mark.parametrize(
    ("headers", "subprotocols", "chosen", "dialect"),
    [
        ([], [], None, "ga"),
        ([], ["realtime"], "realtime", "ga"),
        ([("OpenAI-Beta", "realtime=v1")], [], None, "preview"),
        ([("openai-beta", " Realtime=V1 ")], ["realtime"], "realtime", "preview"),
        ([("OpenAI-Beta", "assistants=v2, realtime=v1")], [], None, "preview"),
        ([("OpenAI-Beta", "realtime=v1"), ("OpenAI-Beta", "assistants=v2")], [], None, "preview"),
        ([("OpenAI-Beta", "assistants=v2")], [], None, "ga"),
        ([("OpenAI-Beta", "realtime=v2")], [], None, "ga"),
        ([("OpenAI-Beta", "")], [], None, "ga"),
        ([], [BETA], BETA, "preview"),
        ([], [BETA, "realtime"], "realtime", "preview"),
        ([], ["openai-insecure-api-key.KEY", BETA], BETA, "preview"),
        ([], ["realtime", "openai-beta.other"], "realtime", "ga"),
    ],
)
@pytest.mark.parametrize("intent", ["", "&intent=transcription"])
async def test_gas_address_speaks_the_preview_to_who_asks_for_the_beta(
    engine: EngineServer,
    headers: list[tuple[str, str]],
    subprotocols: list[str],
    chosen: str | None,
    dialect: str,
    intent: str,
) -> None:
    key = settings.VOICE.engine_api_key
    async with connect(
        engine,
        f"{GA}{intent}",
        additional_headers=[("api-key", key), *headers],
        subprotocols=[name.replace("KEY", key) for name in subprotocols] or None,
    ) as client:
        assert client.connection.subprotocol == chosen
        created = client.events[0]
        if dialect == "ga":
            assert created["type"] == "session.created"
            assert created["session"]["type"] == ("transcription" if intent else "realtime")
            assert "audio" in created["session"]
        else:
            assert created["type"] == f"{'transcription_' if intent else ''}session.created"
            assert created["session"]["input_audio_format"] == "pcm16"
            assert not {"type", "audio", "output_modalities"} & set(created["session"])


async def test_who_asks_for_the_beta_is_spoken_to_in_the_preview_to_the_end(engine: EngineServer) -> None:
    key = settings.VOICE.engine_api_key
    async with connect(
        engine, GA, additional_headers={"api-key": key, "OpenAI-Beta": "realtime=v1"}
    ) as client:
        await client.send("session.update", session={"modalities": ["text"], "voice": "sage"})
        assert (await client.until("session.updated"))["session"]["modalities"] == ["text"]
        await client.say("Hello!")
        await client.send("response.create", response={"modalities": ["text"]})
        await client.until("response.done")
        seen = set(kinds(client.events))
        assert {"conversation.item.created", "response.text.delta", "response.text.done"} <= seen
        assert not [kind for kind in seen if "output_text" in kind or kind == "conversation.item.done"]


async def test_the_contract_dialect_has_ga_names_and_preview_payloads(engine: EngineServer) -> None:
    async with connect(engine, f"{PREVIEW}&dialect=contract") as client:
        assert client.events[0]["session"]["modalities"] == ["audio", "text"]
        await client.say("Hello!")
        await client.send("response.create", response={"modalities": ["text"]})
        done = await client.until("response.done")
        assert done["response"]["modalities"] == ["text"]
        seen = set(kinds(client.events))
        assert {"response.output_text.delta", "conversation.item.added", "conversation.item.done"} <= seen


async def test_the_openai_sdk_holds_a_text_and_an_audio_turn(engine: EngineServer) -> None:
    client = openai.AsyncOpenAI(
        api_key=settings.VOICE.engine_api_key, websocket_base_url=f"{engine.address}/openai/v1"
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
        ('{"event_id": "e"}', "missing_required_parameter"),
        ('{"event_id": 5}', "missing_required_parameter"),
        ('{"type": null, "event_id": "e"}', "invalid_type"),
        ('{"type": 7, "event_id": "e"}', "invalid_type"),
        ('{"type": ["response.create"], "event_id": "e", "audio": ""}', "invalid_type"),
        (f'{{"type": "x", "event_id": "e", "deep": {"[" * 300}{"]" * 300}}}', "invalid_json"),
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
    engine: EngineServer, path: str, message: str | bytes, code: str
) -> None:
    async with connect(engine, path) as client:
        await client.connection.send(message)
        error = (await client.until("error"))["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", code)
        if "x" * 513 not in str(message):
            assert error["event_id"] == ("e" if '"event_id": "e"' in str(message) else None)
        await client.say("Still there?")
        await client.until("conversation.item.added", "conversation.item.created")


async def test_an_append_may_be_as_long_as_the_protocol_lets_it_be(engine: EngineServer) -> None:
    longest = 15 * 1024 * 1024
    async with connect(engine) as client:
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
