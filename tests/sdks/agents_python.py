"""The ``openai-agents`` package: a program of its own, which tells what it had of three turns."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import function_tool, set_tracing_disabled
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession

URL = f"ws://{os.environ['ENGINE_HOST']}/openai/v1/realtime?model=any"
TURN_S = 30
calls: list[dict[str, str]] = []
errors: list[str] = []


class ErrorsKept(logging.Handler):
    """Keeps what the package only logs: an event that it could not take, say."""

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record."""
        errors.append(self.format(record))


logging.basicConfig(level=logging.ERROR, handlers=[ErrorsKept()])


@function_tool
async def get_weather(city: str) -> str:
    """Get the weather of a city."""
    calls.append({"city": city})
    return '{"celsius": 21}'


def session(modality: str) -> Any:
    """Return a session that is not open yet; the answers are ``audio`` or ``text``."""
    agent = RealtimeAgent(name="Clerk", instructions="You are brief.", tools=[get_weather])
    turns = {"type": "server_vad", "interrupt_response": True}
    hearing = {"transcription": {"model": "whisper-1"}, "turn_detection": turns}
    settings = {"output_modalities": [modality], "audio": {"input": hearing}}
    model = {"url": URL, "api_key": os.environ["ENGINE_KEY"], "initial_model_settings": settings}
    return RealtimeRunner(agent).run(model_config=model)


@dataclass
class Turn:
    """What a turn brought: the answer, the bytes of its audio, and what the session took the user to say."""

    answer: str = ""
    audio: int = 0
    heard: str = ""
    responses: int = 0
    cuts: int = 0

    def take(self, event: Any) -> None:
        """Note what an event brings."""
        if event.type == "audio":
            self.audio += len(event.audio.data)
        elif event.type == "audio_interrupted":
            self.cuts += 1
        elif event.type == "error":
            errors.append(str(event.error))
        elif event.type == "agent_end":
            self.responses += 1
        elif event.type in ("history_updated", "history_added"):
            # Once a transcript is complete, the package fetches its item again for the history.
            for item in event.history if event.type == "history_updated" else [event.item]:
                if getattr(item, "role", "") == "user":
                    self.heard = "".join(getattr(part, "transcript", "") or "" for part in item.content)
        elif event.type == "raw_model_event":
            self.take_raw(event.data)

    def take_raw(self, data: Any) -> None:
        """Note what an event of the connection brings."""
        if data.type in ("output_text_delta", "transcript_delta"):
            self.answer += data.delta
        elif data.type in ("error", "exception"):
            errors.append(str(data))


async def turn(running: RealtimeSession, *, responses: int = 1, spoken: bool = False) -> Turn:
    """Follow the session through its next responses, and to the words of a turn that was spoken."""
    had = Turn()
    async with asyncio.timeout(TURN_S):
        async for event in running:
            had.take(event)
            if errors or (had.responses == responses and (had.heard or not spoken)):
                break
    return had


async def speak(running: RealtimeSession) -> None:
    """Ask the question aloud."""
    speech = await asyncio.to_thread(Path(os.environ["SPEECH"]).read_bytes)
    for start in range(0, len(speech), 4800):
        await running.send_audio(speech[start : start + 4800])


async def cut_in(running: RealtimeSession) -> Turn:
    """Put the question while a story is told: two responses end, the story and the answer."""
    await running.send_message("Tell me a story.")
    async for event in running:
        if event.type == "audio":
            break
    await speak(running)
    return await turn(running, responses=2, spoken=True)


async def main() -> None:
    """Hold the conversation and print what came of it."""
    told: dict[str, Any] = {"errors": errors}
    set_tracing_disabled(True)
    async with await session("text") as running:
        await running.send_message("What is seven times six?")
        told["text"] = {"answer": (await turn(running)).answer}
        await running.send_message("What is the weather in Paris?")
        told["tool"] = {"answer": (await turn(running, responses=2)).answer, "calls": calls}
    async with await session("audio") as running:
        await speak(running)
        had = await turn(running, spoken=True)
        told["audio"] = {"answer": had.answer, "bytes": had.audio, "heard": had.heard}
    async with await session("audio") as running:
        had = await cut_in(running)
        told["cut"] = {"answer": had.answer, "heard": had.heard, "cuts": had.cuts}
    print(json.dumps(told))


asyncio.run(main())
