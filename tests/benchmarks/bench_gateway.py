"""What the text gateway adds to the first token, and what many streams at once cost; run by hand.

    python -m tests.benchmarks.bench_gateway [--rounds 200] [--streams 200] [--seconds 60] [--json]

A scripted chat service, the server under Uvicorn and the clients are processes of their own. First tokens are
timed in pairs, straight from the service and through the gateway, alternately, so that whatever else the
machine does falls on both. Memory is the server's, every two seconds from the moment when all streams have
begun: the first numbers are its buffers and pools filling, what counts is whether the last ones still grow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

TOKEN_EVERY_S = 0.1
SAMPLE_S = 2.0
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def part(data: bytes) -> bytes:
    """Return a part of a chunked body; none is its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


async def chat_service(port: Connection) -> None:
    """Answer every request with a token every 100 ms, for as long as its ``max_tokens`` says."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = next(
                    int(line.split(":")[1]) for line in head.split("\r\n") if "content-length" in line
                )
                asked = json.loads(await reader.readexactly(size))
                writer.write(HEAD)
                for _ in range(asked.get("max_tokens", 1)):
                    writer.write(part(chunk("word ")))
                    await writer.drain()
                    await asyncio.sleep(TOKEN_EVERY_S)
                writer.write(part(b"data: [DONE]\n\n") + part(b""))
                if "connection: close" in head:
                    writer.close()
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_chat_service(port: Connection) -> None:
    asyncio.run(chat_service(port))


def run_gateway(pipe: Connection, chat_port: int, folder: str) -> None:
    """Serve the product with a database of its own; tell (address, token), then RSS in MB when asked."""
    os.environ["VOICEAPP_TEXT_BASE_URL"] = f"http://127.0.0.1:{chat_port}/v1"
    os.environ["VOICEAPP_TEXT_MODEL"] = "m"
    os.environ["VOICEAPP_DATA_DIR"] = folder
    os.environ["DJANGO_SETTINGS_MODULE"] = "voiceapp.settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from tests.parts.engine_server import EngineServer
    from voiceapp.asgi import application
    from voiceapp.records.models import ApiToken
    from voiceapp.records.store.tokens import make_token

    call_command("migrate", interactive=False, verbosity=0)
    _, token = make_token(User.objects.create_user("bench"), "bench")
    ApiToken.objects.update(requests_per_minute=1_000_000, concurrent_requests=10_000, tokens_per_day=0)
    with EngineServer(application) as server:
        pipe.send((server.address.replace("ws://", "http://"), token))
        while pipe.recv() == "rss":
            status = Path("/proc/self/status").read_text()
            pipe.send(int(status.split("VmRSS:")[1].split()[0]) / 1024)


class Client:
    """A bare HTTP client: what it adds is the same on both ways."""

    def __init__(self, address: str, path: str, headers: dict[str, str]) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self.host, self.port, self.path, self.headers = host, int(port), path, headers

    async def open(self, body: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        data = json.dumps(body).encode()
        lines = [
            f"POST {self.path} HTTP/1.1",
            f"host: {self.host}:{self.port}",
            "content-type: application/json",
        ]
        lines += [
            f"content-length: {len(data)}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        return reader, writer

    async def first_token_ms(self, body: dict[str, Any]) -> float:
        begun = time.perf_counter()
        reader, writer = await self.open(body)
        await reader.readuntil(b"word")
        took = (time.perf_counter() - begun) * 1000
        await reader.read()
        writer.close()
        return took

    async def read_all(self, body: dict[str, Any], started: asyncio.Semaphore) -> int:
        reader, writer = await self.open(body)
        await reader.readuntil(b"word")
        started.release()
        words = 1
        while data := await reader.read(65_536):
            words += data.count(b"word")
        writer.close()
        return words


async def measure(
    direct: Client, gateway: Client, pipe: Connection, options: argparse.Namespace
) -> dict[str, Any]:
    one = {**HELLO, "max_tokens": 1}
    for client in (direct, gateway) * 10:
        await client.first_token_ms({**one, "stream": True})
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(options.rounds):
        times[0].append(await direct.first_token_ms({**one, "stream": True}))
        times[1].append(await gateway.first_token_ms(one))

    def rss() -> float:
        pipe.send("rss")
        return float(pipe.recv())

    before = rss()
    started = asyncio.Semaphore(0)
    words = int(options.seconds / TOKEN_EVERY_S)
    streams = [
        asyncio.create_task(gateway.read_all({**HELLO, "max_tokens": words}, started))
        for _ in range(options.streams)
    ]
    for _ in range(options.streams):
        await started.acquire()
    began = time.perf_counter()
    samples = [rss()]
    while (await asyncio.wait(streams, timeout=SAMPLE_S))[1]:
        samples.append(rss())
    took_s = time.perf_counter() - began
    got = [stream.result() for stream in streams]
    added = [through - straight for straight, through in zip(*times, strict=True)]
    return {
        "first_token_ms": {"direct": round(statistics.median(times[0]), 2),
                           "gateway": round(statistics.median(times[1]), 2)},
        "added_ms": {"median": round(statistics.median(added), 2),
                     "p95": round(statistics.quantiles(added, n=20)[-1], 2)},
        "streams": options.streams,
        "complete": sum(count == words for count in got),
        "seconds": round(took_s, 1),
        "rss_mb": {"before": round(before), "while_running": [round(sample) for sample in samples]},
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 2 or options.streams < 1:
        parser.error("--rounds must be at least 2, for there to be a spread, and --streams at least 1.")
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    service = spawn.Process(target=run_chat_service, args=(theirs,), daemon=True)
    service.start()
    chat_port = ours.recv()
    pipe, end = spawn.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        server = spawn.Process(target=run_gateway, args=(end, chat_port, folder), daemon=True)
        server.start()
        address, token = pipe.recv()
        direct = Client(f"http://127.0.0.1:{chat_port}", "/v1/chat/completions", {"connection": "close"})
        gateway = Client(
            address, "/v1/generate/stream", {"authorization": f"Bearer {token}", "connection": "close"}
        )
        found = asyncio.run(measure(direct, gateway, pipe, options))
        pipe.send("stop")
        server.join(10)
        service.terminate()
    print(json.dumps(found, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
