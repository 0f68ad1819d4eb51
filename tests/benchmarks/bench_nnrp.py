"""How many partial results ``/nnrp`` sends per second of one core; run by hand.

    python -m tests.benchmarks.bench_nnrp [--seconds 5] [--operations 8] [--clients 1]

The server runs in a process of its own, whose CPU time is what counts; its engine makes chunks without doing
anything for them, so that what is measured is the protocol: chunk to event to packet to WebSocket message.
Prints one JSON object. Exits with 1 below 2,000 a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import AsyncGenerator
from multiprocessing.connection import Connection

from voiceapp.types import JsonObject

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

import uvloop  # noqa: E402

from tests.parts.nnrp_parts import TOKEN, Door, Scripted, nnrp_app, serving  # noqa: E402
from voiceapp.clients.nnrp import connect  # noqa: E402

LEAST = 2_000
CHUNKS = 500
"""Partial results of one operation: about a page of text."""
WORDS = ("The ", "quick ", "brown ", "fox ", "jumps ", "over ", "the ", "lazy ", "dog. ")


async def engine(_: JsonObject) -> AsyncGenerator[JsonObject]:
    """Make the chunks of one answer."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for number in range(CHUNKS):
        reason = "stop" if number == CHUNKS - 1 else None
        delta = {"content": WORDS[number % len(WORDS)]}
        yield {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
        # As chunks of a service would, each comes in a turn of the loop of its own.
        await asyncio.sleep(0)


def serve(pipe: Connection) -> None:
    """Serve until told to stop; tell the address first, and the CPU time whenever asked."""

    async def run() -> None:
        async with serving(nnrp_app(Door(Scripted(engine)))) as url:
            pipe.send(url)
            loop = asyncio.get_running_loop()
            over = asyncio.Event()

            def answer() -> None:
                while pipe.recv() == "cpu":
                    pipe.send(time.process_time())
                loop.call_soon_threadsafe(over.set)

            threading.Thread(target=answer, daemon=True).start()
            await over.wait()

    uvloop.run(run())


async def load(url: str, operations: int, until: float) -> tuple[int, list[float]]:
    """Keep so many operations under way; return the partial results and the first ones' delays in ms."""
    count, first = 0, list[float]()

    async with connect(url, TOKEN) as client:
        session = await client.open_session()

        async def one() -> None:
            nonlocal count
            while time.perf_counter() < until:
                begun = time.perf_counter()
                running = await session.start(
                    {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
                )
                told = False
                async for event in running.events():
                    if not told:
                        first.append((time.perf_counter() - begun) * 1000)
                        told = True
                    count += event["type"] == "response.output_text.delta"

        async with asyncio.TaskGroup() as group:
            for _ in range(operations):
                group.create_task(one())
    return count, first


def drive(url: str, operations: int, seconds: float, pipe: Connection) -> None:
    """One client process."""
    pipe.send(uvloop.run(load(url, operations, time.perf_counter() + seconds)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--operations", type=int, default=8, help="under way at once for each client")
    parser.add_argument("--clients", type=int, default=1, help="processes that ask")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    pipes = [context.Pipe() for _ in range(options.clients)]
    clients = [
        context.Process(target=drive, args=(url, options.operations, options.seconds, child), daemon=True)
        for _, child in pipes
    ]
    here.send("cpu")
    before, began = here.recv(), time.perf_counter()
    for client in clients:
        client.start()
    results = [parent.recv() for parent, _ in pipes]
    took = time.perf_counter() - began
    here.send("cpu")
    cpu_s = here.recv() - before
    here.send("stop")
    server.join(10)
    count = sum(found for found, _ in results)
    per_core = count / cpu_s
    print(
        json.dumps(
            {
                "partial_results": count,
                "seconds": round(took, 2),
                "server_cpu_s": round(cpu_s, 2),
                "partial_results_per_s_and_core": round(per_core),
                "first_result_ms_median": round(
                    statistics.median(delay for _, delays in results for delay in delays), 1
                ),
                "at_once": options.operations * options.clients,
            },
            indent=2,
        )
    )
    sys.exit(per_core < LEAST)


if __name__ == "__main__":
    main()
