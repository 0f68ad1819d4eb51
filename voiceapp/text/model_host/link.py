"""One connected model host: its handshake, its requests under way, and the routing of what it sends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import count
from typing import Final

from voiceapp.errors import DecodeError, TextEngineError, TextEngineTimeout, TextEngineUnavailable
from voiceapp.text.model_host import messages
from voiceapp.text.model_host.messages import (
    Answer,
    Initialized,
    ModelNotification,
    Request,
    RequestFailed,
    StreamEvent,
    StreamMetadata,
)
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)


Key = tuple[str, str, str]

MAX_QUEUED: Final = 1_600
"""Notifications of one request that wait to be read; then the host's socket is not read on."""
MAX_UNDER_WAY: Final = 64
"""Requests that one host may have under way."""
MAX_LOGGED: Final = 3
"""Dropped messages of one host that are logged, each; of others the number is."""
ACCEPT_S: Final = 30.0
"""How long a host may take to accept a request."""


class _UnderWay:
    """A request that the host was, or is about to be, asked."""

    def __init__(self) -> None:
        self.notifications: asyncio.Queue[ModelNotification | None] = asyncio.Queue(MAX_QUEUED)


class HostLink:
    """A host's connection as the app uses it. ``send`` sends it one text message.

    ``thread_id``: the one thread that this host serves; empty: all of its user's.
    """

    def __init__(self, send: Callable[[str], Awaitable[None]], thread_id: str = "") -> None:
        self.thread_id = thread_id
        self.ready = False
        self._initialize_seen = False
        self._send = send
        self._ids = count(1)
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._under_way: dict[Key, _UnderWay] = {}
        self._closed = False
        self._dropped = 0

    # -- from the host --------------------------------------------------------------------------------

    async def receive(self, text: str) -> None:
        """Take one message. Nothing that a host sends ends its connection."""
        try:
            message = messages.read(text)
        except DecodeError as error:
            self.drop(f"a message ({error.code})")
            return
        match message:
            case Request():
                await self._answer(message)
            case Answer():
                self._answered(message)
            case Initialized():
                self.ready = self._initialize_seen
            case StreamMetadata() | StreamEvent() | RequestFailed():
                await self._route(message)

    def drop(self, what: str) -> None:
        """Note that something was dropped; only the first few are logged, as a host may send any number."""
        self._dropped += 1
        if self._dropped <= MAX_LOGGED:
            logger.info("model host: %s was dropped", what)

    async def _answer(self, request: Request) -> None:
        if request.method == "initialize":
            if self._initialize_seen:
                await self._send(messages.refusal(request.id, *messages.ALREADY_INITIALIZED))
                return
            params = request.params if isinstance(request.params, dict) else {}
            if not isinstance(params.get("clientInfo"), dict):
                sentence = "initialize needs clientInfo"
                await self._send(messages.refusal(request.id, messages.INVALID_PARAMS, sentence))
                return
            self._initialize_seen = True
            await self._send(messages.result(request.id, {"serverInfo": {"name": "voiceapp"}}))
        elif not self.ready:
            await self._send(messages.refusal(request.id, *messages.NOT_INITIALIZED))
        else:
            sentence = f"Unknown method: {request.method[:60]}"
            await self._send(messages.refusal(request.id, messages.UNKNOWN_METHOD, sentence))

    def _answered(self, answer: Answer) -> None:
        asked = self._asked.get(answer.id) if isinstance(answer.id, int) else None
        if asked is None or asked.done():
            self.drop("an answer to nothing")
            return
        asked.set_result(answer)

    async def _route(self, notification: ModelNotification) -> None:
        key = (notification.thread_id, notification.turn_id, notification.request_id)
        under_way = self._under_way.get(key)
        if under_way is None:
            self.drop("a notification for no request under way")
            return
        # Waits where the reader is slow: the host's socket then is not read on.
        await under_way.notifications.put(notification)

    def close(self) -> None:
        """The host is gone: everything under way ends."""
        if self._dropped > MAX_LOGGED:
            logger.info("model host: %d messages were dropped", self._dropped)
        self._closed = True
        self.ready = False
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(_gone())
        for under_way in self._under_way.values():
            queue = under_way.notifications
            if queue.full():
                # Room for the end; what is dropped belongs to a reply that has failed anyway.
                queue.get_nowait()
            queue.put_nowait(None)

    # -- to the host ----------------------------------------------------------------------------------

    async def ask(self, key: Key, request: JsonObject, idle_s: float) -> AsyncGenerator[ModelNotification]:
        """Ask for one response; stream the notifications that belong to it.

        Raises ``TextEngineError``: ``model_host_rejected``, ``model_host_timeout``, ``model_host_gone``,
        ``model_host_busy``, and ``model_host_error`` for a request that failed at the host.
        """
        if len(self._under_way) >= MAX_UNDER_WAY:
            raise TextEngineUnavailable("The model host has too much to do.", code="model_host_busy")
        # Before the host hears of it: what it sends early waits here.
        under_way = self._under_way[key] = _UnderWay()
        try:
            await self._begin(key, request)
            while True:
                try:
                    async with asyncio.timeout(idle_s):
                        notification = await under_way.notifications.get()
                except TimeoutError:
                    sentence = f"The model host sent nothing for {idle_s:g} s."
                    raise TextEngineTimeout(sentence, code="model_host_timeout") from None
                if notification is None:
                    raise _gone()
                if isinstance(notification, RequestFailed):
                    raise TextEngineError(
                        f"The model host failed: {notification.error.message[:500]}", code="model_host_error"
                    )
                yield notification
        finally:
            del self._under_way[key]
            # A reader of the socket may be waiting for room in a queue that nobody empties any more.
            while not under_way.notifications.empty():
                under_way.notifications.get_nowait()

    async def _begin(self, key: Key, request: JsonObject) -> None:
        if self._closed:
            raise _gone()
        number = next(self._ids)
        asked = self._asked[number] = asyncio.get_running_loop().create_future()
        thread_id, turn_id, request_id = key
        params = {"threadId": thread_id, "turnId": turn_id, "requestId": request_id, "request": request}
        try:
            async with asyncio.timeout(ACCEPT_S):
                await self._send(messages.request(number, "model/request", params))
                answer = await asked
        except TimeoutError:
            sentence = f"The model host did not accept the request within {ACCEPT_S:g} s."
            raise TextEngineTimeout(sentence, code="model_host_timeout") from None
        finally:
            del self._asked[number]
        accepted = answer.result if isinstance(answer.result, dict) else {}
        if accepted.get("accepted") is not True:
            error = answer.error if isinstance(answer.error, dict) else {}
            reason = str(accepted.get("rejectionReason") or error.get("message") or "no reason given")[:200]
            raise TextEngineError(
                f"The model host rejected the request: {reason}", code="model_host_rejected"
            )


def _gone() -> TextEngineError:
    return TextEngineError("The model host has left.", code="model_host_gone")
