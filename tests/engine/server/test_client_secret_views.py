"""Secrets for browsers: made over HTTP with the key, opening one kind of session for a while."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import websockets
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client
from openai.types.realtime import ClientSecretCreateResponse

from tests.parts.engine_server import EngineServer, connect
from voiceapp.engine.server.client_secrets import ClientSecrets

ADDRESS = "/openai/v1/realtime/client_secrets"


def ask(body: Any, address: str = ADDRESS, **headers: str) -> tuple[int, dict[str, Any]]:
    headers = headers or {"authorization": f"Bearer {settings.VOICE.engine_api_key}"}
    text = body if isinstance(body, str) else json.dumps(body)
    answer = Client(enforce_csrf_checks=True).post(
        address, data=text, content_type="application/json", headers=headers
    )
    return answer.status_code, json.loads(answer.content)


def test_a_secret_has_a_life_and_a_session() -> None:
    session = {"type": "realtime", "model": "some-model", "audio": {"output": {"voice": "marin"}}}
    expiry = {"anchor": "created_at", "seconds": 120}
    began = int(time.time())
    status, made = ask({"session": session, "expires_after": expiry})
    assert status == 200
    assert made["value"].startswith("ek_")
    assert began + 120 <= made["expires_at"] <= time.time() + 120
    assert made["session"]["audio"]["output"]["voice"] == "marin"
    assert (made["session"]["expires_at"], made["session"]["model"]) == (0, "some-model")
    assert ClientSecretCreateResponse.model_validate(made, strict=True).value == made["value"]
    _, usual = ask({})
    assert began + 600 <= usual["expires_at"] <= time.time() + 600
    assert usual["value"] != made["value"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "invalid_json"),
        ([], "invalid_type"),
        ({"expires_after": {"anchor": "created_at", "seconds": 9}}, "integer_below_min_value"),
        ({"expires_after": {"anchor": "created_at", "seconds": 7201}}, "integer_above_max_value"),
        ({"expires_after": {"anchor": "now"}}, "invalid_value"),
        ({"bogus": 1}, "unknown_parameter"),
        ({"session": {"type": "realtime", "bogus": 1}}, "unknown_parameter"),
        ({"session": {}}, "missing_required_parameter"),
    ],
)
def test_a_wrong_request_is_explained(body: Any, code: str) -> None:
    status, answer = ask(body)
    assert (status, answer["error"]["code"]) == (400, code)


def test_only_the_key_makes_secrets() -> None:
    _, made = ask({})
    for headers in ({"api-key": "wrong"}, {"authorization": f"Bearer {made['value']}"}, {"x": "y"}):
        status, answer = ask({}, **headers)
        assert status == 401
        assert answer["error"]["code"].endswith("api_key")
    assert Client().get(ADDRESS).status_code == 405


@pytest.mark.parametrize("how", ["bearer", "subprotocol", "query"])
async def test_a_secret_opens_its_session(engine: EngineServer, how: str) -> None:
    session = {"type": "realtime", "model": "of-the-secret", "instructions": "Be kind."}
    value = ClientSecrets(settings.VOICE.data_dir).create(session, int(time.time()) + 60, time.time())
    options: dict[str, Any] = {"additional_headers": {}}
    path = "/openai/v1/realtime"
    if how == "bearer":
        options["additional_headers"] = {"Authorization": f"Bearer {value}"}
    elif how == "subprotocol":
        options["subprotocols"] = ["realtime", f"openai-insecure-api-key.{value}"]
    else:
        path += f"?api-key={value}"
    async with connect(engine, path, **options) as client:
        created = client.events[0]["session"]
        assert (created["model"], created["instructions"]) == ("of-the-secret", "Be kind.")
        assert created["expires_at"] > time.time()


async def test_a_transcription_secret_opens_no_conversation(engine: EngineServer) -> None:
    session = {"type": "transcription", "audio": {"input": {"turn_detection": None}}}
    value = ClientSecrets(settings.VOICE.data_dir).create(session, int(time.time()) + 60, time.time())
    headers = {"Authorization": f"Bearer {value}"}
    path = "/openai/v1/realtime?model=x&intent=conversation"
    async with connect(engine, path, additional_headers=headers) as client:
        created = client.events[0]["session"]
        assert created["type"] == "transcription"
        assert created["audio"]["input"]["turn_detection"] is None


@pytest.mark.parametrize("age_s", [0, 1, 1000])
async def test_a_secret_that_is_too_old_opens_nothing(engine: EngineServer, age_s: int) -> None:
    now = int(time.time())
    value = ClientSecrets(settings.VOICE.data_dir).create({"type": "realtime"}, now - age_s, now - age_s - 1)
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with connect(engine, additional_headers={"Authorization": f"Bearer {value}"}):
            pass
    assert caught.value.response.status_code == 401


def test_old_secrets_leave_the_folder_and_no_secret_stands_in_it(tmp_path: Path) -> None:
    kept = ClientSecrets(tmp_path)
    first = kept.create({"type": "realtime"}, 100, 10)
    second = kept.create({"type": "realtime"}, 200, 150)
    files = list((tmp_path / "client_secrets").iterdir())
    assert len(files) == 1
    assert second not in files[0].read_text() + files[0].name
    assert files[0].stat().st_mode & 0o077 == 0
    assert kept.find(first, 50) is None
    assert kept.find(second, 199) == {"type": "realtime"}
    assert kept.find(second, 200) is None
    assert kept.find("ek_../../x", 0) is None


@pytest.mark.parametrize(("kind", "field"), [("sessions", "voice"), ("transcription_sessions", "")])
async def test_the_previews_addresses_speak_the_preview(engine: EngineServer, kind: str, field: str) -> None:
    body = {"input_audio_format": "g711_ulaw", **({"model": "m", field: "marin"} if field else {})}
    status, made = await sync_to_async(ask)(body, f"/openai/realtime/{kind}?api-version=2025-04-01-preview")
    assert status == 200, made
    assert made["input_audio_format"] == "g711_ulaw"
    assert made["client_secret"]["expires_at"] <= time.time() + 60
    path = "/openai/realtime?api-version=2025-04-01-preview"
    headers = {"Authorization": f"Bearer {made['client_secret']['value']}"}
    async with connect(engine, path, additional_headers=headers) as client:
        first = client.events[0]
        assert first["type"] == ("session.created" if field else "transcription_session.created")
        assert first["session"]["input_audio_format"] == "g711_ulaw"
