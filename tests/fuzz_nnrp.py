"""Throws broken packets at ``/nnrp`` for a while; a neighbour's conversation must not notice.

    python -m tests.fuzz_nnrp --seconds 60 [--seed 7]

Prints one JSON object. Exits with 1 where anything was raised that nobody meant to raise, where an answer was
no packet, or where the neighbour was disturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Any

from voiceapp.types import JsonObject

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

import websockets  # noqa: E402

from tests.parts.nnrp_parts import TOKEN, Door, Scripted, serving  # noqa: E402
from voiceapp.clients.nnrp import connect  # noqa: E402
from voiceapp.nnrp import data_layouts, layouts, profile, wire  # noqa: E402
from voiceapp.nnrp.consumer import Connections, NnrpConsumer  # noqa: E402
from voiceapp.nnrp.wire import MessageType  # noqa: E402

CLIENTS = 4
MAX_STEPS = 80


class Kept(logging.Handler):
    """Keeps what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


async def engine(asked: JsonObject) -> AsyncGenerator[JsonObject]:
    """Answer in three chunks, slowly enough to be cancelled."""
    for part in ("a", "b", "c"):
        choice = {"index": 0, "delta": {"content": part}, "finish_reason": "stop" if part == "c" else None}
        yield {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        await asyncio.sleep(0.001)


def envelope(rng: random.Random) -> Any:
    """Return a request, more often right than wrong."""
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": rng.random() < 0.7}
    wrong: list[Any] = [None, 7, "", [], {}, {"a": [{}]}, -1, True, 1e300]
    fields: JsonObject = {
        "schema_version": "openai-compatible/1",
        "operation": "chat.completions.create",
        "body": body,
    }
    if rng.random() < 0.3:
        fields["nnrp"] = {
            "timeout_ms": rng.choice([1, 5, 1000, *wrong]),
            "cancel_after_events": rng.choice([1, 2, *wrong]),
        }
    if rng.random() < 0.2:
        target = rng.choice([fields, body])
        target[rng.choice([*target])] = rng.choice(wrong)
    return fields


def lawful(rng: random.Random) -> bytes:
    """Return a packet that keeps the wire format, if not always the order of things."""
    ids: dict[str, Any] = {"session_id": rng.choice([0, 1, 1, 1, 2]), "frame_id": rng.randrange(6)}
    operation = rng.randrange(6)
    match rng.randrange(10):
        case 0:
            return wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello())
        case 1:
            return wire.encode(MessageType.SESSION_OPEN, layouts.SessionOpen(rng.randrange(3)))
        case 2:
            close = layouts.SessionClose(0, rng.randrange(2), 0, rng.choice([0, 1, 50]))
            return wire.encode(MessageType.SESSION_CLOSE, close, **ids)
        case 3:
            kind = rng.choice([MessageType.CANCEL, MessageType.ABORT])
            return wire.encode(kind, data_layouts.Control(operation), **ids)
        case 4:
            return wire.encode(MessageType.FRAME_CANCEL, **ids)
        case 5:
            deadline = int(time.time() * 1000) + rng.randrange(-5, 20)
            asked = data_layouts.Scheduling(operation, 1, 0, 0, deadline)
            return wire.encode(MessageType.DEADLINE, asked, **ids)
        case 6:
            return wire.encode(MessageType.PING, **ids)
    metadata, packed = profile.write_submit(operation + 1, envelope(rng))
    return wire.encode(MessageType.FRAME_SUBMIT, metadata, packed, **ids)


def broken(rng: random.Random) -> bytes | str:
    """Return a packet with something wrong about it."""
    raw = bytearray(lawful(rng))
    match rng.randrange(6):
        case 0:
            return rng.randbytes(rng.randrange(200))
        case 1:
            return bytes(raw[: rng.randrange(len(raw) + 1)])
        case 2:
            return bytes(raw) + rng.randbytes(rng.randrange(1, 40))
        case 3:
            return "text"
    for _ in range(rng.randrange(1, 6)):
        raw[rng.randrange(len(raw))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(raw)


async def attack(url: str, rng: random.Random, goes_on: Callable[[], bool], seen: Counter[str]) -> None:
    """Connect again and again, send, and read every answer."""
    while goes_on():
        async with websockets.connect(
            f"{url}?token={TOKEN}", compression=None, max_size=None, open_timeout=None
        ) as socket:
            reader = asyncio.create_task(read(socket, seen))
            try:
                if rng.random() < 0.9:
                    await socket.send(wire.encode(MessageType.CLIENT_HELLO, layouts.ClientHello()))
                    await socket.send(wire.encode(MessageType.SESSION_OPEN, layouts.SessionOpen()))
                for _ in range(rng.randrange(MAX_STEPS)):
                    await socket.send(lawful(rng) if rng.random() < 0.6 else broken(rng))
                    seen["sent"] += 1
                    if rng.random() < 0.1:
                        await asyncio.sleep(0.002)
            except websockets.ConnectionClosed:
                seen["sent away"] += 1
            if rng.random() < 0.3:
                socket.transport.abort()
            await socket.close()
            await reader


async def read(socket: websockets.ClientConnection, seen: Counter[str]) -> None:
    """Every answer must be a packet that a client understands."""
    try:
        async for message in socket:
            assert isinstance(message, bytes)
            packet = wire.decode(message)
            seen[packet.type.name] += 1
            if packet.type is MessageType.PARTIAL_RESULT:
                profile.read_event(packet.body)
            elif isinstance(packet.metadata, data_layouts.ResultPush):
                assert profile.read_result(packet.metadata, packet.body) is not None
    except websockets.ConnectionClosed:
        pass


async def neighbour(url: str, goes_on: Callable[[], bool], seen: Counter[str]) -> None:
    """Hold conversations that nothing must disturb."""
    async with connect(url, TOKEN) as client:
        session = await client.open_session()
        while goes_on():
            running = await session.start(
                {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
            )
            events = [event async for event in running.events()]
            assert [event.get("delta") for event in events] == ["a", "b", "c", None]
            seen["undisturbed"] += 1
        await session.close()


async def fuzz(more: Callable[[Counter[str]], bool], seed: int, patience_s: float) -> JsonObject:
    """Attack while ``more`` of what was seen so far is wanted.

    Returns what was ``seen``, and ``problems``, which should be empty. Raises ``TimeoutError`` where that
    takes longer than ``patience_s``.
    """
    kept, seen = Kept(), Counter[str]()
    problems: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(repr(context)))
    # Every client that is sent away for what it did is no news.
    logging.getLogger().addHandler(kept)
    try:
        connections = Connections(Door(Scripted(engine)))
        async with serving(NnrpConsumer.as_asgi(among=connections)) as url:

            def goes_on() -> bool:
                return more(seen)

            attacks = [attack(url, random.Random(seed + n), goes_on, seen) for n in range(CLIENTS)]
            async with asyncio.timeout(patience_s):
                done = await asyncio.gather(*attacks, neighbour(url, goes_on, seen), return_exceptions=True)
                while connections:
                    await asyncio.sleep(0.01)
            problems += [repr(one) for one in done if isinstance(one, BaseException)]
    finally:
        logging.getLogger().removeHandler(kept)
        loop.set_exception_handler(None)
    return {"seed": seed, "seen": dict(seen), "problems": problems + kept.lines}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    found = asyncio.run(fuzz(lambda _: time.monotonic() < until, options.seed, options.seconds + 30))
    print(json.dumps(found, indent=2))
    sys.exit(bool(found["problems"]))


if __name__ == "__main__":
    main()
