"""A request to read and an answer to give, whatever the client does meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from tests.parts.clock import pass_time
from voiceapp.errors import Refusal, TextEngineError, TextEngineTimeout, VoiceAppError
from voiceapp.serving.exchange import (
    BODY_S,
    KEEP_ALIVE_S,
    WRITE_S,
    ClientGone,
    Exchange,
    serve,
    stopping,
)

Answer = Callable[[Exchange], Awaitable[None]]


class Client:
    """What a server says of a client: parts of its body, and then that it waits, or has left."""

    def __init__(self, *parts: bytes, method: str = "POST", headers: dict[str, str] | None = None) -> None:
        raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self.scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": raw}
        self.left = asyncio.Event()
        self.reads = True
        self.sent: list[dict[str, Any]] = []
        last = len(parts) - 1
        self._messages = [
            {"type": "http.request", "body": part, "more_body": at < last} for at, part in enumerate(parts)
        ]

    async def receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if not self.reads:
            await asyncio.Event().wait()
        self.sent.append(message)

    def exchange(self) -> Exchange:
        return Exchange(self.scope, self.receive, self.send)

    async def serve(self, answer: Answer, **options: Any) -> None:
        await serve(self.scope, self.receive, self.send, answer, **options)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


async def code_of(work: Awaitable[Any]) -> str:
    with pytest.raises(VoiceAppError) as refused:
        await work
    return refused.value.code


# -- reading ----------------------------------------------------------------------------------------------


async def test_a_body_is_read_in_its_parts() -> None:
    assert await Client(b'{"a"', b":", b" 1}").exchange().read_json(100) == {"a": 1}


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"", "invalid_json"), (b"[1]", "invalid_json"), (b"{", "invalid_json"), (b"\xff", "invalid_json"),
     (b"[" * 100_000, "invalid_json"), (b'{"a": "%s"}' % (b"x" * 200_000), "body_too_large")],
    ids=range(6),
)  # fmt: skip
async def test_a_body_that_is_none_is_refused(body: bytes, code: str) -> None:
    assert await code_of(Client(body).exchange().read_json(150_000)) == code


@pytest.mark.parametrize("length", ["101", "9" * 5000])
async def test_a_body_that_says_it_is_too_large_is_not_waited_for(length: str) -> None:
    exchange = Client(headers={"content-length": length}).exchange()
    assert await code_of(exchange.read_json(100)) == "body_too_large"


async def test_a_body_that_does_not_come_is_given_up() -> None:
    reading = asyncio.ensure_future(Client().exchange().read_json(100))
    await pass_time(BODY_S + 1)
    assert await code_of(reading) == "body_too_slow"


async def test_a_client_that_leaves_while_it_sends_is_gone() -> None:
    client = Client()
    client.left.set()
    with pytest.raises(ClientGone):
        await client.exchange().read_json(100)


# -- answering --------------------------------------------------------------------------------------------


async def test_an_answer_is_json_with_its_length() -> None:
    client = Client()
    await client.exchange().answer(201, {"a": "é\ud800"}, [("x-more", "1")])
    assert (client.status, client.headers["x-more"]) == (201, "1")
    assert client.headers["content-type"] == "application/json"
    assert int(client.headers["content-length"]) == len(client.body)
    assert json.loads(client.body) == {"a": "é?"}


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (VoiceAppError("It is so."), 400, None),
        (Refusal("refused", "It is so.", status=401), 401, ("www-authenticate", "Bearer")),
        (Refusal("refused", "It is so.", status=413), 413, None),
        (Refusal("refused", "It is so.", status=429), 429, ("retry-after", "1")),
        (TextEngineError("It is so."), 502, None),
        (TextEngineTimeout("It is so."), 504, None),
    ],
)
async def test_an_error_is_answered_with_its_status(
    error: VoiceAppError, status: int, header: tuple[str, str] | None
) -> None:
    async def fail(exchange: Exchange) -> None:
        raise error

    client = Client()
    await client.serve(fail)
    assert client.status == status
    assert json.loads(client.body) == {"detail": "It is so.", "code": error.code}
    assert header is None or header in client.headers.items()


async def test_another_method_is_told_which_one_is_wanted() -> None:
    async def never(exchange: Exchange) -> None:
        raise AssertionError("it was not asked for")

    client = Client(method="GET")
    await client.serve(never)
    assert (client.status, client.headers["allow"]) == (405, "POST")


async def test_nobody_is_answered_who_has_left() -> None:
    async def gone(exchange: Exchange) -> None:
        raise ClientGone

    client = Client()
    await client.serve(gone)
    assert client.sent == []


# -- streams ----------------------------------------------------------------------------------------------


class Parts:
    """Parts of a stream, the rest of which waits for ever; ``closed`` once it was let go of."""

    def __init__(self, *parts: bytes, endless: bool = False) -> None:
        self.closed = False
        self._parts = parts
        self._endless = endless

    async def stream(self) -> AsyncGenerator[bytes]:
        try:
            for part in self._parts:
                yield part
            if self._endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_a_stream_is_sent_in_its_parts_and_ended() -> None:
    client, parts = Client(), Parts(b"data: 1\n\n", b"data: 2\n\n")
    await client.exchange().stream(parts.stream())
    assert client.headers["content-type"].startswith("text/event-stream")
    assert client.body == b"data: 1\n\ndata: 2\n\n"
    assert not client.sent[-1].get("more_body")
    assert parts.closed


async def test_silence_is_broken_by_comments_and_the_client_that_leaves_ends_the_work() -> None:
    client, parts = Client(), Parts(b"data: 1\n\n", endless=True)
    streaming = asyncio.ensure_future(client.exchange().stream(parts.stream()))
    await pass_time(2 * KEEP_ALIVE_S + 1)
    assert client.body == b"data: 1\n\n: ping\n\n: ping\n\n"
    client.left.set()
    await asyncio.wait([streaming])
    assert parts.closed


async def test_a_client_that_does_not_read_is_taken_for_gone() -> None:
    client, parts = Client(), Parts(b"data: 1\n\n", endless=True)
    streaming = asyncio.ensure_future(client.exchange().stream(parts.stream()))
    while not client.sent:
        await asyncio.sleep(0)
    client.reads = False
    await pass_time(KEEP_ALIVE_S + WRITE_S + 1)
    await asyncio.wait([streaming])
    assert parts.closed


async def test_a_server_that_stops_says_goodbye_in_the_stream() -> None:
    client, parts = Client(), Parts(b"data: 1\n\n", endless=True)
    exchange = client.exchange()
    streaming = asyncio.ensure_future(exchange.stream(parts.stream(), farewell=b"data: bye\n\n"))
    while len(client.sent) < 2:
        await asyncio.sleep(0)
    exchange.stop()
    await streaming
    assert client.body == b"data: 1\n\ndata: bye\n\n"
    assert parts.closed


# -- work -------------------------------------------------------------------------------------------------


async def work(done: asyncio.Event, result: int = 7) -> int:
    await done.wait()
    return result


async def test_work_is_waited_for_as_long_as_the_client_is_there() -> None:
    client, done = Client(), asyncio.Event()
    working = asyncio.ensure_future(client.exchange().while_there(work(done)))
    await asyncio.sleep(0)
    done.set()
    assert await working == 7
    working = asyncio.ensure_future(client.exchange().while_there(work(asyncio.Event())))
    await asyncio.sleep(0)
    client.left.set()
    with pytest.raises(ClientGone):
        await working


async def test_work_ends_with_the_server() -> None:
    exchange = Client().exchange()
    working = asyncio.ensure_future(exchange.while_there(work(asyncio.Event())))
    await asyncio.sleep(0)
    exchange.stop()
    assert await code_of(working) == stopping().code == "server_stopping"
