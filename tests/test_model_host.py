"""A model that a user connects: the handshake, the routing of notifications, and the hosting client."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
import websockets
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient
from jsonschema import Draft7Validator

from tests.chat_server import chat_server, chunk, sse, text
from tests.contracts import load
from tests.engine_server import EngineServer
from tests.stalls import longest_stall
from voiceapp.asgi import application
from voiceapp.errors import TextEngineError
from voiceapp.gateway import host_socket
from voiceapp.gateway.host_client import ModelHost
from voiceapp.records.models import ApiToken, Assistant
from voiceapp.records.tokens import forget_known, make_token
from voiceapp.text import host_link, model_host
from voiceapp.text import host_messages as messages
from voiceapp.text.host_link import HostLink
from voiceapp.text.model_host import ModelHostProvider
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
    Tool,
)

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = ReplyRequest("Be kind.", (Said("user", "Hello"),), spoken=False)
COMPLETED = {
    "type": "response.completed",
    "response": {"id": "resp_1", "usage": {"input_tokens": 5, "output_tokens": 2}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EngineServer(application) as running:
        yield running.address


@pytest.fixture
def token(user: User) -> Iterator[str]:
    forget_known()
    yield make_token(user, "tests")[1]
    forget_known()


class Host:
    """A host on a socket that does as a test says. Its link lives in the server's own thread."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.validator = Draft7Validator(load("client-notification.schema.json"))

    async def send(self, **fields: Any) -> None:
        await self.socket.send(json.dumps(fields))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            message: dict[str, Any] = json.loads(await self.socket.recv())
        assert "jsonrpc" not in message
        return message

    async def shake_hands(self) -> None:
        await self.send(
            id=1,
            method="initialize",
            params={"clientInfo": {"name": "test"}, "capabilities": {"experimentalApi": True}},
        )
        assert (await self.receive())["result"]["serverInfo"]["name"] == "voiceapp"
        await self.notify("initialized")

    async def notify(self, method: str, **params: Any) -> None:
        message = {"method": method, **({"params": params} if params else {})}
        self.validator.validate(message)
        await self.socket.send(json.dumps(message))

    async def accept(self) -> dict[str, Any]:
        """Accept the next request; return its params."""
        asked = await self.receive()
        assert asked["method"] == "model/request"
        assert asked["id"] != asked["params"]["requestId"]
        await self.send(id=asked["id"], result={"accepted": True, "rejectionReason": None})
        params: dict[str, Any] = asked["params"]
        return params

    async def say(self, params: dict[str, Any], *events: Any, **other: str) -> None:
        ids = {**{name: params[name] for name in ("threadId", "turnId", "requestId")}, **other}
        for event in events:
            await self.notify("model/streamEvent", **ids, event=event)


@asynccontextmanager
async def host(server: str, token: str, query: str = "", *, ready: bool = True) -> AsyncIterator[Host]:
    address = f"{server}/ws/model-host/{query}"
    async with websockets.connect(address, additional_headers={"authorization": f"Bearer {token}"}) as socket:
        made = Host(socket)
        if ready:
            await made.shake_hands()
            # Answers come in order: whoever knows this one has taken what came before.
            await made.send(id=99, method="nothing")
            assert (await made.receive())["error"]["code"] == -32601
        yield made


def delta(words: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": words}


async def generate(server: str, token: str, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.replace("ws://", "http://"), timeout=20) as client:
        return await client.post(
            "/v1/generate",
            json={"model": "model-host", "messages": [{"role": "user", "content": "Hello"}], **body},
            headers={"authorization": f"Bearer {token}"},
        )


# -- the socket -------------------------------------------------------------------------------------------


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


async def test_a_host_that_floods_holds_nobody_up_and_fills_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def send(text: str) -> None:
        pass

    link, left = HostLink(send), 20_000

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        return {"type": "websocket.receive", "text": "{"} if left else {"type": "websocket.disconnect"}

    with caplog.at_level(logging.INFO):
        assert await longest_stall(host_socket._read(receive, link)) < 0.05
        link.close()
    assert len(caplog.records) == host_link.MAX_LOGGED + 1
    assert "19999 messages were dropped" in caplog.text


async def test_another_users_host_is_never_asked(
    server: str, token: str, django_user_model: type[User]
) -> None:
    eve = await django_user_model.objects.acreate(username="eve")
    hers = (await asyncio.to_thread(make_token, eve, "tests"))[1]
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
    monkeypatch.setattr(host_socket, "WATCH_S", 0.05)
    async with host(server, token) as mine:
        await ApiToken.objects.aupdate(enabled=False)
        forget_known()
        with pytest.raises(websockets.ConnectionClosed):
            await mine.receive()
        assert mine.socket.close_code == 4016


async def test_a_user_has_so_many_hosts_and_no_more(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_host, "MAX_HOSTS_PER_USER", 1)
    async with host(server, token), host(server, token, ready=False) as second:
        with pytest.raises(websockets.ConnectionClosed):
            await second.receive()
        assert second.socket.close_code == 4009


# -- a voice session ---------------------------------------------------------------------------------


@asynccontextmanager
async def page(server: str, user: User, assistant: str) -> AsyncIterator[websockets.ClientConnection]:
    """Open the page's socket as its browser would."""
    browser = AsyncClient()
    await browser.aforce_login(user)
    headers = {
        "cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    }
    origin: Any = server.replace("ws://", "http://")
    async with websockets.connect(f"{server}/ws/voice/", additional_headers=headers, origin=origin) as socket:
        await socket.send(json.dumps({"type": "session.start", "assistant": assistant}))
        yield socket


async def until(socket: websockets.ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
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


# -- the link and the provider ----------------------------------------------------------------------------


class Wire:
    """A link without a socket: what the app sends is kept, what a host would send is given."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.link = HostLink(self._send)

    async def _send(self, message: str) -> None:
        self.sent.put_nowait(json.loads(message))

    async def give(self, **fields: Any) -> None:
        await self.link.receive(json.dumps(fields))

    async def asked(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            return await self.sent.get()

    async def serve(
        self, *events: Any, metadata: dict[str, str] | None = None, early: bool = False
    ) -> dict[str, Any]:
        request = await self.asked()
        params: dict[str, Any] = request["params"]
        ids = {k: v for k, v in params.items() if k != "request"}
        accepted = {"id": request["id"], "result": {"accepted": True, "rejectionReason": None}}
        if not early:
            await self.give(**accepted)
        if metadata:
            await self.give(method="model/streamMetadata", params={**ids, "metadata": metadata})
        for event in events:
            await self.give(method="model/streamEvent", params={**ids, "event": event})
        if early:
            await self.give(**accepted)
        return params


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    await made.give(id=1, method="initialize", params={"clientInfo": {"name": "x"}})
    await made.give(method="initialized")
    await made.asked()
    model_host.connect(1, made.link)
    yield made
    model_host.disconnect(1, made.link)


async def replied(provider: ModelHostProvider, request: ReplyRequest = REQUEST) -> list[Delta]:
    return [found async for found in provider.reply(request)]


async def test_events_that_come_before_the_acceptance_are_not_lost(wire: Wire) -> None:
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve(delta("Early."), COMPLETED, early=True)
    assert await reply == [TextDelta("Early."), Finished("stop", 5, 2)]


async def test_a_turns_state_goes_back_within_the_turn_only(wire: Wire) -> None:
    provider = ModelHostProvider(1, "t", 5)
    called = (Said("user", "x"), Called("c1", "look", "{}"), Returned("c1", "5"))
    seen = []
    for history in (REQUEST.history, called, REQUEST.history):
        reply = asyncio.create_task(replied(provider, replace(REQUEST, history=history)))
        seen.append(await wire.serve(COMPLETED, metadata={"X-Codex-Turn-State": "sticky", "unknown": "x"}))
        await reply
    assert [params["requestId"].rsplit("-", 1)[1] for params in seen] == ["1", "2", "1"]
    assert seen[0]["turnId"] == seen[1]["turnId"] != seen[2]["turnId"]
    assert [params["request"].get("requestHeaders") for params in seen] == [
        None, {"x-codex-turn-state": "sticky"}, None,
    ]  # fmt: skip


async def test_tool_calls_come_in_deltas_or_whole(wire: Wire) -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": ""}
    whole = {**item, "call_id": "c2", "arguments": '{"b": 2}'}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a": 1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": '{"a": 1}'}},
        {"type": "response.output_item.done", "output_index": 1, "item": whole},
        {"type": "response.some_news", "x": 1}, 5, COMPLETED,
    ]  # fmt: skip
    tools = (Tool("look", "Look", {"type": "object", "properties": {}}),)
    reply = asyncio.create_task(
        replied(ModelHostProvider(1, "t", 5), replace(REQUEST, tools=tools, tool_choice="look"))
    )
    params = await wire.serve(*events)
    assert params["request"]["toolChoice"] == {"type": "function", "name": "look"}
    assert await reply == [
        CallStarted(0, "c1", "look"), CallArguments(0, '{"a":'), CallArguments(0, " 1}"), CallFinished(0),
        CallStarted(1, "c2", "look"), CallArguments(1, '{"b": 2}'), CallFinished(1), Finished("stop", 5, 2),
    ]  # fmt: skip


async def test_a_text_without_deltas_is_taken_from_its_item(wire: Wire) -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "All at once."}]}
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve({"type": "response.output_item.done", "output_index": 0, "item": item}, COMPLETED)
    assert (await reply)[0] == TextDelta("All at once.")


@pytest.mark.parametrize(
    ("event", "code", "told"),
    [
        ({"type": "response.completed", "response": {}}, "model_host_error", "no response id"),
        ({"type": "response.completed"}, "model_host_error", "no response id"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            "model_host_incomplete", "content_filter",
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "limit", "message": "Slow down."}}},
            "model_host_error", "Slow down.",
        ),
        ({"type": "error", "code": "x", "message": "Broken."}, "model_host_error", "Broken."),
    ],
)  # fmt: skip
async def test_responses_that_end_badly(wire: Wire, event: Any, code: str, told: str) -> None:
    reply = asyncio.create_task(replied(ModelHostProvider(1, "t", 5)))
    await wire.serve(event)
    with pytest.raises(TextEngineError, match=told) as failed:
        await reply
    assert failed.value.code == code


async def test_a_slow_reader_holds_the_hosts_socket_back_and_loses_nothing(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_link, "MAX_QUEUED", 4)
    reply = ModelHostProvider(1, "t", 5).reply(REQUEST)
    first = asyncio.ensure_future(anext(reply))
    serving = asyncio.create_task(wire.serve(*[delta(f"{n} ") for n in range(50)], COMPLETED))
    assert await first == TextDelta("0 ")
    # The host cannot go on: the queue is full and nobody reads.
    done, _ = await asyncio.wait({serving}, timeout=0.05)
    assert not done
    rest = [found async for found in reply]
    await serving
    assert rest == [*(TextDelta(f"{n} ") for n in range(1, 50)), Finished("stop", 5, 2)]


async def test_a_reader_that_leaves_frees_the_hosts_socket(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_link, "MAX_QUEUED", 2)
    reply: Any = ModelHostProvider(1, "t", 5).reply(REQUEST)
    first = asyncio.ensure_future(anext(reply))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.serve(*[delta("x") for _ in range(50)], COMPLETED))
        await first
        await reply.aclose()


# -- the client that hosts a model ------------------------------------------------------------------------


@asynccontextmanager
async def hosting(server: str, token: str, endpoint: str, **options: Any) -> AsyncIterator[list[str]]:
    """Run the product's own host against an endpoint, until it says that it is connected."""
    lines: list[str] = []
    connected = asyncio.Event()

    def tell(line: str) -> None:
        lines.append(line)
        connected.set()

    async with openai.AsyncOpenAI(base_url=endpoint, api_key="none", max_retries=0) as client:
        running = asyncio.create_task(
            ModelHost(client, "local", options.get("api", "auto"), tell).run(
                f"{server}/ws/model-host/", token
            )
        )
        try:
            await asyncio.wait_for(connected.wait(), 5)
            yield lines
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@pytest.fixture
def told_by_hosts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Everything that hosts send to the server, as it came."""
    told: list[dict[str, Any]] = []
    read = messages.read

    def reading(message: str) -> Any:
        told.append(json.loads(message))
        return read(message)

    monkeypatch.setattr(messages, "read", reading)
    return told


async def test_a_chat_endpoint_hosted_by_the_command_answers(
    server: str, token: str, told_by_hosts: list[dict[str, Any]]
) -> None:
    usage = chunk(usage={"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9})
    script = sse(
        text("Hosted "),
        text("words."),
        chunk({"index": 0, "delta": {}, "finish_reason": "stop"}),
        usage,
        "[DONE]",
    )
    async with chat_server(script=script) as chat, hosting(server, token, chat.base_url, api="chat"):
        answer = (await generate(server, token)).json()
    assert (answer["text"], answer["tokens_in"], answer["tokens_out"]) == ("Hosted words.", 7, 2)
    assert chat.requests[0]["model"] == "local"
    notified = [message for message in told_by_hosts if "id" not in message]
    contract = Draft7Validator(load("client-notification.schema.json"))
    for message in notified:
        contract.validate(message)
    assert {message["method"] for message in notified} == {
        "initialized", "model/streamMetadata", "model/streamEvent",
    }  # fmt: skip


async def test_an_endpoint_without_responses_is_asked_for_chat(server: str, token: str) -> None:
    # The embedded engine's own chat address: a real service that has no Responses.
    endpoint = f"{server.replace('ws://', 'http://')}/openai/v1"
    async with openai.AsyncOpenAI(base_url=endpoint, api_key=settings.VOICE.engine_api_key) as client:
        ready = asyncio.Event()
        hosted = ModelHost(client, "voiceapp-embedded", "auto", lambda line: ready.set())
        running = asyncio.create_task(hosted.run(f"{server}/ws/model-host/", token))
        await asyncio.wait_for(ready.wait(), 5)
        asked = [{"role": "user", "content": "What is twelve times twelve?"}]
        answer = (await generate(server, token, messages=asked)).json()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert "144" in answer["text"]
    assert answer["provider"] == "model-host"


async def test_an_endpoint_that_fails_is_told_to_the_caller(
    server: str, token: str, told_by_hosts: list[dict[str, Any]]
) -> None:
    async with (
        chat_server(status="500 Oops", script=[b"{}"]) as chat,
        hosting(server, token, chat.base_url) as lines,
    ):
        answer = (await generate(server, token)).json()
    assert answer["code"] == "model_host_error"
    assert any("failed" in line for line in lines)
    [failed] = [message for message in told_by_hosts if message.get("method") == "model/requestFailed"]
    Draft7Validator(load("client-notification.schema.json")).validate(failed)
