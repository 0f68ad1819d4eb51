"""How many typed turns the embedded engine answers per second of one core; run by hand.

    python -m tests.benchmarks.bench_text [--seconds 5] [--clients 8] [--json]

The engine runs in a process of its own, whose CPU time is what counts: turns per second of it are turns per
second and core. The built-in brain thinks, nothing is spoken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402

from tests.parts.engine_server import connect, engine_server  # noqa: E402
from voiceapp.process import Process  # noqa: E402

TEXT = {"output_modalities": ["text"]}
QUESTIONS = ("Add 2 and 3", "What day is it?", "My name is Ada", "Tell me a joke")


class Elsewhere:
    """The server of another process, and the key that opens it."""

    def __init__(self, address: str, key: str) -> None:
        self.address = address
        self.headers = {"api-key": key}


def serve(pipe: Connection) -> None:
    """Serve until told to stop; tell the address first, and the CPU time whenever asked."""
    with Process(), engine_server() as server:
        pipe.send((server.address, settings.VOICE.engine_api_key))
        while pipe.recv() == "cpu":
            pipe.send(time.process_time())


async def talk(server: Elsewhere, until: float) -> list[float]:
    """Hold typed turns, one after the other; return how long each took in milliseconds.

    A conversation of ten turns is followed by a new one, as with people.
    """
    took: list[float] = []
    while time.perf_counter() < until:
        async with connect(server, additional_headers=server.headers) as client:
            for number in range(10):
                begun = time.perf_counter()
                await client.say(QUESTIONS[number % len(QUESTIONS)])
                await client.send("response.create", response=TEXT)
                await client.until("response.done")
                took.append((time.perf_counter() - begun) * 1000)
    return took


async def measure(server: Elsewhere, pipe: Connection, options: argparse.Namespace) -> dict[str, Any]:
    """Run everything; return the figures."""
    await talk(server, time.perf_counter() + 0.5)
    pipe.send("cpu")
    before, begun = pipe.recv(), time.perf_counter()
    until = begun + options.seconds
    each = await asyncio.gather(*(talk(server, until) for _ in range(options.clients)))
    took = [one for several in each for one in several]
    elapsed = time.perf_counter() - begun
    pipe.send("cpu")
    cpu_s = pipe.recv() - before
    return {
        "turns": len(took),
        "turns_per_s": round(len(took) / elapsed),
        "turns_per_core_s": round(len(took) / cpu_s),
        "turn_ms": {"median": round(statistics.median(took), 1), "max": round(max(took), 1)},
        "clients": options.clients,
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    found = asyncio.run(measure(Elsewhere(*mine.recv()), mine, options))
    mine.send("stop")
    process.join(10)
    print(json.dumps(found, indent=1 if options.json else None))


if __name__ == "__main__":
    main()
