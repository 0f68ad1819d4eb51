"""``/nnrp`` over live sockets: recipes, an independent client, cancellation, limits, faults."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets
from channels.testing import WebsocketCommunicator

from tests.chat_server import calls, chat_server, chunk, ending, fragment, sse, text
from tests.contracts import FOLDER, load
from tests.fuzz_nnrp import fuzz
from tests.nnrp_parts import (
    TOKEN,
    Door,
    Object,
    Scripted,
    check_events,
    check_recipe,
    envelope_of,
    native,
    native_events,
    native_request,
    native_submit,
    remote,
    serving,
)
from voiceapp.errors import RemoteProtocolError, TextEngineError, UpstreamClosed, UpstreamRefused
from voiceapp.nnrp import consumer, layouts, operations, outbox, profile, wire, work
from voiceapp.nnrp.client import Dropped, NnrpClient, connect
from voiceapp.nnrp.connection import MAX_FAULTS
from voiceapp.nnrp.consumer import NnrpApp
from voiceapp.nnrp.data_layouts import DropReason, Scheduling, Status
from voiceapp.nnrp.replies import MAX_REPLY_CHARS
from voiceapp.nnrp.wire import MessageType
from voiceapp.nnrp.work import OPERATION_S

RECIPES = sorted(path.name for path in Path(FOLDER, "nnrp").glob("chat-*.json"))
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
TEXT = [text("Hel"), text("lo"), text("", finish_reason="stop"), chunk(usage=USAGE)]
TOOLS = [
    calls(fragment(0, id="a", name="lookup", arguments="")),
    calls(fragment(0, arguments='{"q":')),
    calls(fragment(0, arguments="1}")),
    ending(),
    chunk(usage=USAGE),
]


def test_the_recipes_are_at_hand() -> None:
    load("nnrp/chat-streaming-text.json")
    assert len(RECIPES) == 8


def body(**changes: Any) -> Object:
    return {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "stream": True, **changes}


async def steady(_: Object) -> AsyncGenerator[Object]:
    for one in TEXT:
        yield one


class Endless:
    """Streams text until it is closed, and says so."""

    def __init__(self, pause_s: float = 0.01) -> None:
        self.pause_s = pause_s
        self.closed = asyncio.Event()
        self.sent = 0

    async def __call__(self, _: Object) -> AsyncGenerator[Object]:
        try:
            while True:
                yield text("word ")
                self.sent += 1
                await asyncio.sleep(self.pause_s)
        finally:
            self.closed.set()


@asynccontextmanager
async def talking(script: Any, **door: Any) -> AsyncIterator[tuple[NnrpClient, Door, NnrpApp]]:
    """A server with a scripted engine, and a client of it."""
    backing = Door(Scripted(script), **door)
    app = NnrpApp(backing)
    async with serving(app) as url, connect(url, TOKEN) as client:
        yield client, backing, app


# -- recipes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("peer", ["own", "independent"])
async def test_a_published_recipe_is_followed(name: str, peer: str) -> None:
    recipe = load(f"nnrp/{name}")
    envelope = envelope_of(recipe)
    status = "500 Internal Server Error" if name == "chat-backend-error.json" else "200 OK"
    script = TOOLS if envelope["body"].get("tools") else TEXT
    async with (
        chat_server(script=sse(*script, "[DONE]"), status=status) as chat,
        serving(NnrpApp(Door(remote(chat.base_url)))) as url,
    ):
        if peer == "own":
            async with connect(url, TOKEN) as client:
                running = await (await client.open_session()).submit(envelope)
                events = [event async for event in running.events()]
        else:
            events = await asyncio.to_thread(independently, url, envelope)
    check_recipe(recipe, events)


def independently(url: str, envelope: Object) -> list[Object]:
    with native(url) as connection:
        session = asyncio.run(connection.open_session())
        native_submit(session, envelope, 1)
        return native_events(session, 1)[1]


def told_of(packet: wire.Packet) -> Object:
    """Return what a scenario's invariants say of a frame, as this packet has it."""
    metadata: Any = packet.metadata
    if packet.type is MessageType.PARTIAL_RESULT:
        event = json.loads(packet.body)
        return {
            "body_encoding": "utf-8-json-event",
            "body_framing": "raw" if metadata.body_bytes == len(packet.body) else "framed",
            "events_per_frame": 1,
            "typed_payload_envelope": packet.body[:1] != b"{",
            "sse_delimiters_allowed": packet.body.startswith(b"data:") or packet.body.endswith(b"\n"),
            "event_type": event["type"],
        }
    (frame,) = wire.unpack_body(
        packet.body, kind_bitmap=metadata.payload_kind_bitmap, frame_count=metadata.payload_frame_count
    )
    envelope = json.loads(frame.payload.decode("utf-8"))
    return {
        "payload_frame_count": metadata.payload_frame_count,
        "payload_kind": "structured_event" if frame.descriptor.payload_kind == 16 else "other",
        "payload_kind_bitmap": metadata.payload_kind_bitmap,
        "profile_id": frame.descriptor.profile_id,
        "schema_id": frame.descriptor.schema_id,
        "schema_version": frame.descriptor.schema_version,
        "stream_semantics": {1: "snapshot"}.get(frame.descriptor.stream_semantics),
        "stream_semantics_value": frame.descriptor.stream_semantics,
        "payload_encoding": "utf-8-json",
        "envelope_schema_version": envelope.get("schema_version"),
        "event_type": envelope.get("type"),
    }


async def test_the_published_scenario_passes_on_the_wire() -> None:
    scenarios = load("nnrp/openai-compatible-e2e.json")["scenarios"]
    (scenario,) = (one for one in scenarios if one["transport"] == "websocket")
    async with serving(NnrpApp(Door(Scripted(steady)))) as url, raw(url) as socket:
        await begin(socket)
        metadata, packed = profile.write_submit(1, request())
        sent = wire.encode(MessageType.FRAME_SUBMIT, metadata, packed, session_id=1, frame_id=1)
        await socket.send(sent)
        packets = {"REQUEST": wire.decode(sent)}
        while "RESULT_PUSH" not in packets:
            async with asyncio.timeout(scenario["steps"][1]["timeout_ms"] / 1000):
                packet = await received(socket)
            assert packet.type.name in scenario["expect"]["allowed_frames"]
            packets.setdefault(packet.type.name, packet)
    assert list(packets) == scenario["expect"]["frames"]
    for invariant in scenario["expect"]["frame_payload_invariants"]:
        told = told_of(packets[invariant["frame"]])
        assert {name: told[name] for name in invariant["fields"]} == invariant["fields"]


# -- the independent client -----------------------------------------------------------------------------


async def test_an_independent_client_cancels_and_goes_on() -> None:
    endless = Endless()

    async def script(asked: Object) -> AsyncGenerator[Object]:
        source = endless(asked) if asked["model"] == "endless" else steady(asked)
        try:
            async for one in source:
                yield one
        finally:
            await source.aclose()

    def drive(url: str) -> tuple[list[Object], list[Object]]:
        with native(url) as connection:
            session = asyncio.run(connection.open_session())
            operation = native_submit(session, request(model="endless"), 1)
            cancelled = native_events(session, 1, first=lambda: connection.cancel_operation(operation))[1]
            native_submit(session, request(), 2)
            return cancelled, native_events(session, 1)[2]

    async with serving(NnrpApp(Door(Scripted(script)))) as url:
        cancelled, after = await asyncio.to_thread(drive, url)
        async with asyncio.timeout(1):
            await endless.closed.wait()
    assert cancelled[-1] == {"type": "drop", "reason": DropReason.PEER_CANCELLED}
    assert after[-1]["body"]["choices"][0]["message"]["content"] == "Hello"


def request(**changes: Any) -> Object:
    return {
        "schema_version": "openai-compatible/1",
        "operation": "chat.completions.create",
        "body": body(**changes),
    }


async def test_an_independent_client_runs_48_operations_over_12_sessions_at_once() -> None:
    gate, waiting = asyncio.Event(), 0

    async def script(asked: Object) -> AsyncGenerator[Object]:
        nonlocal waiting
        yield text(asked["messages"][0]["content"])
        waiting += 1
        if waiting == 48:
            gate.set()
        # None goes on before all are under way.
        await gate.wait()
        yield text("!", finish_reason="stop")

    def drive(url: str) -> dict[tuple[int, int], list[Object]]:
        with native(url) as connection, ThreadPoolExecutor(12) as threads:
            sessions = [asyncio.run(connection.open_session()) for _ in range(12)]

            def one(number: int) -> dict[tuple[int, int], list[Object]]:
                session = sessions[number]
                for frame in range(1, 5):
                    said = [{"role": "user", "content": f"{number}-{frame}"}]
                    native_submit(session, request(messages=said), frame)
                found = native_events(session, 4)
                return {(number, frame): events for frame, events in found.items()}

            return {key: events for part in threads.map(one, range(12)) for key, events in part.items()}

    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(64))
    async with serving(NnrpApp(Door(Scripted(script)))) as url:
        found = await asyncio.to_thread(drive, url)
    assert set(found) == {(number, frame) for number in range(12) for frame in range(1, 5)}
    for (number, frame), events in found.items():
        check_events(events)
        assert events[-1]["body"]["choices"][0]["message"]["content"] == f"{number}-{frame}!"


async def test_an_independent_clients_deadline_reaches_the_operation() -> None:
    endless = Endless()

    def drive(url: str) -> Any:
        with native(url) as connection:
            session = asyncio.run(connection.open_session())
            # Whoever is first: the client gives up, or hears from the server that the time is over.
            try:
                late = session.submit_and_poll_result(native_request(request(), 1), timeout_ms=300)
            except TimeoutError:
                pass
            else:
                assert late.event.value.metadata.value.status_code == Status.TIMEOUT
            return session.submit_and_poll_result(
                native_request({**request(), "nnrp": {"cancel_after_events": 1}}, 2), timeout_ms=5_000
            )

    async with serving(NnrpApp(Door(Scripted(endless)))) as url:
        result = await asyncio.to_thread(drive, url)
        async with asyncio.timeout(1):
            await endless.closed.wait()
    assert result.event.value.metadata.value.status_code == Status.CANCELLED


# -- answers --------------------------------------------------------------------------------------------


async def test_a_request_that_is_not_streamed_gets_the_whole_answer_alone() -> None:
    async with talking(steady) as (client, door, _):
        session = await client.open_session()
        running = await session.start(body(stream=False))
        (event,) = [event async for event in running.events()]
        assert event["body"]["object"] == "chat.completion"
        assert event["body"]["choices"][0]["message"]["content"] == "Hello"
        assert event["body"]["usage"] == USAGE
        await session.close()
    assert door.charged == [(5, 2)]


async def test_usage_and_diagnostics_come_where_they_are_asked_for() -> None:
    async with talking(steady) as (client, _, _):
        session = await client.open_session()
        running = await session.start(body())
        assert [event["type"] async for event in running.events()] == [
            "response.output_text.delta",
            "response.output_text.delta",
            "response.completed",
        ]
        running = await session.start(
            body(stream_options={"include_usage": True}), request_id="r", policy={"diagnostics": True}
        )
        events = [event async for event in running.events()]
    assert events[0]["diagnostics"] == {
        "operation": "chat.completions.create",
        "request_id": "r",
        "model": "m",
        "provider": "scripted",
    }
    assert events[1]["openai_chunk"] == TEXT[0]
    assert events[-2] == {"type": "response.usage", "usage": USAGE}


async def test_a_tool_call_that_the_service_leaves_open_ends_in_an_error() -> None:
    async def script(_: Object) -> AsyncGenerator[Object]:
        yield TOOLS[0]
        raise TextEngineError("It broke.")

    async with talking(script) as (client, door, _):
        running = await (await client.open_session()).start(body())
        events = [event async for event in running.events()]
    check_events(events)
    assert [event["type"] for event in events] == [
        "response.tool_call.started",
        "response.tool_call.error",
        "response.error",
    ]
    assert events[-1]["error"] == {"type": "server_error", "code": "backend_error", "message": "It broke."}
    assert len(door.charged) == 1


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (TextEngineError("x"), "backend_error", Status.FAILED),
        (TextEngineError("x", code="rate_limit_exceeded"), "backend_overload", Status.OVERLOAD),
        (TextEngineError("x", code="text_engine_timeout"), "request_timeout", Status.TIMEOUT),
        (TextEngineError("x", code="invalid_type", param="tools"), "invalid_body", Status.FAILED),
        (RuntimeError("a fault of ours"), "backend_error", Status.FAILED),
        (None, "missing_terminal_event", Status.FAILED),
    ],
)
async def test_a_failure_of_the_engine_has_a_code_and_a_status(
    error: Exception | None, code: str, status: Status
) -> None:
    async def script(_: Object) -> AsyncGenerator[Object]:
        if error is not None:
            raise error
        yield chunk()

    async with serving(NnrpApp(Door(Scripted(script)))) as url, raw(url) as socket:
        await begin(socket)
        await submit(socket, body())
        packet = await received(socket)
    assert packet.type is MessageType.RESULT_PUSH
    metadata: Any = packet.metadata
    event = profile.read_result(metadata, packet.body)
    assert event is not None
    assert (event["error"]["code"], metadata.status_code) == (code, status)
    assert "fault of ours" not in event["error"]["message"]


# -- cancellation and time ------------------------------------------------------------------------------


async def test_a_cancel_ends_the_request_behind_within_a_second() -> None:
    async with (
        chat_server(script=sse(text("Once ")), hold=asyncio.Event()) as chat,
        serving(NnrpApp(Door(remote(chat.base_url)))) as url,
        connect(url, TOKEN) as client,
    ):
        session = await client.open_session()
        running = await session.start(body())
        events = running.events()
        assert (await anext(events))["delta"] == "Once "
        began = time.monotonic()
        await running.cancel()
        with pytest.raises(Dropped) as caught:
            await anext(events)
        assert caught.value.reason == DropReason.PEER_CANCELLED
        async with asyncio.timeout(1):
            await chat.left.wait()
        assert time.monotonic() - began < 1


async def test_a_client_that_goes_away_ends_its_requests() -> None:
    endless = Endless()
    async with talking(endless) as (client, door, _):
        running = await (await client.open_session()).start(body())
        await anext(running.events())
        await client._socket.close()
        async with asyncio.timeout(2):
            await endless.closed.wait()
            while not door.charged:
                await asyncio.sleep(0.01)
    assert door.charged[0][1] > 0


async def test_enough_events_cancel_an_operation_from_this_side() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _):
        running = await (await client.open_session()).start(body(), policy={"cancel_after_events": 3})
        events = [event async for event in running.events()]
        async with asyncio.timeout(1):
            await endless.closed.wait()
    assert [event["type"] for event in events[:-1]] == ["response.output_text.delta"] * 3
    assert events[-1] == {"type": "response.cancelled", "reason": "cancel_after_events"}


async def test_a_time_out_ends_an_operation() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _):
        began = time.monotonic()
        running = await (await client.open_session()).start(body(), policy={"timeout_ms": 200})
        event = await running.result()
        assert 0.2 <= time.monotonic() - began < 2
        assert event["error"]["code"] == "request_timeout"
        assert endless.closed.is_set()


async def test_a_deadline_ends_an_operation() -> None:
    endless = Endless()
    async with serving(NnrpApp(Door(Scripted(endless)))) as url, raw(url) as socket:
        await begin(socket)
        await submit(socket, body())
        assert (await received(socket)).type is MessageType.PARTIAL_RESULT
        deadline = Scheduling(operation_id=1, deadline_unix_ms=int(time.time() * 1000))
        await socket.send(wire.encode(MessageType.DEADLINE, deadline, session_id=1, frame_id=1))
        while (packet := await received(socket)).type is MessageType.PARTIAL_RESULT:
            pass
    metadata: Any = packet.metadata
    assert metadata.status_code == Status.TIMEOUT


# -- limits and neighbours ------------------------------------------------------------------------------


async def test_limits_hold_and_their_neighbours_do_not_notice() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _):
        session, other = await client.open_session(max_operations=2), await client.open_session()
        running = [await session.start(body()) for _ in range(2)]
        refused = await (await session.start(body())).result()
        assert refused["error"]["code"] == "adapter_operation_limit"
        beside = await other.start(body(), policy={"cancel_after_events": 2})
        assert (await beside.result())["type"] == "response.cancelled"
        for one in running:
            await one.cancel()
            with pytest.raises(Dropped):
                await one.result()


async def test_an_operation_waits_for_a_place_among_its_tokens_requests() -> None:
    endless = Endless()
    async with talking(endless, at_once=1) as (client, _, _):
        session = await client.open_session()
        first = await session.start(body())
        events = first.events()
        await anext(events)
        second = await session.start(body(), policy={"cancel_after_events": 1})
        await first.cancel()
        assert (await second.result())["type"] == "response.cancelled"


async def test_who_waits_too_long_for_a_place_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "QUEUE_S", 0.1)
    endless = Endless()
    async with talking(endless, at_once=1) as (client, _, _):
        session = await client.open_session()
        first = await session.start(body())
        await anext(first.events())
        second = await (await session.start(body())).result()
        assert second["error"]["code"] == "backend_overload"
        assert second["error"]["type"] == "rate_limit_error"


async def test_requests_a_minute_are_counted() -> None:
    async with talking(steady, per_minute=2) as (client, _, _):
        session = await client.open_session()
        kinds = [(await (await session.start(body())).result())["type"] for _ in range(3)]
    assert kinds == ["response.completed", "response.completed", "response.error"]


async def test_a_token_that_is_switched_off_opens_nothing_more() -> None:
    async with talking(steady) as (client, door, _):
        session = await client.open_session()
        assert (await (await session.start(body())).result())["type"] == "response.completed"
        door.holder = None
        running = await session.start(body())
        with pytest.raises((RemoteProtocolError, UpstreamClosed)):
            await running.result()


async def test_a_token_has_a_bounded_number_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "MAX_TOKEN_CONNECTIONS", 1)
    async with serving(NnrpApp(Door(Scripted(steady)))) as url:
        async with connect(url, TOKEN):
            with pytest.raises(UpstreamRefused, match="429"):
                async with connect(url, TOKEN):
                    pass
        async with asyncio.timeout(5):
            while True:
                try:
                    async with connect(url, TOKEN) as client:
                        await client.open_session()
                        break
                except UpstreamRefused:
                    await asyncio.sleep(0.01)


async def test_a_client_that_does_not_read_is_bounded_and_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "SEND_S", 0.5)
    made = 0

    async def flood(_: Object) -> AsyncGenerator[Object]:
        nonlocal made
        while True:
            made += 1
            yield text("x" * 10_000)
            await asyncio.sleep(0)

    app = NnrpApp(Door(Scripted(flood)))
    async with serving(app) as url, raw(url, max_queue=1) as socket:
        await begin(socket)
        for number in range(operations.MAX_OPERATIONS):
            if number % operations.MAX_SESSION_OPERATIONS == 0 and number:
                await socket.send(wire.encode(MessageType.SESSION_OPEN, WIDE))
            session = number // operations.MAX_SESSION_OPERATIONS + 1
            await submit(socket, body(), number + 1, session=session, nnrp={"diagnostics": True})
        socket.transport.pause_reading()
        async with asyncio.timeout(10):
            while app.connections:
                await asyncio.sleep(0.05)
        socket.transport.abort()
    # The operations would bring 60 MB; the sockets of both sides hold some, and we a megabyte.
    assert 1_000_000 < made * 20_000 < 20_000_000


# -- faults ---------------------------------------------------------------------------------------------


WIDE = layouts.SessionOpen(max_in_flight_operations=99)


@asynccontextmanager
async def raw(url: str, **options: Any) -> AsyncIterator[websockets.ClientConnection]:
    async with websockets.connect(
        f"{url}?token={TOKEN}", compression=None, max_size=None, **options
    ) as socket:
        yield socket


async def received(socket: websockets.ClientConnection) -> wire.Packet:
    async with asyncio.timeout(5):
        data = await socket.recv()
    assert isinstance(data, bytes)
    return wire.decode(data)


async def begin(socket: websockets.ClientConnection) -> None:
    await socket.send(wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello()))
    assert (await received(socket)).type is MessageType.SERVER_HELLO_ACK
    await socket.send(wire.encode(MessageType.SESSION_OPEN, WIDE))
    assert (await received(socket)).header.session_id == 1


async def submit(
    socket: websockets.ClientConnection, asked: Object, number: int = 1, session: int = 1, **fields: Any
) -> None:
    envelope = {**request(), "body": asked, **fields}
    metadata, packed = profile.write_submit(number, envelope)
    await socket.send(
        wire.encode(MessageType.FRAME_SUBMIT, metadata, packed, session_id=session, frame_id=number)
    )


async def test_malformed_packets_get_an_error_and_harm_nobody() -> None:
    endless = Endless()
    async with (
        serving(NnrpApp(Door(Scripted(endless)))) as url,
        raw(url) as socket,
        connect(url, TOKEN) as neighbour,
    ):
        beside = (await (await neighbour.open_session()).start(body())).events()
        await anext(beside)
        await begin(socket)
        await submit(socket, body())
        packet = wire.encode(MessageType.PING)
        for bad in (b"", packet[:-1], b"X" + packet[1:], packet + b"?", "text", bytes(5 * 1024 * 1024)):
            await socket.send(bad)
            while (answer := await received(socket)).type is not MessageType.ERROR:
                assert answer.type is MessageType.PARTIAL_RESULT
            assert answer.body
        await socket.send(packet)
        while (answer := await received(socket)).type is not MessageType.PONG:
            assert answer.type is MessageType.PARTIAL_RESULT
        assert (await anext(beside))["delta"] == "word "


async def test_a_client_that_never_says_hello_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "HELLO_S", 0.1)
    async with serving(NnrpApp(Door(Scripted(steady)))) as url, raw(url) as socket:
        assert (await received(socket)).type is MessageType.ERROR
        with pytest.raises(websockets.ConnectionClosed) as caught:
            await received(socket)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4002


@pytest.mark.parametrize("query", ["", "?token=va_other"])
async def test_nobody_comes_in_without_a_token(query: str) -> None:
    async with serving(NnrpApp(Door(Scripted(steady)))) as url:
        with pytest.raises(websockets.InvalidStatus) as caught:
            async with websockets.connect(url + query):
                pass
    assert caught.value.response.status_code == 401
    assert b"not_authorized" in (caught.value.response.body or b"")


async def test_a_server_that_cannot_answer_by_http_closes_with_a_code() -> None:
    # Daphne has no extension for it.
    socket = WebsocketCommunicator(NnrpApp(Door(Scripted(steady))), "/nnrp")
    assert await socket.connect() == (False, 4001)


async def test_a_stopping_server_lets_operations_end_and_says_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer, "DRAIN_S", 0.3)
    endless = Endless()

    async def script(asked: Object) -> AsyncGenerator[Object]:
        if asked["model"] == "endless":
            async for one in endless(asked):
                yield one
        yield text("a")
        await asyncio.sleep(0.1)
        yield text("b", finish_reason="stop")

    async with talking(script) as (client, _, app):
        session = await client.open_session()
        short, long = await session.start(body()), await session.start(body(model="endless"))
        ending_soon = short.events()
        await anext(ending_soon)
        draining = asyncio.create_task(app.drain())
        await asyncio.sleep(0)
        late = await (await session.start(body())).result()
        assert late["error"]["code"] == "backend_overload"
        assert [event["type"] async for event in ending_soon][-1] == "response.completed"
        with pytest.raises(Dropped) as caught:
            await long.result()
        assert caught.value.reason == DropReason.TRANSPORT_CLOSED
        await draining
        with pytest.raises(UpstreamClosed, match="server_stopping"):
            await client.open_session()


async def test_broken_packets_raise_nothing_and_disturb_nobody() -> None:
    found = await fuzz(1.0, seed=7)
    assert found["problems"] == []
    assert found["seen"]["undisturbed"] > 0
    assert found["seen"]["ERROR"] > 0
    assert found["seen"]["RESULT_PUSH"] > 0


def test_the_limits_in_the_readme_are_those_in_force() -> None:
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text()
    rows = {
        "connections of one process / of one token": (
            f"{consumer.MAX_CONNECTIONS} / {consumer.MAX_TOKEN_CONNECTIONS}"
        ),
        "sessions of one connection": f"{operations.MAX_SESSIONS}",
        "operations at once, of one connection / of one session": (
            f"{operations.MAX_OPERATIONS} / {operations.MAX_SESSION_OPERATIONS}"
        ),
        "wait of an operation whose token has as many requests under way as it may": f"{work.QUEUE_S:g} s",
        "body of a submit / of any packet": (
            f"{profile.MAX_REQUEST_BYTES // 1024**2} MiB / {wire.MAX_BODY_BYTES // 1024**2} MiB"
        ),
        "text of one answer": f"{MAX_REPLY_CHARS:,} characters",
        "longest `timeout_ms` / time of an operation that has none": (
            f"{profile.MAX_TIMEOUT_MS // 1000} s / {OPERATION_S:g} s"
        ),
        f"packets waiting for a slow reader, who is sent away after {consumer.SEND_S:g} s": (
            f"{outbox.MAX_PACKETS}, or {outbox.MAX_BYTES // 1024**2} MiB"
        ),
        "faulty packets until the connection is closed": f"{MAX_FAULTS}",
    }
    for what, number in rows.items():
        assert f"| {what} | {number} |" in readme
