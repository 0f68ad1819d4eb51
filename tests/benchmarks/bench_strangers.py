"""How late one page's sound is while others flood the server; run by hand.

    python -m tests.benchmarks.bench_strangers [--seconds 8] [--sockets 2] [--json]

The server is ``manage.py up`` in a process of its own. A scripted service sends 20 ms of sound every 20 ms to
one page, which notes how late each arrives: first while nobody else is there, then while each flood runs.
Those who flood are a process of their own as well; they come back as soon as they are closed, refused or cut.
Prints milliseconds. Exits with 1 where a flood adds more than 50 ms to the slowest percent.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
from websockets.asyncio.server import ServerConnection

from tests.parts.raw_sockets import CONT, PING, TEXT, RawSocket, frame, raw_socket
from tests.parts.scripted import Service, service
from tests.parts.servers import RealPage, Server, real_page, signed_in

FRAME_S = 0.02
SOUND = base64.b64encode(bytes(960)).decode()
MOST_ADDED_MS = 50.0
AT_ONCE = 50_000
"""Frames of one write: 300 kB of the shortest."""

START = frame(TEXT, b'{"type":"session.start"}')
FLOODS: dict[str, tuple[bool, bytes, bytes]] = {
    "stranger: pings": (False, b"", frame(PING)),
    "page: pings": (True, b"", frame(PING)),
    "page: empty texts": (True, START, frame(TEXT)),
    "page: empty fragments": (True, frame(TEXT, b"x", fin=False), frame(CONT, fin=False)),
    "page: fragments of a byte": (True, frame(TEXT, b"x", fin=False), frame(CONT, b"x", fin=False)),
    "page: braces": (True, START, frame(TEXT, b"{")),
    "page: pings in JSON": (True, START, frame(TEXT, b'{"type":"ping"}')),
}
"""Whether they are signed in, what they send first, and what they send then."""


async def _pour(line: RawSocket, flood: bytes) -> None:
    """Send until the server has had enough; read what it answers."""
    reading = asyncio.create_task(line.rest())
    try:
        with suppress(OSError):
            while not reading.done():
                line.send(flood)
                await line.writer.drain()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _flood(url: str, cookies: str, first: bytes, flood: bytes) -> None:
    headers = [("Origin", url), ("Cookie", cookies)] if cookies else [("Origin", url)]
    address = f"ws://{urlsplit(url).netloc}"
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            async with raw_socket(address, "/ws/voice/", headers) as line:
                line.send(first)
                await _pour(line, flood)
        # So many handshakes that they alone would be the load are another matter.
        await asyncio.sleep(0.05)


def run_flood(url: str, cookies: str, first: bytes, once: bytes, sockets: int) -> None:
    """Flood from some sockets until the process is ended."""

    async def run() -> None:
        await asyncio.gather(*(_flood(url, cookies, first, once * AT_ONCE) for _ in range(sockets)))

    uvloop.run(run())


class Sound:
    """Sound on its way from the service to the page."""

    def __init__(self, line: ServerConnection, page: RealPage) -> None:
        self._line, self._page = line, page
        self._sent: list[float] = []
        self.late_ms: list[float] = []

    async def send(self) -> None:
        """Send a frame every 20 ms."""
        due = time.perf_counter()
        delta: dict[str, object] = {
            "type": "response.output_audio.delta",
            "event_id": "e",
            "response_id": "resp_1",
        }
        delta |= {"item_id": "item_a1", "output_index": 0, "content_index": 0, "delta": SOUND}
        text = json.dumps(delta)
        while True:
            due += FRAME_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self._sent.append(time.perf_counter())
            await self._line.send(text)

    async def receive(self) -> None:
        """Note how late each frame is."""
        count = 0
        async for message in self._page.line:
            if isinstance(message, bytes):
                self.late_ms.append((time.perf_counter() - self._sent[count]) * 1000)
                count += 1
                if count % 50 == 0:
                    await self._page.send({"type": "ping", "seq": self._page.seq})
            else:
                self._page.take(message)
            self._page.seq += isinstance(message, bytes)


def figures(late_ms: list[float]) -> dict[str, float]:
    """Return the middle, the slowest percent and the slowest."""
    cuts = statistics.quantiles(late_ms, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "worst": round(max(late_ms), 1)}


async def measure(
    url: str, cookies: str, upstream: Service, seconds: float, sockets: int
) -> dict[str, dict[str, float]]:
    """Return the figures of each flood, and those of none."""
    found: dict[str, dict[str, float]] = {}
    async with real_page(url, cookies) as page:
        await page.until("session.ready")
        assert upstream.current is not None
        await upstream.begin_answer()
        sound = Sound(upstream.current, page)
        tasks = [asyncio.create_task(sound.send()), asyncio.create_task(sound.receive())]
        for name, flood in {"calm": None, **FLOODS, "calm again": None}.items():
            others = None
            if flood is not None:
                with_cookies, first, once = flood
                given = (url, cookies if with_cookies else "", first, once, sockets)
                others = multiprocessing.get_context("spawn").Process(target=run_flood, args=given)
                others.start()
            await asyncio.sleep(1.5)
            sound.late_ms.clear()
            await asyncio.sleep(seconds)
            found[name] = figures(sound.late_ms)
            if others is not None:
                others.kill()
                others.join()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--sockets", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with service() as upstream:
            named = {"AZURE_OPENAI_API_KEY": "key", "AZURE_OPENAI_DEPLOYMENT": "dep"}
            server = Server(Path(folder), AZURE_OPENAI_ENDPOINT=upstream.url, VOICEAPP_IDLE_S="3600", **named)
            try:
                await asyncio.to_thread(server.wait)
                cookies = await asyncio.to_thread(signed_in, server.link)
                found = await measure(server.url, cookies, upstream, options.seconds, options.sockets)
                log = await asyncio.to_thread(Path(server.log.name).read_text)
            finally:
                server.stop()
    if options.json:
        sys.stdout.write(json.dumps({"floods": found, "log_lines": log.count("\n")}) + "\n")
    else:
        for name, one in found.items():
            row = "".join(f"{key} {value:7.1f}   " for key, value in one.items())
            sys.stdout.write(f"{name:28}{row}\n")
        sys.stdout.write(f"{log.count(chr(10))} lines in the server's log\n")
    calm = max(found["calm"]["p99"], found["calm again"]["p99"])
    return int(any(one["p99"] > calm + MOST_ADDED_MS for one in found.values()))


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
