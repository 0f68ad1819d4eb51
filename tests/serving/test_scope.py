"""Thousands of tiny messages in one go, at every door: others have their turn in between."""

from __future__ import annotations

import asyncio
import json
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product

from tests.parts.engine_parts import loaded
from tests.parts.nnrp_parts import TOKEN, Door, Scripted, steady
from tests.parts.page import call_service
from tests.parts.scripted import service
from tests.parts.waits import PATIENCE_S
from voiceapp.engine.server.consumer import realtime_socket
from voiceapp.gateway.host_consumer import model_host_socket
from voiceapp.nnrp import layouts, wire
from voiceapp.nnrp.consumer import NnrpApp
from voiceapp.nnrp.wire import MessageType
from voiceapp.records.store import tokens
from voiceapp.relay.browser.consumer import voice_socket
from voiceapp.serving.scope import MESSAGES_A_TURN

MANY = 2_000


async def most_at_once(app: Any, scope: dict[str, Any], first: list[str | bytes], tiny: str | bytes) -> int:
    """Return how many messages an application takes at once of many that have arrived already."""
    waiting = chain(first, repeat(tiny, MANY))
    taken = most = 0
    through = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal taken
        if not taken:
            taken += 1
            return {"type": "websocket.connect"}
        message = next(waiting, None)
        if message is None:
            through.set()
            return {"type": "websocket.disconnect", "code": 1006}
        taken += 1
        return {"type": "websocket.receive", "bytes" if isinstance(message, bytes) else "text": message}

    async def send(message: dict[str, Any]) -> None:
        assert message["type"] != "websocket.close", message

    serving = asyncio.create_task(app({"type": "websocket", **scope}, receive, send))
    async with asyncio.timeout(PATIENCE_S):
        while not through.is_set():
            before = taken
            await asyncio.sleep(0)
            most = max(most, taken - before)
    await serving
    assert taken > MANY
    return most


@pytest.mark.django_db(transaction=True)
async def test_of_a_page(settings: Any, signed_in: dict[str, Any], tmp_path: Path) -> None:
    async with service() as upstream:
        call_service(settings, upstream, tmp_path)
        start = json.dumps({"type": "session.start"})
        assert await most_at_once(voice_socket, signed_in, [start], '{"type":"ping"}') <= MESSAGES_A_TURN


async def test_of_a_realtime_client() -> None:
    await asyncio.to_thread(loaded)
    scope = {
        "path": "/openai/v1/realtime",
        "query_string": b"model=m",
        "headers": [(b"api-key", product.VOICE.engine_api_key.encode())],
    }
    clear = '{"type":"input_audio_buffer.clear"}'
    assert await most_at_once(realtime_socket, scope, [], clear) <= MESSAGES_A_TURN


async def test_of_an_nnrp_client() -> None:
    scope = {"query_string": b"", "headers": [(b"authorization", f"Bearer {TOKEN}".encode())]}
    hello = wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello())
    pong = wire.encode(MessageType.PONG)
    app = NnrpApp(Door(Scripted(steady)))
    assert await most_at_once(app, scope, [hello], pong) <= MESSAGES_A_TURN


@pytest.mark.django_db(transaction=True)
async def test_of_a_model_host(user: Any) -> None:
    _, text = await asyncio.to_thread(tokens.make_token, user, "host")
    scope = {"query_string": b"", "headers": [(b"authorization", f"Bearer {text}".encode())]}
    assert await most_at_once(model_host_socket, scope, [], "x") <= MESSAGES_A_TURN
