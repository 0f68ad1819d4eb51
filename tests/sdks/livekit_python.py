"""The ``livekit-plugins-openai`` package: a program of its own, which tells what it had of three turns.

Usage: livekit_python.py openai|azure|azure-preview
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livekit import rtc
from livekit.agents import function_tool, llm
from livekit.plugins.openai.realtime import RealtimeModel
from openai.types.realtime import AudioTranscription
from openai.types.realtime.realtime_audio_input_turn_detection import ServerVad

HOST = f"http://{os.environ['ENGINE_HOST']}"
KEY = os.environ["ENGINE_KEY"]
RATE_HZ = 24_000
TURN_S = 30
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
    raise AssertionError("The session hands over the call; it does not answer it.")


def model(kind: str, modality: str) -> Any:
    """Return the plugin's model in one of its three ways to a service."""
    options: dict[str, Any] = {
        "api_key": KEY,
        "modalities": [modality],
        "input_audio_transcription": AudioTranscription(model="whisper-1"),
        "turn_detection": ServerVad(type="server_vad", create_response=True, interrupt_response=True),
    }
    if kind == "openai":
        return RealtimeModel(base_url=f"{HOST}/openai/v1", **options)
    if kind == "azure-preview":
        options["api_version"] = "2025-04-01-preview"
    return RealtimeModel.with_azure(azure_deployment="any", azure_endpoint=HOST, **options)


@dataclass
class Talk:
    """An open session, what it took the user to say, and the answers that began by themselves."""

    session: Any
    heard: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    answers: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        self.session.on("error", lambda error: errors.append(repr(error.error)))
        self.session.on("generation_created", self.answers.put_nowait)
        self.session.on("input_audio_transcription_completed", self._transcribed)

    def _transcribed(self, event: Any) -> None:
        if event.is_final:
            self.heard.put_nowait(event.transcript)

    async def say(self, **message: str) -> Any:
        """Type a message and return the answer that begins."""
        context = self.session.chat_ctx.copy()
        context.add_message(**message)
        return await self.reply(context)

    async def reply(self, context: Any) -> Any:
        """Bring the service's conversation to this state and return the answer that begins."""
        await self.session.update_chat_ctx(context)
        return await self.session.generate_reply()


async def read(answer: Any) -> tuple[str, int, list[Any]]:
    """Follow an answer to its end: its words, the bytes of its audio, and its calls."""
    words, audio = "", 0
    async for message in answer.message_stream:
        words += "".join([str(piece) async for piece in message.text_stream])
        audio += sum([len(frame.data.tobytes()) async for frame in message.audio_stream])
    return words, audio, [call async for call in answer.function_stream]


@asynccontextmanager
async def open_talk(kind: str, modality: str) -> AsyncIterator[Talk]:
    """Open a session; the turns in it must end in time."""
    async with asyncio.timeout(TURN_S):
        service = model(kind, modality)
        session = service.session()
        try:
            yield Talk(session)
        finally:
            await session.aclose()
            await service.aclose()


async def main(kind: str) -> None:
    """Hold the conversation and print what came of it."""
    told: dict[str, Any] = {"errors": errors}
    async with open_talk(kind, "text") as talk:
        answer = await talk.say(role="user", content="What is seven times six?")
        told["text"] = {"answer": (await read(answer))[0]}
        await talk.session.update_tools([get_weather])
        answer = await talk.say(role="user", content="What is the weather in Paris?")
        calls = (await read(answer))[2]
        context = talk.session.chat_ctx.copy()
        for call in calls:
            output = '{"celsius": 21}'
            context.items.append(
                llm.FunctionCallOutput(call_id=call.call_id, name=call.name, output=output, is_error=False)
            )
        words = (await read(await talk.reply(context)))[0]
        told["tool"] = {"answer": words, "calls": [json.loads(call.arguments) for call in calls]}
    async with open_talk(kind, "audio") as talk:
        speech = await asyncio.to_thread(Path(os.environ["SPEECH"]).read_bytes)
        for start in range(0, len(speech), 4800):
            piece = speech[start : start + 4800]
            talk.session.push_audio(rtc.AudioFrame(piece, RATE_HZ, 1, len(piece) // 2))
        words, audio, _ = await read(await talk.answers.get())
        told["audio"] = {"answer": words, "bytes": audio, "heard": await talk.heard.get()}
    print(json.dumps(told))


asyncio.run(main(sys.argv[1]))
