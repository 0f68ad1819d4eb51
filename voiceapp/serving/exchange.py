"""How programs are answered over HTTP, by plain ASGI applications and not by Django's views.

Streams for programs run for minutes and in hundreds. The same stream as an asynchronous view with
``StreamingHttpResponse`` under the site's middleware, measured in turns with this one on one busy machine
(``tests/benchmarks/bench_gateway.py``), added 15.5 ms to the first token where this adds 5.9, 2.6 times as
much: every middleware is a hop to a thread. 200 streams had all begun after 19.6 s, with this after 3.6. And
Django reads a body to its end before a view sees it, without a bound on its size or time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar
from weakref import WeakSet

from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.serving.scope import headers_of, query_of
from voiceapp.types import JsonObject, Part, Receive, Send

Headers = Iterable[tuple[str, str]]
Result = TypeVar("Result")

KEEP_ALIVE_S: Final = 15.0
"""Proxies close what is silent for a minute; two lost comments are not enough for that."""
WRITE_S: Final = 30.0
"""How long a client may leave what it was sent unread before it is taken for gone."""


def _plainly(error: VoiceAppError) -> JsonObject:
    return {"detail": error.message, "code": error.code}


def _headers(error: VoiceAppError, method: str) -> list[tuple[str, str]]:
    """Return the headers that go with an error's status; ``retry_after_s`` of the error, where it has one."""
    match error.status:
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
        exchanges().add(self)

    async def read_json(self, max_bytes: int) -> JsonObject:
        """Return the body, a JSON object.

        Raises ``ClientGone`` and ``VoiceAppError``: ``body_too_large``, ``body_too_slow``, ``invalid_json``,
        ``server_stopping``.
        """
        read = await self.read_body(max_bytes, _read)
        if not isinstance(read, dict):
            raise Refusal("invalid_json", "The body is no JSON object.")
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
            raise Refusal("body_too_slow", f"The body took longer than {BODY_S:g} s.", status=408) from None
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
    body_of: Callable[[VoiceAppError], JsonObject] = _plainly,
) -> None:
    """Answer one request of ``method`` by ``answer``.

    What that raises is answered with its status; ``body_of`` makes the body for an error.
    """
    exchange = Exchange(scope, receive, send)
    try:
        if exchange.method != method:
            raise Refusal("method_not_allowed", f"Use {method}.", status=405)
        await answer(exchange)
    except ClientGone:
        return
    except VoiceAppError as error:
        await exchange.answer(error.status, body_of(error), _headers(error, method))


def stopping() -> VoiceAppError:
    """Return the error for what the server's end cuts off."""
    return Refusal("server_stopping", "The server is being restarted. Ask again soon.", status=503)


class Exchanges:
    """The exchanges of this process that are under way."""

    def __init__(self) -> None:
        self._live: WeakSet[Exchange] = WeakSet()
        self._stopping: asyncio.Task[None] | None = None

    def add(self, exchange: Exchange) -> None:
        """Count an exchange in; it counts for as long as somebody holds it."""
        self._live.add(exchange)

    def stop_soon(self) -> None:
        """Let answers that are nearly done be whole; end the others before the server cuts them off."""
        self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        await asyncio.sleep(STOP_S)
        for exchange in list(self._live):
            exchange.stop()


exchanges: Final = Part[Exchanges]("table of HTTP exchanges")


def _too_large(max_bytes: int) -> VoiceAppError:
    return Refusal("body_too_large", f"The body may have {max_bytes} bytes at most.", status=413)


def _read(whole: bytes) -> Any:
    try:
        return json.loads(whole)
    except (ValueError, RecursionError):
        raise Refusal("invalid_json", "The body is no JSON.") from None
