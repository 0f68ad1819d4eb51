"""The base of all consumers: where messages go, how a connection ends, and that others have their turn.

Thousands of tiny messages in one go, at every consumer: other tasks run in between.
"""

from __future__ import annotations

import asyncio
import json
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from channels.exceptions import StopConsumer
from channels.testing import ApplicationCommunicator
from django.conf import settings as product

from tests.parts.clock import pass_time, still_time
from tests.parts.engine_parts import loaded
from tests.parts.nnrp_parts import TOKEN, Door, Scripted, nnrp_app, steady
from tests.parts.page import call_service
from tests.parts.scripted import service
from tests.parts.waits import PATIENCE_S
from voiceapp.engine.server.consumer import RealtimeConsumer
from voiceapp.gateway.host_consumer import ModelHostConsumer
from voiceapp.nnrp import layouts, wire
from voiceapp.nnrp.wire import MessageType
from voiceapp.records.store import tokens
from voiceapp.relay.browser.consumer import VoiceConsumer
from voiceapp.relay.browser.login import login_stack
from voiceapp.serving.budget import Pace
from voiceapp.serving.consumer import MESSAGES_A_TURN, SocketConsumer
from voiceapp.types import JsonObject

# -- which message goes where, and how it ends --------------------------------------------------------------


class Noting(SocketConsumer):
    """Notes what it is called with; ``websocket_receive`` raises the exception that a text names."""

    def __init__(self, calls: list[tuple[str, Any]], **raised: BaseException) -> None:
        self.calls, self.raised = calls, raised

    async def websocket_connect(self, message: JsonObject) -> None:
        self.calls.append(("connect", None))
        await self.send({"type": "websocket.accept"})

    async def websocket_receive(self, message: JsonObject) -> None:
        self.calls.append(("receive", message.get("bytes", message.get("text"))))
        if error := self.raised.get(message.get("text") or ""):
            raise error

    async def websocket_disconnect(self, message: JsonObject) -> None:
        self.calls.append(("disconnect", message["code"]))
        raise StopConsumer

    async def chat_message(self, message: JsonObject) -> None:
        self.calls.append(("dispatched", message["type"]))

    async def cancelled(self) -> None:
        self.calls.append(("cancelled", None))


class Closing(Noting):
    """Closes the socket itself when it fails."""

    fault_code, fault_reason = 4011, "internal_error"


def received(**content: Any) -> JsonObject:
    return {"type": "websocket.receive", **content}


LEFT = {"type": "websocket.disconnect", "code": 1001}


@pytest.mark.parametrize(
    ("messages", "calls"),
    [
        ([received(bytes=b"pcm"), LEFT], [("receive", b"pcm"), ("disconnect", 1001)]),
        ([received(text="{}"), LEFT], [("receive", "{}"), ("disconnect", 1001)]),
        ([{"type": "chat.message"}, LEFT], [("dispatched", "chat.message"), ("disconnect", 1001)]),
        ([LEFT], [("disconnect", 1001)]),
        ([received(text="stop")], [("receive", "stop"), ("disconnect", 1006)]),
    ],
    ids=["bytes", "text", "another type is dispatched", "left at once", "the consumer stops"],
)
async def test_every_message_reaches_its_method(
    messages: list[JsonObject], calls: list[tuple[str, Any]]
) -> None:
    noted: list[tuple[str, Any]] = []
    app = Noting.as_asgi(calls=noted, stop=StopConsumer())
    socket = ApplicationCommunicator(app, {"type": "websocket"})
    for message in [{"type": "websocket.connect"}, *messages]:
        await socket.send_input(message)
    await socket.wait(PATIENCE_S)
    assert noted == [("connect", None), *calls]


async def test_a_type_that_no_method_is_for_is_a_fault() -> None:
    noted: list[tuple[str, Any]] = []
    socket = ApplicationCommunicator(Noting.as_asgi(calls=noted), {"type": "websocket"})
    await socket.send_input({"type": "websocket.telepathy"})
    with pytest.raises(ValueError, match=r"websocket\.telepathy"):
        await socket.wait(PATIENCE_S)
    assert noted == [("disconnect", 1006)]


async def test_an_exception_reaches_the_server_once_the_consumer_let_go() -> None:
    noted: list[tuple[str, Any]] = []
    socket = ApplicationCommunicator(Noting.as_asgi(calls=noted, fail=KeyError("x")), {"type": "websocket"})
    await socket.send_input(received(text="fail"))
    with pytest.raises(KeyError):
        await socket.wait(PATIENCE_S)
    assert noted == [("receive", "fail"), ("disconnect", 1006)]


async def test_a_consumer_with_a_code_for_faults_closes_with_it(caplog: pytest.LogCaptureFixture) -> None:
    noted: list[tuple[str, Any]] = []
    socket = ApplicationCommunicator(Closing.as_asgi(calls=noted, fail=KeyError("x")), {"type": "websocket"})
    await socket.send_input(received(text="fail"))
    closed = await socket.receive_output(PATIENCE_S)
    await socket.wait(PATIENCE_S)
    assert closed == {"type": "websocket.close", "code": 4011, "reason": "internal_error"}
    assert noted[-1] == ("disconnect", 1006)
    assert "Closing failed" in caplog.text


async def test_a_client_who_is_gone_when_something_is_sent_is_no_failure() -> None:
    noted: list[tuple[str, Any]] = []

    async def receive() -> JsonObject:
        return {"type": "websocket.connect"}

    async def send(message: JsonObject) -> None:
        raise ConnectionResetError

    await Noting.as_asgi(calls=noted)({"type": "websocket"}, receive, send)
    assert noted == [("connect", None), ("disconnect", 1006)]


async def test_a_consumer_that_is_cancelled_says_goodbye_and_lets_go() -> None:
    noted: list[tuple[str, Any]] = []
    taken = asyncio.Event()

    async def receive() -> JsonObject:
        if not noted:
            return {"type": "websocket.connect"}
        taken.set()
        return await asyncio.Future[JsonObject]()

    async def send(message: JsonObject) -> None:
        pass

    serving = asyncio.create_task(Noting.as_asgi(calls=noted)({"type": "websocket"}, receive, send))
    await taken.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert noted == [("connect", None), ("cancelled", None), ("disconnect", 1006)]


async def test_its_tasks_end_before_it_lets_go() -> None:
    noted: list[tuple[str, Any]] = []

    class Busy(Noting):
        async def websocket_connect(self, message: JsonObject) -> None:
            self.start(self._work())
            await asyncio.sleep(0)

        async def _work(self) -> None:
            try:
                await asyncio.Future[None]()
            finally:
                noted.append(("task ended", None))

    socket = ApplicationCommunicator(Busy.as_asgi(calls=noted), {"type": "websocket"})
    await socket.send_input({"type": "websocket.connect"})
    await socket.send_input(LEFT)
    await socket.wait(PATIENCE_S)
    assert noted == [("task ended", None), ("disconnect", 1001)]


# -- pace --------------------------------------------------------------------------------------------------


async def test_a_program_that_sends_more_than_its_pace_is_received_more_slowly() -> None:
    class Slow(Noting):
        pace = Pace(messages_a_s=10, messages_at_once=40, bytes_a_s=1_000, bytes_at_once=10_000)

    noted: list[tuple[str, Any]] = []
    socket = ApplicationCommunicator(Slow.as_asgi(calls=noted), {"type": "websocket"})
    with still_time():
        for message in [{"type": "websocket.connect"}, *[received(text="x")] * 100]:
            await socket.send_input(message)
        await pass_time(0)
        # Looked at after every eighth, of which the first was the connection.
        assert len(noted) == 48
        await pass_time(0.9)
        assert len(noted) == 56
        await pass_time(10)
        assert len(noted) == 101
        await socket.send_input(received(bytes=bytes(20_000)))
        for _ in range(100):
            await socket.send_input(received(text="x"))
        await pass_time(5)
        assert len(noted) < 110
        await socket.send_input(LEFT)
        await pass_time(60)
        assert noted[-1] == ("disconnect", 1001)
    await socket.wait(5)


# -- turns --------------------------------------------------------------------------------------------------

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
        assert (
            await most_at_once(login_stack(VoiceConsumer.as_asgi()), signed_in, [start], '{"type":"ping"}')
            <= MESSAGES_A_TURN
        )


async def test_of_a_realtime_client() -> None:
    await asyncio.to_thread(loaded)
    scope = {
        "path": "/openai/v1/realtime",
        "query_string": b"model=m",
        "headers": [(b"api-key", product.VOICE.engine_api_key.encode())],
    }
    clear = '{"type":"input_audio_buffer.clear"}'
    assert await most_at_once(RealtimeConsumer.as_asgi(), scope, [], clear) <= MESSAGES_A_TURN


async def test_of_an_nnrp_client() -> None:
    scope = {"query_string": b"", "headers": [(b"authorization", f"Bearer {TOKEN}".encode())]}
    hello = wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello())
    pong = wire.encode(MessageType.PONG)
    app = nnrp_app(Door(Scripted(steady)))
    assert await most_at_once(app, scope, [hello], pong) <= MESSAGES_A_TURN


@pytest.mark.django_db(transaction=True)
async def test_of_a_model_host(user: Any) -> None:
    _, text = await asyncio.to_thread(tokens.make_token, user, "host")
    scope = {"query_string": b"", "headers": [(b"authorization", f"Bearer {text}".encode())]}
    assert await most_at_once(ModelHostConsumer.as_asgi(), scope, [], "x") <= MESSAGES_A_TURN
