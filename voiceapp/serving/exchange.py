"""How programs are answered over HTTP, by plain ASGI applications.

Streams for programs run for minutes and in hundreds; Django's handling of a request, made for pages, would
cost them more than the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar
from weakref import WeakSet

from django.dispatch import receiver

from voiceapp.errors import VoiceAppError
from voiceapp.serving.scope import headers_of, query_of
from voiceapp.signals import server_stopping
from voiceapp.types import JsonObject, Receive, Send

Headers = Iterable[tuple[str, str]]
Result = TypeVar("Result")

KEEP_ALIVE_S: Final = 15.0
"""Proxies close what is silent for a minute; two lost comments are not enough for that."""
WRITE_S: Final = 30.0
"""How long a client may leave what it was sent unread before it is taken for gone."""

_STATUS: Final = {
    "not_authorized": 401,
    "invalid_api_key": 401,
    "missing_api_key": 401,
    "text_engine_not_found": 404,
    "method_not_allowed": 405,
    "model_host_ambiguous": 409,
    "body_too_slow": 408,
    "body_too_large": 413,
    "rate_limit_exceeded": 429,
    "quota_requests": 429,
    "quota_concurrent": 429,
    "quota_tokens": 429,
    "structured_output_failed": 502,
    "text_engine_error": 502,
    "text_engine_refused": 502,
    "text_engine_unreachable": 502,
    "model_host_error": 502,
    "model_host_gone": 502,
    "model_host_incomplete": 502,
    "model_host_rejected": 502,
    "model_host_absent": 503,
    "server_stopping": 503,
    "model_host_busy": 503,
    "text_engine_timeout": 504,
    "model_host_timeout": 504,
}


def status_of(error: VoiceAppError) -> int:
    """Return the HTTP status for an error: 400 for all that a better request would have prevented."""
    return _STATUS.get(error.code, 400)


def _plainly(error: VoiceAppError) -> JsonObject:
    return {"detail": error.message, "code": error.code}


def _headers(error: VoiceAppError, method: str) -> list[tuple[str, str]]:
    """Return the headers that go with an error's status; ``retry_after_s`` of the error, where it has one."""
    match status_of(error):
        case 401:
            return [("www-authenticate", "Bearer")]
        case 405:
            return [("allow", method)]
        case 429:
            return [("retry-after", str(max(1, round(getattr(error, "retry_after_s", 1.0)))))]
    return []


BODY_S: Final = 60.0
"""How long a client may take to send its body."""

STOP_S: Final = 3.0
"""How long answers may go on when the server stops; then they end in order, and in words."""


class ClientGone(Exception):
    """The client has left; there is nobody to answer."""


class Exchange:
    """A request to read and an answer to give, once."""

    def __init__(self, scope: JsonObject, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = headers_of(scope)
        self.query = query_of(scope)
        self._receive = receive
        self._send = send
        self._stopped = asyncio.Event()
        _live.add(self)

    async def read_json(self, max_bytes: int) -> JsonObject:
        """Return the body, a JSON object.

        Raises ``ClientGone`` and ``VoiceAppError``: ``body_too_large``, ``body_too_slow``, ``invalid_json``,
        ``server_stopping``.
        """
        read = await self.read_body(max_bytes, _read)
        if not isinstance(read, dict):
            raise VoiceAppError("The body is no JSON object.", code="invalid_json")
        return read

    async def read_body(self, max_bytes: int, read: Callable[[bytes], Any]) -> Any:
        """Return what ``read`` makes of the body, in a thread where that takes its time.

        Raises ``VoiceAppError`` (``body_too_large``, ``body_too_slow``), ``ClientGone``, and what ``read``
        raises.
        """
        length = self.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > max_bytes):
            raise _too_large(max_bytes)
        try:
            async with asyncio.timeout(BODY_S):
                whole = await self._unless_stopped(self._whole_body(max_bytes))
        except TimeoutError:
            raise VoiceAppError(f"The body took longer than {BODY_S:g} s.", code="body_too_slow") from None
        # A megabyte takes some milliseconds, in which others' audio would wait.
        return await asyncio.to_thread(read, whole) if len(whole) > 64 * 1024 else read(whole)

    async def _whole_body(self, max_bytes: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part: bytes = message.get("body") or b""
            size += len(part)
            if size > max_bytes:
                raise _too_large(max_bytes)
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)

    async def answer(self, status: int, body: JsonObject, headers: Headers = ()) -> None:
        """Answer with a JSON object."""
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        given = [("content-length", str(len(data))), *headers]
        await self._start(status, "application/json", given)
        await self._send({"type": "http.response.body", "body": data})

    async def stream(
        self, parts: AsyncGenerator[bytes], headers: Headers = (), *, farewell: bytes = b""
    ) -> None:
        """Answer with server-sent events until ``parts`` ends; close ``parts`` when the client leaves.

        A comment is sent where nothing comes for ``KEEP_ALIVE_S``. The closing happens at once, whatever
        ``parts`` is waiting for. ``farewell`` is sent instead of the rest where the server stops; without one
        ``parts`` must end by itself then.
        """
        await self._start(
            200, "text/event-stream", [("cache-control", "no-store"), ("x-accel-buffering", "no"), *headers]
        )
        pump = asyncio.create_task(self._pump(parts))
        gone = asyncio.create_task(self._gone())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            ends = {pump, gone, stopped} if farewell else {pump, gone}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            cut = stopped.done() and bool(farewell) and not gone.done() and not pump.done()
        finally:
            for task in (pump, gone, stopped):
                task.cancel()
            ended = await asyncio.gather(pump, gone, stopped, return_exceptions=True)
            await parts.aclose()
        if isinstance(ended[0], Exception) and not isinstance(ended[0], ClientGone):
            raise ended[0]
        if cut:
            await self._write(farewell, seconds=1.0)
            await self._send({"type": "http.response.body", "body": b""})

    async def while_there(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what ``work`` brings; cancel it and raise ``ClientGone`` when the client leaves first.

        Raises ``VoiceAppError`` (``server_stopping``) where the server stops first.
        """
        task = asyncio.ensure_future(self._unless_stopped(work))
        gone = asyncio.create_task(self._gone())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            return task.result()
        finally:
            task.cancel()
            gone.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    def stop(self) -> None:
        """End what is under way: the server stops."""
        self._stopped.set()

    async def _unless_stopped(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.create_task(work)
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise stopping()
            return task.result()
        finally:
            task.cancel()
            stopped.cancel()
            await asyncio.gather(task, stopped, return_exceptions=True)

    async def _start(self, status: int, kind: str, headers: Headers) -> None:
        fields = [("content-type", kind), ("x-content-type-options", "nosniff"), *headers]
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _pump(self, parts: AsyncGenerator[bytes]) -> None:
        """Send what comes, and comments in between, without ever cancelling the wait for the next part."""
        upcoming = asyncio.ensure_future(anext(parts, None))
        try:
            while True:
                done, _ = await asyncio.wait({upcoming}, timeout=KEEP_ALIVE_S)
                if not done:
                    await self._write(b": ping\n\n")
                    continue
                part = upcoming.result()
                if part is None:
                    break
                upcoming = asyncio.ensure_future(anext(parts, None))
                await self._write(part)
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        await self._send({"type": "http.response.body", "body": b""})

    async def _write(self, part: bytes, *, seconds: float = WRITE_S) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
        except (TimeoutError, OSError):
            raise ClientGone from None

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def serve(
    scope: JsonObject,
    receive: Receive,
    send: Send,
    answer: Callable[[Exchange], Awaitable[None]],
    *,
    method: str = "POST",
    error_body: Callable[[VoiceAppError], JsonObject] = _plainly,
) -> None:
    """Answer one request of ``method`` by ``answer``.

    An error that it raises is answered with the error's status; ``error_body`` makes the body of that answer.
    """
    exchange = Exchange(scope, receive, send)
    try:
        if exchange.method != method:
            raise VoiceAppError(f"Use {method}.", code="method_not_allowed")
        await answer(exchange)
    except ClientGone:
        return
    except VoiceAppError as error:
        await exchange.answer(status_of(error), error_body(error), _headers(error, method))


def stopping() -> VoiceAppError:
    """Return the error for what the server's end cuts off."""
    return VoiceAppError("The server is being restarted. Ask again soon.", code="server_stopping")


_live: WeakSet[Exchange] = WeakSet()
_stopping: set[asyncio.Task[None]] = set()


@receiver(server_stopping)
async def _stop(**kwargs: object) -> None:
    """Let answers that are nearly done be whole, and end the others before the server cuts them off."""
    task = asyncio.create_task(_stop_soon())
    _stopping.add(task)
    task.add_done_callback(_stopping.discard)


async def _stop_soon() -> None:
    await asyncio.sleep(STOP_S)
    for exchange in list(_live):
        exchange.stop()


def _too_large(max_bytes: int) -> VoiceAppError:
    return VoiceAppError(f"The body may have {max_bytes} bytes at most.", code="body_too_large")


def _read(whole: bytes) -> Any:
    try:
        return json.loads(whole)
    except (ValueError, RecursionError):
        raise VoiceAppError("The body is no JSON.", code="invalid_json") from None
