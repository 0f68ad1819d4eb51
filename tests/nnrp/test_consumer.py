"""``/nnrp`` over live sockets: recipes, an independent client, cancellation, limits, faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nnrp.native import NativeInvalidStateError

from tests.parts.chat_server import chat_server, chunk, sse, text
from tests.parts.contracts import FOLDER, load
from tests.parts.nnrp_parts import (
    TEXT,
    TOKEN,
    TOOLS,
    USAGE,
    Door,
    Endless,
    Scripted,
    body,
    check_events,
    check_recipe,
    envelope_of,
    native,
    native_events,
    native_request,
    native_submit,
    nnrp_app,
    remote,
    request,
    serving,
    steady,
)
from tests.parts.nnrp_talk import begin, raw, received, submit, talking
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.nnrp import connect
from voiceapp.errors import TextEngineError
from voiceapp.nnrp import profile, wire
from voiceapp.nnrp.data_layouts import DropReason, Status
from voiceapp.nnrp.wire import MessageType
from voiceapp.types import JsonObject

RECIPES = sorted(path.name for path in Path(FOLDER, "nnrp").glob("chat-*.json"))


def test_the_recipes_are_at_hand() -> None:
    load("nnrp/chat-streaming-text.json")
    assert len(RECIPES) == 8


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
        serving(nnrp_app(Door(remote(chat.base_url)))) as url,
    ):
        if peer == "own":
            async with connect(url, TOKEN) as client:
                running = await (await client.open_session()).submit(envelope)
                events = [event async for event in running.events()]
        else:
            events = await asyncio.to_thread(independently, url, envelope)
    check_recipe(recipe, events)


def independently(url: str, envelope: JsonObject) -> list[JsonObject]:
    with native(url) as connection:
        session = asyncio.run(connection.open_session())
        native_submit(session, envelope, 1)
        return native_events(session, 1)[1]


def told_of(packet: wire.Packet) -> JsonObject:
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
    async with serving(nnrp_app(Door(Scripted(steady)))) as url, raw(url) as socket:
        await begin(socket)
        metadata, packed = profile.write_submit(1, request())
        sent = wire.encode(MessageType.FRAME_SUBMIT, metadata, packed, session_id=1, frame_id=1)
        await socket.send(sent)
        packets = {"REQUEST": wire.decode(sent)}
        while "RESULT_PUSH" not in packets:
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

    async def script(asked: JsonObject) -> AsyncGenerator[JsonObject]:
        source = endless(asked) if asked["model"] == "endless" else steady(asked)
        try:
            async for one in source:
                yield one
        finally:
            await source.aclose()

    def drive(url: str) -> tuple[list[JsonObject], list[JsonObject]]:
        with native(url) as connection:
            session = asyncio.run(connection.open_session())
            operation = native_submit(session, request(model="endless"), 1)
            cancelled = native_events(session, 1, first=lambda: connection.cancel_operation(operation))[1]
            native_submit(session, request(), 2)
            return cancelled, native_events(session, 1)[2]

    async with serving(nnrp_app(Door(Scripted(script)))) as url:
        cancelled, after = await asyncio.to_thread(drive, url)
        async with asyncio.timeout(PATIENCE_S):
            await endless.closed.wait()
    assert cancelled[-1] == {"type": "drop", "reason": DropReason.PEER_CANCELLED}
    assert after[-1]["body"]["choices"][0]["message"]["content"] == "Hello"


async def test_an_independent_client_runs_48_operations_over_12_sessions_at_once() -> None:
    gate, waiting = asyncio.Event(), 0

    async def script(asked: JsonObject) -> AsyncGenerator[JsonObject]:
        nonlocal waiting
        yield text(asked["messages"][0]["content"])
        waiting += 1
        if waiting == 48:
            gate.set()
        # None goes on before all are under way.
        await gate.wait()
        yield text("!", finish_reason="stop")

    def drive(url: str) -> dict[tuple[int, int], list[JsonObject]]:
        with native(url) as connection, ThreadPoolExecutor(12) as threads:
            sessions = [asyncio.run(connection.open_session()) for _ in range(12)]

            def one(number: int) -> dict[tuple[int, int], list[JsonObject]]:
                session = sessions[number]
                for frame in range(1, 5):
                    said = [{"role": "user", "content": f"{number}-{frame}"}]
                    native_submit(session, request(messages=said), frame)
                found = native_events(session, 4)
                return {(number, frame): events for frame, events in found.items()}

            return {key: events for part in threads.map(one, range(12)) for key, events in part.items()}

    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(64))
    async with serving(nnrp_app(Door(Scripted(script)))) as url:
        found = await asyncio.to_thread(drive, url)
    assert set(found) == {(number, frame) for number in range(12) for frame in range(1, 5)}
    for (number, frame), events in found.items():
        check_events(events)
        assert events[-1]["body"]["choices"][0]["message"]["content"] == f"{number}-{frame}!"


async def test_an_independent_clients_deadline_reaches_the_operation() -> None:
    endless = Endless()

    def drive(url: str) -> Any:
        late: Any = None
        # The client's library cannot always close in order what its own deadline has cut.
        with suppress(NativeInvalidStateError), native(url) as connection:
            session = asyncio.run(connection.open_session())
            # Whoever is first: the client gives up, or hears from the server that the time is over.
            with suppress(TimeoutError):
                late = session.submit_and_poll_result(native_request(request(), 1), timeout_ms=300)
        assert late is None or late.event.value.metadata.value.status_code == Status.TIMEOUT
        # On a connection of its own: the client's library mixes up what comes after its own deadline.
        with native(url) as connection:
            session = asyncio.run(connection.open_session())
            return session.submit_and_poll_result(
                native_request({**request(), "nnrp": {"cancel_after_events": 1}}, 2),
                timeout_ms=int(PATIENCE_S * 1000),
            )

    async with serving(nnrp_app(Door(Scripted(endless)))) as url:
        result = await asyncio.to_thread(drive, url)
        async with asyncio.timeout(PATIENCE_S):
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
    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
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
    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
        if error is not None:
            raise error
        yield chunk()

    async with serving(nnrp_app(Door(Scripted(script)))) as url, raw(url) as socket:
        await begin(socket)
        await submit(socket, body())
        packet = await received(socket)
    assert packet.type is MessageType.RESULT_PUSH
    metadata: Any = packet.metadata
    event = profile.read_result(metadata, packet.body)
    assert event is not None
    assert (event["error"]["code"], metadata.status_code) == (code, status)
    assert "fault of ours" not in event["error"]["message"]
