"""A page on the relay's socket, in this process, and what was kept of its session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import AsyncClient

from tests.parts.page_messages import PageMessages
from tests.parts.scripted import Service, service
from tests.parts.sockets import PatientSocket
from tests.parts.waits import PATIENCE_S
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import ToolCall
from voiceapp.records.store import history
from voiceapp.records.store.writer import writer
from voiceapp.records.threads import with_database
from voiceapp.relay.browser.consumer import VoiceConsumer
from voiceapp.relay.browser.login import login_stack

MS = 48
"""Bytes of PCM16 at 24 kHz per millisecond."""

FORTY = " ".join(f"word{n:02}" for n in range(40))


class Page(PageMessages):
    """A page as the socket sees it: what it sends, and what it has been told so far."""

    def __init__(self, scope_extra: dict[str, Any]) -> None:
        super().__init__()
        self.socket = PatientSocket(login_stack(VoiceConsumer.as_asgi()), "/ws/voice/")
        self.socket.scope.update(scope_extra)
        self.closed: int | None = None

    async def connect(self, **start: Any) -> None:
        connected, _ = await self.socket.connect()
        assert connected
        await self.send({"type": "session.start", **start})

    async def send(self, event: dict[str, Any]) -> None:
        await self.socket.send_to(text_data=json.dumps(event))

    async def next(self, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Return the next text message; audio in between is collected."""
        while True:
            message = await self.socket.receive_output(timeout=timeout_s)
            if message["type"] == "websocket.close":
                self.closed = message["code"]
                return {"type": "close", "code": message["code"], "reason": message.get("reason", "")}
            event = self._take(message)
            if event is not None:
                return event

    def _take(self, message: dict[str, Any]) -> dict[str, Any] | None:
        return self.take(message["text"] if message.get("bytes") is None else message["bytes"])

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Read until an event of a type (with these fields) comes."""
        while True:
            event = await self.next()
            if event["type"] == kind and all(event.get(name) == value for name, value in fields.items()):
                return event
            assert event["type"] != "close" or kind == "close", f"closed ({event}) before {kind}"

    async def hear(self, size: int) -> None:
        """Read until so much audio has come in all."""
        while len(self.audio) < size:
            self._take(await self.socket.receive_output())

    async def hang_up(self) -> None:
        if self.closed is None:
            await self.send({"type": "session.end"})
            await self.until("close")


def seen(page: Page, *kinds: str) -> list[dict[str, Any]]:
    return [event for event in page.seen if event["type"] in kinds]


async def scope_of(username: str) -> dict[str, Any]:
    """Sign a new user in; return what a page of theirs sends with its socket."""
    client = AsyncClient()
    await client.aforce_login(await get_user_model().objects.acreate(username=username))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"origin": "http://testserver", "host": "testserver"}
    headers["cookie"] = f"{settings.SESSION_COOKIE_NAME}={cookie}"
    return {"headers": [(name.encode(), value.encode()) for name, value in headers.items()], "key": cookie}


Talk = Callable[..., AbstractAsyncContextManager[tuple[Page, Service]]]
"""What the fixture ``talking`` gives: a page that talks with a scripted service, for as long as it lasts."""


def call_service(settings: Any, upstream: Service, folder: Path, **config: Any) -> None:
    """Let sessions that begin now call a scripted service; ``settings`` is the fixture."""
    chosen = {
        "azure_endpoint": upstream.url,
        "azure_api_key": "key",
        "azure_deployment": "dep",
        "azure_api_version": "2025-04-01-preview" if upstream.dialect is not Dialect.GA else "",
        "azure_transcription_deployment": "my-transcriber",
        "data_dir": folder,
    }
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.VOICE = replace(settings.VOICE, **{**chosen, **config})


def talk_with(settings: Any, signed_in: dict[str, Any], folder: Path) -> Talk:
    """Return what runs a scripted service and has a page of ``signed_in`` begin a session with it."""

    @asynccontextmanager
    async def talk(
        dialect: Dialect = Dialect.GA,
        start: dict[str, Any] | None = None,
        prepare: Callable[[Service], None] | None = None,
        **config: Any,
    ) -> AsyncIterator[tuple[Page, Service]]:
        async with service(dialect) as upstream:
            if prepare is not None:
                prepare(upstream)
            call_service(settings, upstream, folder, **config)
            page = Page(signed_in)
            await page.connect(**(start or {}))
            await page.until("session.ready")
            yield page, upstream
            await page.hang_up()

    return talk


async def rows(page: Page) -> list[dict[str, Any]]:
    """Return what was kept of the page's session, in the conversation's order."""
    ready = next(event for event in page.seen if event["type"] == "session.ready")
    session_id = UUID(ready["session_id"])
    await writer().flush(timeout_s=PATIENCE_S)
    items = await with_database(history.items, session_id)
    return [{name: getattr(item, name) for name in item.__struct_fields__} for item in items]


async def answer(upstream: Service, page: Page, ms: int, words: str, *, whole: bool = True) -> None:
    await upstream.begin_answer()
    await upstream.say(words, b"\0\0" * (24 * ms))
    if whole:
        await upstream.end_answer(words)
    await page.until("audio.item")
    await page.hear(ms * MS)


async def call(upstream: Service, number: int, arguments: str, name: str = "wait") -> None:
    item = {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", "name": name}
    where = {"response_id": "resp_1", "item_id": item["id"], "output_index": number}
    await upstream.send(
        {"type": "conversation.item.added", "item": {**item, "status": "in_progress", "arguments": ""}},
        {"type": "response.function_call_arguments.done", **where, "call_id": item["call_id"], "name": name,
         "arguments": arguments},
        {"type": "conversation.item.done", "item": {**item, "status": "completed", "arguments": arguments}},
    )  # fmt: skip


async def calls_made(session: dict[str, Any]) -> list[tuple[str, str]]:
    await writer().flush(timeout_s=PATIENCE_S)
    kept = ToolCall.objects.filter(session_id=session["session_id"]).order_by("call_id")
    return [(row.call_id, row.status) async for row in kept]


async def used(upstream: Service, name: str, number: int = 1, /, **arguments: Any) -> str:
    """Let the model call a tool in a response of its own; return the tool's output."""
    response = {"id": f"resp_c{number}", "output": []}
    await upstream.send({"type": "response.created", "response": response})
    await call(upstream, number, json.dumps(arguments), name=name)
    while True:
        item = (await upstream.expect("conversation.item.create"))["item"]
        if item["type"] == "function_call_output":
            break
    echo = {"id": f"fo_{number}", **item}
    await upstream.send(
        {"type": "conversation.item.added", "previous_item_id": f"fc_{number}", "item": echo},
        {"type": "conversation.item.done", "previous_item_id": f"fc_{number}", "item": echo},
        {"type": "response.done", "response": {**response, "status": "completed"}},
    )
    return str(item["output"])


async def heard(page: Page, upstream: Service, words: str, number: int) -> None:
    """Answer, and let the page hear all of it."""
    await upstream.expect("response.create")
    before = len(page.audio)
    await upstream.begin_answer(f"resp_{number}", f"item_a{number}")
    await upstream.say(words, b"\0\0" * 2400, f"resp_{number}", f"item_a{number}")
    await upstream.end_answer(words, f"resp_{number}", f"item_a{number}")
    await page.hear(before + 4800)
    report = {"type": "playback.report", "item_id": f"item_a{number}", "played_ms": 100, "final": True}
    await page.send(report)


async def news(upstream: Service) -> str:
    """Return the next text that the model is told beside the conversation."""
    while (item := (await upstream.expect("conversation.item.create"))["item"]).get("role") != "system":
        pass
    return str(item["content"][0]["text"])
