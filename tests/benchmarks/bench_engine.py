"""How well and how fast the embedded engine hears and answers; run by hand.

    python -m tests.benchmarks.bench_engine [--repeat 3] [--silence-ms 200] [--speakers 1]
        [--eagerness high] [--json]

Plays the recordings in real time to the engine on a real socket and prints the word error rate, the time from
speech_started to the first words, and the time from speech_stopped to the first audio of the reply. With
an eagerness the words decide when a turn is over, and not a fixed silence.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from tests.parts.engine_parts import RECORDINGS, loaded, quiet, recording, word_errors, words_of  # noqa: E402
from tests.parts.engine_server import EngineServer, RealtimeClient, connect, engine_server  # noqa: E402
from voiceapp.process import Process  # noqa: E402

_MAX_WAIT_MS = 9_000
TRANSCRIPTION = "conversation.item.input_audio_transcription"
# The recordings pause in the middle of sentences, which would make several turns of one.
WHOLE = ("go-forward", "digits", "train", "weather", "timer", "joke", "capital", "thanks", "hello")


async def listen(client: RealtimeClient, times: dict[str, float], done: str) -> None:
    """Note when each kind of event came first, until one of ``done`` came."""
    while True:
        event = await client.until_any()
        times.setdefault(event["type"], time.perf_counter())
        if event["type"] == done:
            return


async def turn(server: EngineServer, name: str, silence_ms: int, eagerness: str | None) -> dict[str, Any]:
    """Hold one spoken turn; return its times in milliseconds and what was heard."""
    async with connect(server) as client:
        detection: dict[str, Any] = {"type": "server_vad", "silence_duration_ms": silence_ms}
        if eagerness is not None:
            detection = {"type": "semantic_vad", "eagerness": eagerness}
        await client.update(audio={"input": {"transcription": {}, "turn_detection": detection}})
        times: dict[str, float] = {}
        reader = asyncio.create_task(listen(client, times, "response.output_audio.delta"))
        await client.speak(
            recording(name) + quiet(_MAX_WAIT_MS if eagerness else silence_ms + 1500), paced=True
        )
        await asyncio.wait_for(reader, 20)
        heard = " ".join(event["transcript"] for event in client.of(f"{TRANSCRIPTION}.completed"))
    started, stopped = times["input_audio_buffer.speech_started"], times["input_audio_buffer.speech_stopped"]
    return {
        "name": name,
        "heard": heard,
        "first_words_ms": round((times[f"{TRANSCRIPTION}.delta"] - started) * 1000),
        "first_audio_ms": round((times["response.output_audio.delta"] - stopped) * 1000),
    }


async def error_rate(server: EngineServer) -> float:
    """Return the word error rate over all recordings, each committed by hand."""
    errors = words = 0
    for name in RECORDINGS:
        async with connect(server) as client:
            await client.update(audio={"input": {"transcription": {}, "turn_detection": None}})
            await client.speak(recording(name))
            await client.send("input_audio_buffer.commit")
            heard = (await client.until(f"{TRANSCRIPTION}.completed"))["transcript"]
        errors += word_errors(words_of(name), heard)
        words += len(words_of(name).split())
    return errors / words


async def measure(server: EngineServer, options: argparse.Namespace) -> dict[str, Any]:
    """Run everything; return the figures."""
    turns: list[dict[str, Any]] = []
    for _ in range(options.repeat):
        for start in range(0, len(WHOLE), options.speakers):
            names = WHOLE[start : start + options.speakers]
            turns += await asyncio.gather(
                *(turn(server, name, options.silence_ms, options.eagerness) for name in names)
            )
    first_audio = [one["first_audio_ms"] for one in turns]
    first_words = [one["first_words_ms"] for one in turns]
    return {
        "word_error_rate": round(await error_rate(server), 4),
        "first_words_ms": {"median": statistics.median(first_words), "max": max(first_words)},
        "first_audio_ms": {"median": statistics.median(first_audio), "max": max(first_audio)},
        "turns_end_by": options.eagerness or f"{options.silence_ms} ms of silence",
        "speakers": options.speakers,
        "turns": turns,
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--silence-ms", type=int, default=200)
    parser.add_argument("--speakers", type=int, default=1)
    parser.add_argument("--eagerness", choices=["low", "medium", "high", "auto"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Process(), engine_server() as server:
        loaded()
        found = asyncio.run(measure(server, options))
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        return
    for one in found.pop("turns"):
        print(f"{one['first_words_ms']:5d} {one['first_audio_ms']:5d}  {one['name']}: {one['heard']}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
