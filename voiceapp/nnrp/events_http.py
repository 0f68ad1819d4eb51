"""``POST /v1/events``: an operation of ``/nnrp`` as server-sent events, for programs that speak plain HTTP.

The request is the very envelope of the profile, and so are the events: each is one ``event: TYPE`` with its
JSON as ``data``, the terminal one last. A wrong envelope is told by that one event; HTTP statuses tell only
what is wrong before there is an envelope.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from itertools import count
from typing import Any, Final

from voiceapp.errors import LocalProtocolError, Refusal
from voiceapp.nnrp import profile
from voiceapp.nnrp.backing import Backing
from voiceapp.nnrp.consumer import DRAIN_S
from voiceapp.nnrp.profile import ProfileError, SubmitRequest
from voiceapp.nnrp.work import Work
from voiceapp.protocol import tool_calls
from voiceapp.protocol.tool_calls import ToolCallOrder
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.serving.exchange import Exchange, serve
from voiceapp.types import JsonObject, Part, Receive, Send

logger = logging.getLogger(__name__)

PATH: Final = "/v1/events"
MAX_WAITING: Final = 64
"""Requests of one token that wait for their turn in one process, beyond those that it may have under way."""
MAX_UNSENT: Final = 64
"""Events that wait for a slow reader, as few as let a burst of the service come in without a pause."""


class EventsApp:
    """The ASGI application."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._under_way: Counter[int] = Counter()
        self._works: set[Work] = set()
        self._quiet = asyncio.Event()
        self._ends_unix_ms = 0
        self._numbers = count(1)

    async def __call__(self, scope: JsonObject, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await serve(scope, receive, send, self._answer)

    @property
    def under_way(self) -> int:
        """How many requests are being answered."""
        return self._under_way.total()

    async def drain(self) -> None:
        """Begin nothing new, and let operations end; those that take longer than ``DRAIN_S`` time out."""
        self._ends_unix_ms = int((time.time() + DRAIN_S) * 1000)
        self._quiet.clear()
        for work in self._works:
            work.reschedule()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S + 1.0):
                if self._under_way:
                    await self._quiet.wait()

    async def _answer(self, exchange: Exchange) -> None:
        holder = await self._backing.admit(exchange.scope)
        if holder is None:
            raise tokens.refusal()
        fields = await exchange.read_body(profile.MAX_REQUEST_BYTES, _read)
        try:
            request = profile.read_fields(fields)
            self._admit(holder)
        except ProfileError as error:
            await exchange.stream(_alone(error.event))
            return
        self._under_way[holder.token_id] += 1
        try:
            await exchange.stream(self._frames(request, holder))
        finally:
            self._under_way[holder.token_id] -= 1
            self._under_way += Counter()
            if not self._under_way:
                self._quiet.set()

    def _admit(self, holder: TokenHolder) -> None:
        if self._ends_unix_ms:
            raise ProfileError("The server is stopping.", code="backend_overload", kind="server_error")
        most = holder.concurrent_requests + MAX_WAITING
        if self._under_way[holder.token_id] >= most:
            sentence = (
                f"Too many operations at once: this token may have {most}, {MAX_WAITING} of them waiting."
            )
            raise ProfileError(sentence, code="adapter_operation_limit", kind="server_error")

    async def _frames(self, request: SubmitRequest, holder: TokenHolder) -> AsyncGenerator[bytes]:
        """Yield the events of one operation as they go out; closed early, it ends the work behind them."""
        events: asyncio.Queue[JsonObject] = asyncio.Queue(MAX_UNSENT)
        order = ToolCallOrder(LocalProtocolError)

        async def tell(event: JsonObject) -> None:
            if tool_calls.is_tool_call(event):
                order.take(tool_calls.read(event))
            await events.put(event)

        name = f"http_{next(self._numbers)}"
        work = Work(request, self._backing, holder, tell, name=name, deadline=lambda: self._ends_unix_ms)
        self._works.add(work)
        task = asyncio.create_task(_run(work, events))
        try:
            while True:
                event = await events.get()
                yield _frame(event)
                if event["type"] in profile.TERMINAL:
                    return
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await work.settle()
            self._works.discard(work)


async def _run(work: Work, events: asyncio.Queue[JsonObject]) -> None:
    try:
        _, event = await work.run()
    except Exception:
        # The boundary of the task: whoever waits for its events would wait for ever.
        logger.exception("an operation over HTTP could not be answered")
        event = profile.error_event("server_error", "backend_error", "The server failed.")
    await events.put(event)


async def _alone(event: JsonObject) -> AsyncGenerator[bytes]:
    yield _frame(event)


def _frame(event: JsonObject) -> bytes:
    """Return an event as it goes on the wire; its JSON has no line breaks of its own."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), profile.to_json(event))


def _read(body: bytes) -> Any:
    try:
        return profile.read_json(body)
    except ProfileError:
        raise Refusal("invalid_json", "The body is no JSON in UTF-8.") from None


events: Final = Part[EventsApp]("application of /v1/events")
