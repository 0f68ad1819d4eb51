"""A typed turn, a tool's turn and a stopped answer: the same for the page, whichever service it is."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.parts.engine_parts import loaded
from tests.parts.engine_server import engine_server
from tests.parts.page import Page, call_service
from tests.parts.scripted import Service, service
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant
from voiceapp.tools.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = {"output_modalities": ["text"]}
WEATHER = '{"city":"Paris"}'


class Sky:
    """A tool that answers once the test lets it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.tools = ToolRegistry()
        self.tools.add(self.get_weather)

    async def get_weather(self, city: str) -> dict[str, str]:
        """Get the weather of a city."""
        self.asked.set()
        await self.gate.wait()
        return {"sky": "blue"}


async def say(page: Page, words: str) -> None:
    part = {"type": "input_text", "text": words}
    item = {"id": f"item_{words[:4].strip()}", "type": "message", "role": "user", "content": [part]}
    await page.send({"type": "conversation.item.create", "item": item})
    await page.send({"type": "response.create", "response": TEXT})


async def converse(page: Page, sky: Sky) -> None:
    """The page's part; it is the same for every service."""
    await say(page, "What is seven times six?")
    await page.until("response.done")
    await say(page, "Weather in Paris?")
    await page.until("response.done")
    await sky.asked.wait()
    sky.gate.set()
    await page.until("response.done")
    await page.send({"type": "conversation.item.delete", "item_id": "item_What"})
    await page.until("conversation.item.deleted")


# -- the scripted services ---


async def hear(upstream: Service) -> None:
    """Echo what the client adds, and wait until it asks for an answer."""
    item = (await upstream.expect("conversation.item.create"))["item"]
    status = {} if item["type"] == "function_call_output" else {"status": "completed"}
    echoed = {"id": "item_out", **item, **status}
    await upstream.send({"type": "conversation.item.added", "previous_item_id": None, "item": echoed})
    if upstream.dialect is Dialect.GA:
        await upstream.send({"type": "conversation.item.done", "previous_item_id": None, "item": echoed})
    await upstream.expect("response.create")


async def tell(upstream: Service, number: int, words: str) -> None:
    response, item_id = f"resp_{number}", f"item_a{number}"
    item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    done = {**item, "status": "completed", "content": [{"type": "output_text", "text": words}]}
    where = {"response_id": response, "output_index": 0}
    part = {**where, "item_id": item_id, "content_index": 0}
    await upstream.send(
        {"type": "response.created", "response": {"id": response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", **where, "item": item},
        {"type": "conversation.item.added", "previous_item_id": None, "item": item},
        {"type": "response.content_part.added", **part, "part": {"type": "text", "text": ""}},
        {"type": "response.output_text.delta", **part, "delta": words},
        {"type": "response.output_text.done", **part, "text": words},
        {"type": "response.content_part.done", **part, "part": {"type": "text", "text": words}},
    )
    await end(upstream, response, done)


async def call(upstream: Service, number: int) -> None:
    response, item_id = f"resp_{number}", f"item_a{number}"
    item = {"id": item_id, "type": "function_call", "status": "in_progress", "call_id": "call_1",
            "name": "get_weather", "arguments": ""}  # fmt: skip
    where = {"response_id": response, "output_index": 0}
    part = {**where, "item_id": item_id, "call_id": "call_1"}
    await upstream.send(
        {"type": "response.created", "response": {"id": response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", **where, "item": item},
        {"type": "conversation.item.added", "previous_item_id": None, "item": item},
        {"type": "response.function_call_arguments.delta", **part, "delta": WEATHER},
        {"type": "response.function_call_arguments.done", **part, "name": "get_weather",
         "arguments": WEATHER},
    )  # fmt: skip
    await end(upstream, response, {**item, "status": "completed", "arguments": WEATHER})


async def end(upstream: Service, response: str, item: dict[str, Any]) -> None:
    if upstream.dialect is Dialect.GA:
        await upstream.send({"type": "conversation.item.done", "previous_item_id": None, "item": item})
    final = {"id": response, "status": "completed", "status_details": None, "output": [item]}
    await upstream.send(
        {"type": "response.output_item.done", "response_id": response, "output_index": 0, "item": item},
        {"type": "response.done", "response": final},
    )


async def play(upstream: Service) -> None:
    await hear(upstream)
    await tell(upstream, 1, "That is 42.")
    await hear(upstream)
    await call(upstream, 2)
    await hear(upstream)
    # What follows a tool is as the session speaks: aloud.
    await upstream.begin_answer("resp_3", "item_a3")
    await upstream.say("The sky is blue.", b"\1\0" * 4800, "resp_3", "item_a3")
    await upstream.end_answer("The sky is blue.", "resp_3", "item_a3")
    deleted = await upstream.expect("conversation.item.delete")
    await upstream.send({"type": "conversation.item.deleted", "item_id": deleted["item_id"]})


async def through_a_service(
    dialect: Dialect, user: dict[str, Any], settings: Any, folder: Any, sky: Sky
) -> list[dict[str, Any]]:
    async with service(dialect) as upstream:
        call_service(settings, upstream, folder)
        page = await opened(user)
        begun = len(page.seen)
        playing = asyncio.create_task(play(upstream))
        await converse(page, sky)
        await playing
        await page.hang_up()
    return page.seen[begun:]


async def through_the_engine(
    user: dict[str, Any], settings: Any, folder: Any, sky: Sky
) -> list[dict[str, Any]]:
    loaded()
    with engine_server() as engine:
        settings.VOICE = replace(
            settings.VOICE,
            azure_endpoint="",
            azure_api_version="",
            engine_url=engine.address,
            data_dir=folder,
        )
        page = await opened(user)
        begun = len(page.seen)
        await converse(page, sky)
        await page.hang_up()
    return page.seen[begun:]


async def opened(user: dict[str, Any]) -> Page:
    page = Page(user)
    await page.connect(assistant="forecaster")
    await page.until("session.ready")
    return page


# -- what must be equal ---


def as_bytes(events: list[dict[str, Any]]) -> list[bytes]:
    """Return events as they came, but for the ids of events and those that begin with the session's own."""
    texts = [
        json.dumps({name: value for name, value in event.items() if name not in ("event_id", "seq")})
        for event in events
    ]
    return [re.sub(r"relay_[0-9a-f]{8}_", "relay_", text).encode() for text in texts]


def shape(events: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the types and fields of events; pieces of one text or call count once."""
    found: list[tuple[str, ...]] = []
    pieces: set[tuple[str, ...]] = set()
    for event in events:
        names = sorted(event.keys() - {"seq", "event_id", "previous_item_id"})
        one = (event["type"], *names)
        if not event["type"].endswith((".delta", "audio.item")):
            pieces.clear()
        if one not in pieces:
            found.append(one)
            pieces.add(one)
    return found


async def test_every_service_looks_the_same_to_the_page(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    await Assistant.objects.acreate(slug="forecaster", name="Forecaster", tools=["get_weather"])
    told: list[list[dict[str, Any]]] = []
    for dialect in (Dialect.GA, Dialect.PREVIEW, None):
        sky = Sky()
        monkeypatch.setattr("voiceapp.relay.session.live.registry", sky.tools)
        if dialect is None:
            told.append(await through_the_engine(signed_in, settings, tmp_path, sky))
        else:
            told.append(await through_a_service(dialect, signed_in, settings, tmp_path, sky))
    ga, preview, engine = told
    kinds = [event["type"] for event in ga]
    for kind in ("response.output_text.done", "response.tool_call.completed", "conversation.item.deleted"):
        assert kind in kinds
    assert as_bytes(preview) == as_bytes(ga)
    assert shape(engine) == shape(ga)
