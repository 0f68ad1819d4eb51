"""The work on one operation: its request goes to the text engine, what comes back becomes events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager
from typing import Final

from voiceapp.errors import LocalProtocolError, RemoteProtocolError, TextEngineError
from voiceapp.nnrp import profile
from voiceapp.nnrp.backing import DEFAULT_MODEL, Backing
from voiceapp.nnrp.data_layouts import Status
from voiceapp.nnrp.profile import ProfileError, SubmitRequest
from voiceapp.nnrp.replies import ReplyEvents
from voiceapp.protocol.tool_calls import ToolCallFault
from voiceapp.records.store.tokens import QuotaExceeded, TokenHolder
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

OPERATION_S: Final = 300.0
"""Longest operation that asks for no time-out of its own."""

QUEUE_S: Final = 30.0
"""How long an operation waits where its token has as many requests under way as it may."""
_LOOK_S: Final = 0.05
"""How often it looks for a place: requests that came another way free places too, and tell nobody."""
_ENGINE_OVERLOAD: Final = frozenset({"rate_limit_exceeded"})
_ENGINE_TIMEOUT: Final = frozenset({"text_engine_timeout"})

Tell = Callable[[JsonObject], Awaitable[None]]
"""Sends a partial event; waits where the client reads too slowly."""


class Work:
    """One operation under way: ``run`` answers it, ``settle`` charges for it.

    ``name`` tells it from others in what is logged and in the ids of its tool calls' items; ``deadline`` says
    which time of day it must be done by, in Unix milliseconds, 0 for none. ``queue_ms`` is how long it waited
    for its turn.
    """

    def __init__(
        self,
        request: SubmitRequest,
        backing: Backing,
        holder: TokenHolder,
        tell: Tell,
        *,
        name: str,
        deadline: Callable[[], int] = lambda: 0,
    ) -> None:
        self._name = name
        self._request = request
        self._deadline = deadline
        self._backing = backing
        self._holder = holder
        self._tell = tell
        self._reply = ReplyEvents(
            name, with_usage=self._request.usage_wanted, with_chunks=self._request.diagnostics
        )
        self._limit: asyncio.Timeout | None = None
        self._started = asyncio.get_running_loop().time()
        self.queue_ms = 0
        self._provider = ""
        self._emitted = 0

    async def run(self) -> tuple[Status, JsonObject]:
        """Answer the operation; return its terminal event and the status that goes with it."""
        try:
            async with asyncio.timeout(None) as self._limit:
                self.reschedule()
                return await self._answer()
        except TimeoutError:
            error = ProfileError("The request took too long.", code="request_timeout", kind="timeout_error")
        except ProfileError as found:
            error = found
        except (RemoteProtocolError, TextEngineError, QuotaExceeded) as found:
            error = _explain(found)
        except LocalProtocolError:
            logger.exception("operation %s: its reply broke the protocol", self._name)
            error = ProfileError("The reply could not be sent.", code="backend_error", kind="server_error")
        except Exception:
            # The boundary of an operation: its client is told, and others go on.
            logger.exception("operation %s failed", self._name)
            error = ProfileError("The server failed.", code="backend_error", kind="server_error")
        await self._give_up(ToolCallFault(type=error.kind, code=error.code, message=error.message))
        return error.result_status, error.event

    def reschedule(self) -> None:
        """Set the time-out anew, from what the request asks for and the operation's deadline."""
        if self._limit is None or self._limit.expired():
            return
        asked = self._request.timeout_ms / 1000 or OPERATION_S
        deadline = self._deadline()
        left = deadline / 1000 - time.time() if deadline else asked
        now = asyncio.get_running_loop().time()
        self._limit.reschedule(min(self._started + asked, now + max(left, 0.0)))

    async def settle(self) -> None:
        """Let the token's holder pay for what was used, whatever became of the operation; never raises."""
        if not self._provider:
            return
        # A service that failed before it said anything is not paid for.
        tokens_in, tokens_out = self._reply.counted(self._request.body)
        await self._backing.charge(self._holder, self._provider, tokens_in, tokens_out)

    async def _answer(self) -> tuple[Status, JsonObject]:
        async with self._place():
            engine = await self._backing.engine(self._holder, self._request.body)
            if self._request.diagnostics:
                usage = {
                    "operation": profile.OPERATION,
                    "request_id": self._request.request_id,
                    "model": self._request.body["model"],
                    "provider": engine.provider,
                }
                await self._tell(profile.diagnostics_event(usage))
            self._provider = engine.provider
            enough = False
            async with aclosing(engine.stream(_body(self._request.body))) as chunks:
                async for chunk in chunks:
                    enough = await self._pass_on(self._reply.feed(chunk))
                    if enough:
                        break
            if enough or await self._pass_on(self._reply.finish()):
                return await self._cancelled()
        return Status.OK, profile.completed_event(self._reply.body())

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Hold a place among the token's requests; wait for one where all are taken."""
        now = asyncio.get_running_loop().time
        began = now()
        while True:
            with ExitStack() as places:
                try:
                    places.enter_context(self._holder.request())
                except QuotaExceeded as error:
                    if error.code != "quota_concurrent" or now() - began >= QUEUE_S:
                        raise
                else:
                    self.queue_ms = int((now() - began) * 1000)
                    yield
                    return
            await asyncio.sleep(_LOOK_S)

    async def _pass_on(self, events: list[JsonObject]) -> bool:
        """Send partial events; return whether the client has as many as it wants."""
        for event in events if self._request.streaming else ():
            await self._tell(event)
            self._emitted += 1
            if self._emitted == self._request.cancel_after_events:
                return True
        return False

    async def _cancelled(self) -> tuple[Status, JsonObject]:
        message = "The operation was cancelled after as many events as its request allows."
        await self._give_up(ToolCallFault(type="cancelled", code="cancel_after_events", message=message))
        return Status.CANCELLED, profile.cancelled_event("cancel_after_events")

    async def _give_up(self, fault: ToolCallFault) -> None:
        """End the tool calls that the client has seen start."""
        for event in self._reply.abort(fault):
            if self._request.streaming:
                await self._tell(event)


def _body(body: JsonObject) -> JsonObject:
    """Return the request as the engine gets it: streamed, and counted for whoever pays."""
    options = body.get("stream_options") or {}
    if body["model"] == DEFAULT_MODEL:
        body = {name: value for name, value in body.items() if name != "model"}
    return {**body, "stream": True, "stream_options": {**options, "include_usage": True}}


def _explain(error: RemoteProtocolError | TextEngineError | QuotaExceeded) -> ProfileError:
    """Return what a client is told of a failure behind this server."""
    match error:
        case QuotaExceeded():
            return ProfileError(error.message, code="backend_overload", kind="rate_limit_error")
        case TextEngineError(code=code) if code in _ENGINE_OVERLOAD:
            return ProfileError(error.message, code="backend_overload", kind="rate_limit_error")
        case TextEngineError(code=code) if code in _ENGINE_TIMEOUT:
            return ProfileError(error.message, code="request_timeout", kind="timeout_error")
        case TextEngineError(param=param, code=code) if param or code == "invalid_request":
            return ProfileError(error.message, code="invalid_body")
        case RemoteProtocolError(code="missing_terminal_event"):
            return ProfileError(error.message, code="missing_terminal_event", kind="server_error")
    return ProfileError(error.message, code="backend_error", kind="server_error")
