"""A model that a user connects: the handshake, the routing of notifications, and the hosting client."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import websockets
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient

from tests.parts.forgetting import forget_tokens
from tests.parts.hosts import COMPLETED, delta, generate, host
from tests.parts.stalls import turns_during
from tests.parts.waits import PATIENCE_S
from voiceapp.gateway import host_consumer
from voiceapp.gateway.host_consumer import ModelHostConsumer
from voiceapp.records.models import ApiToken, Assistant
from voiceapp.records.store.tokens import make_token
from voiceapp.serving.consumer import MESSAGES_A_TURN
from voiceapp.text.model_host import link as host_link
from voiceapp.text.model_host import provider

pytestmark = pytest.mark.django_db(transaction=True)


# -- the socket -----------------------------------------------------------------------------------------


async def test_a_users_own_model_answers_text_clients(server: str, token: str) -> None:
    async with host(server, token) as mine:
        asked = asyncio.create_task(generate(server, token, session_id="thread-7"))
        params = await mine.accept()
        assert params["threadId"] == "thread-7"
        assert params["requestId"] == f"{params['turnId']}-1"
        request = params["request"]
        assert request["input"] == [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
        ]
        assert (request["stream"], request["store"], request["model"]) == (True, False, "default")
        await mine.notify(
            "model/streamMetadata",
            **{k: v for k, v in params.items() if k != "request"},
            metadata={"openai-model": "x"},
        )
        await mine.say(params, delta("Hello "), delta("you."), COMPLETED)
        answer = (await asked).json()
    assert (answer["text"], answer["provider"], answer["tokens_in"]) == ("Hello you.", "model-host", 5)


async def test_nothing_but_the_handshake_comes_before_the_handshake(server: str, token: str) -> None:
    async with host(server, token, ready=False) as mine:
        await mine.send(id=7, method="thread/list")
        assert (await mine.receive()) == {"id": 7, "error": {"code": -32002, "message": "Not initialized"}}
        assert (await generate(server, token)).json()["code"] == "model_host_absent"
        await mine.send(id=8, method="initialize", params={})
        assert (await mine.receive())["error"]["code"] == -32602
        await mine.shake_hands()
        await mine.send(id=9, method="initialize", params={"clientInfo": {"name": "test"}})
        assert (await mine.receive())["error"]["message"] == "Already initialized"


async def test_what_cannot_be_read_is_dropped_and_the_connection_stays(server: str, token: str) -> None:
    async with host(server, token) as mine:
        for garbage in (
            "{", "[]", "5", '"x"', '{"method": 5}', '{"method": "nobody/knows"}', "{}", "[" * 50_000,
            '{"method": "model/streamEvent"}', '{"method": "model/streamEvent", "params": {"threadId": 5}}',
            '{"id": 12345, "result": {}}', '{"id": null, "result": {}}', '{"id": {}, "method": "x"}',
            '{"method": "model/streamEvent", "params": {"threadId": "a", "turnId": "b", "requestId": "c"}}',
        ):  # fmt: skip
            await mine.socket.send(garbage)
        await mine.socket.send(b"\x00\x01")
        asked = asyncio.create_task(generate(server, token))
        params = await mine.accept()
        # Nothing was answered in between, and the reply is untouched by another thread's events.
        await mine.say(params, delta("wrong"), turnId="turn_other")
        await mine.say(params, delta("wrong"), threadId="other")
        await mine.say(params, delta("wrong"), requestId="other")
        await mine.say(params, delta("right"), COMPLETED)
        assert (await asked).json()["text"] == "right"
        # Late ones are dropped as well.
        await mine.say(params, delta("late"))
        await mine.send(id=100, method="nothing")
        assert (await mine.receive())["id"] == 100


async def test_a_host_that_floods_fills_no_log(user: User, caplog: pytest.LogCaptureFixture) -> None:
    _, text = await sync_to_async(make_token)(user, "host")
    scope = {"type": "websocket", "query_string": b"", "headers": []}
    scope["headers"] = [(b"authorization", f"Bearer {text}".encode())]
    messages = iter([{"type": "websocket.connect"}, *[{"type": "websocket.receive", "text": "{"}] * 20_000])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "websocket.disconnect", "code": 1006})

    async def send(message: dict[str, Any]) -> None:
        assert message["type"] == "websocket.accept"

    with caplog.at_level(logging.INFO, "voiceapp.text.model_host"):
        turns = await turns_during(ModelHostConsumer.as_asgi()(scope, receive, send))
    noted = [record for record in caplog.records if record.name == "voiceapp.text.model_host.link"]
    assert turns >= 20_000 // MESSAGES_A_TURN
    assert len(noted) == host_link.MAX_LOGGED + 1
    assert "20000 messages were dropped" in caplog.text


async def test_another_users_host_is_never_asked(
    server: str, token: str, django_user_model: type[User]
) -> None:
    eve = await django_user_model.objects.acreate(username="eve")
    hers = (await sync_to_async(make_token)(eve, "tests"))[1]
    async with host(server, hers):
        assert (await generate(server, token)).json()["code"] == "model_host_absent"


async def test_two_hosts_for_one_thread_are_a_clear_error(server: str, token: str) -> None:
    async with host(server, token), host(server, token):
        assert (await generate(server, token)).json()["code"] == "model_host_ambiguous"
        async with host(server, token, "?thread=t1") as chosen:
            asked = asyncio.create_task(generate(server, token, session_id="t1"))
            await chosen.say(await chosen.accept(), delta("Mine."), COMPLETED)
            assert (await asked).json()["text"] == "Mine."
            assert (await generate(server, token, session_id="t2")).json()["code"] == "model_host_ambiguous"


async def test_a_host_that_rejects_fails_or_leaves_is_an_error_in_words(server: str, token: str) -> None:
    async with host(server, token) as mine:
        asked = asyncio.create_task(generate(server, token))
        request = await mine.receive()
        await mine.send(id=request["id"], result={"accepted": False, "rejectionReason": "the GPU is busy"})
        assert (await asked).json() == {
            "code": "model_host_rejected", "detail": "The model host rejected the request: the GPU is busy"
        }  # fmt: skip
        asked = asyncio.create_task(generate(server, token))
        params = await mine.accept()
        ids = {k: v for k, v in params.items() if k != "request"}
        await mine.notify("model/requestFailed", **ids, error={"message": "out of memory", "type": "server"})
        assert "out of memory" in (await asked).json()["detail"]
        asked = asyncio.create_task(generate(server, token))
        await mine.say(await mine.accept(), delta("And then"))
    assert (await asked).json()["code"] == "model_host_gone"


async def test_a_silent_host_times_out(server: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, model_host_idle_s=0.05))
    async with host(server, token) as mine:
        asked = asyncio.create_task(generate(server, token))
        await mine.accept()
        assert (await asked).json()["code"] == "model_host_timeout"


async def test_strangers_and_revoked_tokens_stay_outside(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with host(server, "va_wrong"):
            pass
    assert refused.value.response.status_code == 401
    monkeypatch.setattr(host_consumer, "WATCH_S", 0.05)
    async with host(server, token) as mine:
        await ApiToken.objects.aupdate(enabled=False)
        forget_tokens()
        with pytest.raises(websockets.ConnectionClosed):
            await mine.receive()
        assert mine.socket.close_code == 4016


async def test_a_user_has_so_many_hosts_and_no_more(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "MAX_HOSTS_PER_USER", 1)
    async with host(server, token), host(server, token, ready=False) as second:
        with pytest.raises(websockets.ConnectionClosed):
            await second.receive()
        assert second.socket.close_code == 4009


# -- a voice session ------------------------------------------------------------------------------------


@asynccontextmanager
async def page(server: str, user: User, assistant: str) -> AsyncIterator[websockets.ClientConnection]:
    """Open the page's socket as its browser would."""
    browser = AsyncClient()
    await browser.aforce_login(user)
    headers = {
        "cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    }
    origin: Any = server.replace("ws://", "http://")
    async with websockets.connect(
        f"{server}/ws/voice/", additional_headers=headers, origin=origin, open_timeout=PATIENCE_S
    ) as socket:
        await socket.send(json.dumps({"type": "session.start", "assistant": assistant}))
        yield socket


async def until(socket: websockets.ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            message = await socket.recv()
            if isinstance(message, str) and (event := json.loads(message))["type"] == kind:
                return dict(event)


async def ask(socket: websockets.ClientConnection, words: str) -> None:
    part = {"type": "input_text", "text": words}
    item = {"type": "message", "role": "user", "content": [part]}
    await socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
    await socket.send(json.dumps({"type": "response.create", "response": {"output_modalities": ["text"]}}))


async def test_a_users_own_model_answers_their_voice_session(server: str, token: str, user: User) -> None:
    await Assistant.objects.acreate(slug="mine", name="Mine", instructions="Be kind.", thinking="model-host")
    async with host(server, token) as mine, page(server, user, "mine") as browser:
        ready = await until(browser, "session.ready")
        await ask(browser, "Hello")
        params = await mine.accept()
        assert params["threadId"] == ready["session_id"]
        assert "Be kind." in params["request"]["instructions"]
        await mine.say(params, delta("From my own computer."), COMPLETED)
        done = await until(browser, "response.output_text.done")
        assert done["text"] == "From my own computer."
        await browser.send(json.dumps({"type": "session.end"}))
        await until(browser, "session.ended")


async def test_without_a_host_the_page_is_told_so_and_the_session_lives(server: str, user: User) -> None:
    await Assistant.objects.acreate(slug="mine", name="Mine", thinking="model-host")
    await Assistant.objects.acreate(slug="chat", name="Chat", thinking="chat")
    for slug, told in (("mine", "No model host is connected"), ("chat", "the settings name none")):
        async with page(server, user, slug) as browser:
            await until(browser, "session.ready")
            for _ in range(2):
                await ask(browser, "Hello")
                done = await until(browser, "response.done")
                assert done["response"]["status"] == "failed"
                assert told in done["response"]["status_details"]["error"]["message"]
            await browser.send(json.dumps({"type": "session.end"}))
            await until(browser, "session.ended")
