"""Who thinks for whom, over the whole product's sockets: by assistant, by token, by thread."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

import httpx
import pytest
import websockets
from django.contrib.auth.models import User

from tests.gateway.test_host_consumer import ask, page, until
from tests.parts.chat_server import answering, chat_server, chunk, sse, text
from tests.parts.hosts import COMPLETED, Host, delta, generate, host
from tests.parts.places import ROOT
from tests.parts.waits import PATIENCE_S
from voiceapp.nnrp import layouts, wire
from voiceapp.nnrp.wire import MessageType
from voiceapp.records.models import Assistant

pytestmark = pytest.mark.django_db(transaction=True)

STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})


# -- one token, every door --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["header", "address"])
async def test_one_token_opens_every_door(server: str, token: str, how: str) -> None:
    headers = {"authorization": f"Bearer {token}"} if how == "header" else {}
    query = f"?token={token}" if how == "address" else ""
    messages = [{"role": "user", "content": "What is twelve times twelve?"}]
    async with httpx.AsyncClient(base_url=server.replace("ws://", "http://"), timeout=PATIENCE_S) as client:
        for address in ("/v1/generate", "/v1/generate/stream"):
            answer = await client.post(address + query, json={"messages": messages}, headers=headers)
            assert (answer.status_code, "144" in answer.text) == (200, True)
    async with websockets.connect(
        f"{server}/nnrp{query}", additional_headers=headers, open_timeout=PATIENCE_S
    ) as socket:
        await socket.send(wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello()))
        hello = await asyncio.wait_for(socket.recv(), PATIENCE_S)
        assert isinstance(hello, bytes)
        assert wire.decode(hello).type is MessageType.SERVER_HELLO_ACK
    async with websockets.connect(
        f"{server}/ws/model-host/{query}", additional_headers=headers, open_timeout=PATIENCE_S
    ) as socket:
        await Host(socket).shake_hands()
    for address in ("/nnrp", "/ws/model-host/"):
        for wrong in ("", "?token=va_wrong"):
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with websockets.connect(server + address + wrong, open_timeout=PATIENCE_S):
                    pass
            assert refused.value.response.status_code == 401


# -- who thinks -------------------------------------------------------------------------------------------


async def test_each_assistant_has_the_thinker_that_was_chosen_for_it(
    server: str, token: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("embedded", "chat", "model-host", ""):
        await Assistant.objects.acreate(slug=slug or "settings", name=slug or "Settings", thinking=slug)
    script = sse(text("The chat service says so."), STOP, "[DONE]")
    async with chat_server(script=script) as chat, host(server, token) as mine:
        told: dict[str, str] = {}
        with answering(monkeypatch, chat, summaries=False):
            for slug in ("embedded", "chat", "model-host", "settings"):
                async with page(server, user, slug) as browser:
                    await until(browser, "session.ready")
                    await ask(browser, "What is twelve times twelve?")
                    if slug == "model-host":
                        await mine.say(await mine.accept(), delta("My own model says so."), COMPLETED)
                    told[slug] = (await until(browser, "response.output_text.done"))["text"]
                    await browser.send(json.dumps({"type": "session.end"}))
                    await until(browser, "session.ended")
    assert "144" in told.pop("embedded")
    assert told == {
        "chat": "The chat service says so.",
        "model-host": "My own model says so.",
        "settings": "The chat service says so.",
    }
    assert [request["messages"][-1]["content"] for request in chat.requests] == [
        "What is twelve times twelve?"
    ] * 2


# -- whose notification it is -----------------------------------------------------------------------------


async def test_only_the_host_that_was_asked_is_listened_to(server: str, token: str) -> None:
    async with host(server, token) as mine, host(server, token, "?thread=t1") as chosen:
        asked = asyncio.create_task(generate(server, token, session_id="t1"))
        params = await chosen.accept()
        ids = {name: params[name] for name in ("threadId", "turnId", "requestId")}
        # The right ids on another connection of the same user's.
        await mine.say(params, delta("foreign"), COMPLETED)
        # A message that carries an id is no notification, whatever else it says.
        await chosen.send(id=7, method="model/streamEvent", params={**ids, "event": delta("no")})
        assert (await chosen.receive())["id"] == 7
        await chosen.say(params, delta("right"), COMPLETED)
        assert (await asked).json()["text"] == "right"
        await mine.send(id=8, method="nothing")
        assert (await mine.receive())["id"] == 8


async def test_a_host_is_asked_nothing_until_it_said_that_it_is_ready(server: str, token: str) -> None:
    async with host(server, token, ready=False) as mine:
        # Before ``initialize`` it means nothing.
        await mine.notify("initialized")
        await mine.send(id=1, method="model/streamEvent")
        assert (await mine.receive())["error"]["message"] == "Not initialized"
        assert (await generate(server, token)).json()["code"] == "model_host_absent"


async def test_a_request_that_failed_is_not_tried_again(server: str, token: str) -> None:
    async with host(server, token) as mine:
        asked = asyncio.create_task(generate(server, token))
        params = await mine.accept()
        ids = {name: params[name] for name in ("threadId", "turnId", "requestId")}
        await mine.notify("model/requestFailed", **ids, error={"message": "busy", "type": "rate_limit"})
        assert (await asked).status_code == 502
        await mine.send(id=9, method="nothing")
        # The next that comes is the answer to this, and no second request.
        assert (await mine.receive())["id"] == 9


# -- the command, with an endpoint that speaks Responses ----------------------------------------------------

RESPONSE: dict[str, Any] = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "local", "output": [], "tools": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress",
}  # fmt: skip
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": ""}


def numbered(*events: dict[str, Any]) -> list[bytes]:
    found = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in found]


async def test_the_command_serves_an_endpoint_that_speaks_responses(
    server: str, token: str, user: User
) -> None:
    where = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    usage = {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    script = numbered(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_text.delta", **where, "delta": "Spoken by ", "logprobs": []},
        {"type": "response.some_news", "x": 1},
        {"type": "response.output_text.delta", **where, "delta": "Responses.", "logprobs": []},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "usage": usage}},
    )
    await Assistant.objects.acreate(slug="mine", name="Mine", instructions="Be kind.", thinking="model-host")
    async with chat_server(script=script) as endpoint:
        command = [
            sys.executable, "manage.py", "model-host", "--endpoint", endpoint.base_url, "--model", "local",
            "--api", "responses", "--server", server.replace("ws://", "http://"),
        ]  # fmt: skip
        environment = {**os.environ, "VOICEAPP_TOKEN": token, "VIRTUAL_ENV": sys.prefix}
        running = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert running.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while "Connected to the app." not in (line := (await running.stdout.readline()).decode()):
                    assert line, "the command ended"
            async with page(server, user, "mine") as browser:
                await until(browser, "session.ready")
                await ask(browser, "Hello")
                done = await until(browser, "response.done")
                await browser.send(json.dumps({"type": "session.end"}))
                await until(browser, "session.ended")
        finally:
            with suppress(ProcessLookupError):
                running.terminate()
            await running.wait()
    assert done["response"]["output"][0]["content"][0]["text"] == "Spoken by Responses."
    assert done["response"]["usage"]["output_tokens"] > 0
    [asked] = [request for request in endpoint.requests if "input" in request]
    assert (asked["model"], asked["stream"], asked["store"]) == ("local", True, False)
    assert "Be kind." in asked["instructions"]
    assert asked["input"][-1]["content"] == [{"type": "input_text", "text": "Hello"}]
    assert endpoint.paths[-1] == "/v1/responses"
