"""``/v1/events`` over live sockets, read by an SSE client that others wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from httpx_sse import aconnect_sse

from tests.parts.chat_server import chat_server, sse, text
from tests.parts.clock import in_its_time, pass_time, still_time, until_still
from tests.parts.contracts import FOLDER, load
from tests.parts.nnrp_parts import (
    TEXT,
    TOKEN,
    TOOLS,
    USAGE,
    Door,
    Endless,
    Scripted,
    check_events,
    check_recipe,
    envelope_of,
    remote,
    request,
    serving,
    steady,
)
from tests.parts.waits import PATIENCE_S
from voiceapp.errors import TextEngineError
from voiceapp.nnrp import events_http, work
from voiceapp.nnrp.consumer import DRAIN_S
from voiceapp.nnrp.events_http import EventsApp
from voiceapp.nnrp.profile import MAX_REQUEST_BYTES
from voiceapp.records.models import TokenUsage
from voiceapp.serving import exchange
from voiceapp.types import JsonObject

RECIPES = sorted(path.name for path in Path(FOLDER, "nnrp").glob("chat-*.json"))
PATH = events_http.PATH


@asynccontextmanager
async def client_of(url: str, token: str = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    base = url.replace("ws://", "http://").removesuffix("/nnrp")
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=base, headers=headers, timeout=PATIENCE_S, trust_env=False, verify=False
    ) as client:
        yield client


@asynccontextmanager
async def talking(script: Any, **door: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Door, EventsApp]]:
    """A server with a scripted engine, and a client of it."""
    backing = Door(Scripted(script), **door)
    app = EventsApp(backing)
    async with serving(app) as url, client_of(url) as client:
        yield client, backing, app


async def told(client: httpx.AsyncClient, envelope: JsonObject) -> list[JsonObject]:
    """Return all events of an operation, each checked against the contract and its SSE name."""
    found = [event async for event in each(client, envelope)]
    check_events(found)
    return found


async def each(client: httpx.AsyncClient, envelope: JsonObject) -> AsyncGenerator[JsonObject]:
    async with aconnect_sse(client, "POST", PATH, json=envelope) as source:
        assert source.response.status_code == 200, await source.response.aread()
        async for event in source.aiter_sse():
            fields = json.loads(event.data)
            assert event.event == fields["type"]
            yield fields


# -- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
async def test_a_published_recipe_is_followed_over_sse_as_well(name: str) -> None:
    recipe = load(f"nnrp/{name}")
    envelope = envelope_of(recipe)
    status = "500 Internal Server Error" if name == "chat-backend-error.json" else "200 OK"
    script = TOOLS if envelope["body"].get("tools") else TEXT
    async with (
        chat_server(script=sse(*script, "[DONE]"), status=status) as chat,
        serving(EventsApp(Door(remote(chat.base_url)))) as url,
        client_of(url) as client,
    ):
        check_recipe(recipe, await told(client, envelope))


async def test_the_events_of_a_tool_call_come_in_order_and_are_charged_for() -> None:
    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
        for one in TOOLS:
            yield one

    async with talking(script) as (client, door, app):
        events = await told(client, request(stream_options={"include_usage": True}))
    assert [event["type"] for event in events] == [
        "response.tool_call.started",
        "response.tool_call.delta",
        "response.tool_call.delta",
        "response.tool_call.completed",
        "response.usage",
        "response.completed",
    ]
    assert events[3]["arguments"] == '{"q":1}'
    assert {event["item_id"] for event in events[:4]} == {events[0]["item_id"]}
    assert door.charged == [(USAGE["prompt_tokens"], USAGE["completion_tokens"])]
    assert app.under_way == 0


async def test_a_request_that_is_not_streamed_gets_its_terminal_event_alone() -> None:
    async with talking(steady) as (client, _, _):
        (event,) = await told(client, request(stream=False))
    assert event["body"]["choices"][0]["message"]["content"] == "Hello"


async def test_diagnostics_come_where_they_are_asked_for() -> None:
    async with talking(steady) as (client, _, _):
        asked = {**request(), "request_id": "r", "nnrp": {"diagnostics": True}}
        events = await told(client, asked)
    assert events[0]["type"] == "response.diagnostics"
    assert events[0]["diagnostics"]["request_id"] == "r"
    assert events[1]["openai_chunk"] == TEXT[0]


async def test_events_arrive_while_the_answer_goes_on() -> None:
    gate = asyncio.Event()

    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
        yield text("First")
        await gate.wait()
        yield text(" second", finish_reason="stop")

    async with talking(script) as (client, _, _), asyncio.timeout(PATIENCE_S):
        found = []
        async for event in each(client, request()):
            found.append(event)
            # It could never be set, were the first event held back until the end.
            gate.set()
    assert [event.get("delta") for event in found] == ["First", " second", None]


async def test_text_that_looks_like_the_streams_own_lines_stays_text() -> None:
    odd = "a\n\ndata: {}\r\nevent: response.completed\n\u2028: ping 😀"

    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
        yield text(odd, finish_reason="stop")

    async with talking(script) as (client, _, _):
        events = await told(client, request())
    assert len(events) == 2
    assert events[0]["delta"] == odd


# -- ends -------------------------------------------------------------------------------------------------


async def test_the_work_ends_when_the_client_leaves_and_what_was_said_is_charged() -> None:
    endless = Endless()
    async with talking(endless) as (client, door, app), asyncio.timeout(PATIENCE_S):
        events = each(client, request())
        assert (await anext(events))["delta"] == "word "
        await events.aclose()
        await endless.closed.wait()
        while app.under_way:
            await asyncio.sleep(0.01)
    assert len(door.charged) == 1
    assert door.charged[0][1] > 0


async def test_a_reader_who_does_not_read_stops_the_service_behind() -> None:
    endless = Endless(pause_s=0)

    async def bulky(asked: JsonObject) -> AsyncGenerator[JsonObject]:
        # Diagnostics hand on the whole chunk: few fill what sockets hold.
        async with aclosing(endless(asked)) as chunks:
            async for one in chunks:
                yield {**one, "padding": "x" * 50_000}

    async with talking(bulky) as (client, _, app), asyncio.timeout(PATIENCE_S):
        asked = {**request(), "nnrp": {"diagnostics": True}}
        async with client.stream("POST", PATH, json=asked) as response:
            assert response.status_code == 200
            await until_still(lambda: endless.sent)
        await endless.closed.wait()
        while app.under_way:
            await asyncio.sleep(0.01)


async def test_time_outs_and_failures_are_told_by_the_terminal_event() -> None:
    async def script(asked: JsonObject) -> AsyncGenerator[JsonObject]:
        yield TOOLS[0]
        if asked["model"] == "slow":
            await asyncio.Event().wait()
        raise TextEngineError("It broke.")

    async with talking(script) as (client, _, app):
        events = each(client, {**request(model="slow"), "nnrp": {"timeout_ms": 60_000}})
        late = [await anext(events)]
        await pass_time(30)
        assert app.under_way == 1
        await pass_time(31)
        late += [event async for event in events]
        check_events(late)
        broken = await told(client, request())
    for found, code in ((late, "request_timeout"), (broken, "backend_error")):
        assert [event["type"] for event in found] == [
            "response.tool_call.started",
            "response.tool_call.error",
            "response.error",
        ]
        assert found[-1]["error"]["code"] == code


async def test_a_client_has_as_many_events_as_it_wants() -> None:
    endless = Endless()
    async with talking(endless) as (client, _, _), asyncio.timeout(PATIENCE_S):
        events = await told(client, {**request(), "nnrp": {"cancel_after_events": 3}})
        await endless.closed.wait()
    assert [event["type"] for event in events[3:]] == ["response.cancelled"]


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        ([], "invalid_submit_body"),
        ({}, "unsupported_schema_version"),
        ({**request(), "operation": "embeddings.create"}, "unsupported_operation"),
        ({**request(), "body": []}, "invalid_body"),
        (request(model=""), "missing_model"),
        (request(messages=[]), "missing_messages"),
        ({**request(), "request_id": ""}, "invalid_request_id"),
        ({**request(), "nnrp": {"timeout_ms": 0}}, "invalid_nnrp_policy"),
    ],
)
async def test_a_wrong_envelope_is_told_as_over_nnrp(envelope: Any, code: str) -> None:
    async with talking(steady) as (client, door, _):
        (event,) = await told(client, envelope)
        assert (await told(client, request()))[-1]["type"] == "response.completed"
    assert (event["type"], event["error"]["code"]) == ("response.error", code)
    assert len(door.charged) == 1


async def test_what_is_wrong_before_there_is_an_envelope_is_an_http_status() -> None:
    async with talking(steady) as (client, door, _):
        for content, status, code in (
            (b"{", 400, "invalid_json"),
            (b"\xff", 400, "invalid_json"),
            (b"[" * 100_000, 400, "invalid_json"),
            (b" " * (MAX_REQUEST_BYTES + 1), 413, "body_too_large"),
        ):
            answer = await client.post(PATH, content=content)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
        answer = await client.get(PATH)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        door.holder = None
        answer = await client.post(PATH, json=request())
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert door.charged == []


async def test_a_token_over_its_quota_is_told_so() -> None:
    async with talking(steady, per_minute=1) as (client, _, _):
        await told(client, request())
        (event,) = await told(client, request())
    assert (event["error"]["code"], event["error"]["type"]) == ("backend_overload", "rate_limit_error")


async def test_requests_wait_for_their_turn_but_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_http, "MAX_WAITING", 1)
    monkeypatch.setattr(work, "_LOOK_S", 0.005)
    gate, running = asyncio.Event(), 0

    async def script(_: JsonObject) -> AsyncGenerator[JsonObject]:
        nonlocal running
        running += 1
        await gate.wait()
        running -= 1
        yield text("done", finish_reason="stop")

    async with talking(script, at_once=1) as (client, _, app), asyncio.timeout(PATIENCE_S):
        both = [asyncio.create_task(told(client, request())) for _ in range(2)]
        while app.under_way < 2 or not running:
            await asyncio.sleep(0.005)
        assert running == 1
        (refused,) = await told(client, request())
        gate.set()
        answers = await asyncio.gather(*both)
    assert refused["error"]["code"] == "adapter_operation_limit"
    assert [events[-1]["type"] for events in answers] == ["response.completed"] * 2


async def test_every_operation_has_its_end_when_the_server_stops() -> None:
    endless = Endless(pause_s=1)
    async with talking(endless) as (client, door, app), asyncio.timeout(PATIENCE_S):
        events = each(client, request())
        found = [await anext(events)]
        with still_time():
            stopping = asyncio.create_task(app.drain())
            # What ends other answers earlier leaves these alone.
            exchange.exchanges().stop_soon()
            await pass_time(exchange.STOP_S)
            (refused,) = await told(client, request())
            assert not stopping.done()
            await pass_time(DRAIN_S - exchange.STOP_S)
            await in_its_time(stopping)
            assert app.under_way == 0
        found += [event async for event in events]
    check_events(found)
    assert refused["error"] == {
        "type": "server_error",
        "code": "backend_overload",
        "message": "The server is stopping.",
    }
    assert found[-1]["error"]["code"] == "request_timeout"
    assert len(door.charged) == 1


# -- the whole product ------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_is_followed_by_the_product_as_it_comes(
    server: str, token: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain answers; a failure behind it can only be ordered."""
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, engine_faults="1"))
    recipe = load(f"nnrp/{name}")
    async with client_of(server, token) as client:
        check_recipe(recipe, await told(client, envelope_of(recipe)))


@pytest.mark.django_db(transaction=True)
async def test_the_brain_answers_and_the_token_pays(server: str, token: str) -> None:
    async with client_of(server, token) as client:
        events = await told(
            client, request(model="default", messages=[{"role": "user", "content": "Add 2 and 3"}])
        )
    body = events[-1]["body"]
    assert "5" in body["choices"][0]["message"]["content"]
    usage = await TokenUsage.objects.aget()
    assert (usage.tokens_in, usage.tokens_out) == (
        body["usage"]["prompt_tokens"],
        body["usage"]["completion_tokens"],
    )
    async with client_of(server, "va_wrong") as stranger:
        assert (await stranger.post(PATH, json=request())).status_code == 401
