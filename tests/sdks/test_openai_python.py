"""The ``openai`` package for Python: both its clients, each with its GA and its beta interface."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI
from openai.types.beta.realtime import RealtimeServerEvent as BetaServerEvent
from openai.types.realtime import RealtimeServerEvent

from tests.sdks.programs import SECOND_OF_AUDIO, Engine, assert_tool, says_42, says_question

API_VERSION = "2025-04-01-preview"
MODEL = "gpt-4o-realtime-preview"  # A name that the package's types for the beta know.
PREVIEW_QUERY = {"api-version": API_VERSION, "deployment": MODEL}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TURN_S = 30


@dataclass
class Client:
    """A connection of the package's and every event it brought."""

    connection: Any
    beta: bool
    events: list[dict[str, Any]] = field(default_factory=list)

    async def until(self, kind: str) -> dict[str, Any]:
        """Read on until an event of this kind; return it."""
        async with asyncio.timeout(TURN_S):
            while True:
                event: dict[str, Any] = (await self.connection.recv()).to_dict(warnings=False)
                self.events.append(event)
                assert event["type"] != "error", event
                if event["type"] == kind:
                    return event

    async def update(self, *, audio: bool, tools: list[dict[str, Any]] | None = None) -> None:
        """Set up the session in the dialect's own words."""
        modalities = (["audio", "text"] if self.beta else ["audio"]) if audio else ["text"]
        session: dict[str, Any] = {"tools": tools or []}
        if self.beta:
            session |= {"modalities": modalities, "input_audio_transcription": {"model": "whisper-1"}}
        else:
            input_audio = {"transcription": {"model": "whisper-1"}}
            session |= {"type": "realtime", "output_modalities": modalities, "audio": {"input": input_audio}}
        await self.connection.session.update(session=session)
        await self.until("session.updated")

    async def say(self, text: str) -> None:
        """Type a message and ask for the answer."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.connection.conversation.item.create(item=item)
        await self.connection.response.create()

    def joined(self, kind: str, name: str = "delta") -> str:
        """Return what the events of a kind bring, put together."""
        return "".join(event[name] for event in self.events if event["type"] == kind)

    def named(self, ga_kind: str) -> str:
        """Return how the connection's dialect calls an event."""
        return ga_kind.replace("output_", "") if self.beta else ga_kind


@asynccontextmanager
async def openai_ga(engine: Engine) -> AsyncIterator[Client]:
    client = AsyncOpenAI(api_key=engine.key, websocket_base_url=engine.url("/openai/v1"))
    async with client.realtime.connect(model=MODEL) as connection:
        yield Client(connection, beta=False)


@asynccontextmanager
async def openai_ga_by_base_url(engine: Engine) -> AsyncIterator[Client]:
    client = AsyncOpenAI(api_key=engine.key, base_url=engine.url("/openai/v1", "http"))
    async with client.realtime.connect(model=MODEL) as connection:
        yield Client(connection, beta=False)


@asynccontextmanager
async def openai_beta(engine: Engine) -> AsyncIterator[Client]:
    client = AsyncOpenAI(api_key=engine.key, websocket_base_url=engine.url("/openai"))
    async with client.beta.realtime.connect(model=MODEL, extra_query=PREVIEW_QUERY) as connection:
        yield Client(connection, beta=True)


def azure(engine: Engine) -> AsyncAzureOpenAI:
    return AsyncAzureOpenAI(
        api_key=engine.key,
        api_version=API_VERSION,
        azure_endpoint=engine.url("", "http"),
        websocket_base_url=engine.url("/openai"),
    )


@asynccontextmanager
async def azure_current(engine: Engine) -> AsyncIterator[Client]:
    """The interface for GA, which this client nevertheless takes to the preview's address."""
    async with azure(engine).realtime.connect(model=MODEL) as connection:
        yield Client(connection, beta=True)


@asynccontextmanager
async def azure_beta(engine: Engine) -> AsyncIterator[Client]:
    async with azure(engine).beta.realtime.connect(model=MODEL) as connection:
        yield Client(connection, beta=True)


CLIENTS = [openai_ga, openai_ga_by_base_url, openai_beta, azure_current, azure_beta]
every_client = pytest.mark.parametrize("open_client", CLIENTS, ids=lambda client: client.__name__)


def types_of(union: Any) -> dict[str, Any]:
    """Return the package's type of each event."""
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in get_args(get_args(union)[0])}


GA_EVENTS = types_of(RealtimeServerEvent)
BETA_EVENTS = types_of(BetaServerEvent)


def check_types(client: Client) -> None:
    """Hold every event against the package's own types; reading them, the package does not."""
    known = BETA_EVENTS if client.beta else GA_EVENTS
    for event in client.events:
        known[event["type"]].model_validate(event)


@pytest.fixture(scope="module")
def speech(spoken_question: Path) -> bytes:
    return spoken_question.read_bytes()


@every_client
async def test_text_turn(engine: Engine, open_client: Any) -> None:
    async with open_client(engine) as client:
        await client.until("session.created")
        await client.update(audio=False)
        await client.say("What is seven times six?")
        done = await client.until("response.done")
    assert done["response"]["status"] == "completed"
    assert says_42(client.joined(client.named("response.output_text.delta")))
    check_types(client)


@every_client
async def test_audio_turn(engine: Engine, open_client: Any, speech: bytes) -> None:
    async with open_client(engine) as client:
        await client.until("session.created")
        await client.update(audio=True)
        for start in range(0, len(speech), 4800):
            await client.connection.input_audio_buffer.append(
                audio=base64.b64encode(speech[start : start + 4800]).decode()
            )
        done = await client.until("response.done")
    assert done["response"]["status"] == "completed"
    assert says_question(client.joined("conversation.item.input_audio_transcription.completed", "transcript"))
    assert says_42(client.joined(client.named("response.output_audio_transcript.delta")))
    kind = client.named("response.output_audio.delta")
    audio = [base64.b64decode(one["delta"]) for one in client.events if one["type"] == kind]
    assert sum(map(len, audio)) > SECOND_OF_AUDIO / 2
    check_types(client)


@every_client
async def test_tool_turn(engine: Engine, open_client: Any) -> None:
    async with open_client(engine) as client:
        await client.until("session.created")
        await client.update(audio=False, tools=[WEATHER])
        await client.say("What is the weather in Paris?")
        call = await client.until("response.function_call_arguments.done")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"celsius": 21}'}
        await client.connection.conversation.item.create(item=output)
        await client.until("response.done")
        await client.connection.response.create()
        await client.until("response.done")
    answer = client.joined(client.named("response.output_text.delta"))
    assert_tool({"calls": [json.loads(call["arguments"])], "answer": answer})
    check_types(client)


async def test_client_secret(engine: Engine) -> None:
    """A secret made over HTTP opens a session that is set up already."""
    maker = AsyncOpenAI(api_key=engine.key, base_url=engine.url("/openai/v1", "http"))
    made = await maker.realtime.client_secrets.create(
        session={"type": "realtime", "model": "any", "output_modalities": ["text"]}
    )
    await maker.close()
    holder = AsyncOpenAI(api_key=made.value, base_url=engine.url("/openai/v1", "http"))
    async with holder.realtime.connect(model=MODEL) as connection:
        client = Client(connection, beta=False)
        created = await client.until("session.created")
        assert created["session"]["output_modalities"] == ["text"]
        await client.say("What is seven times six?")
        await client.until("response.done")
    assert says_42(client.joined("response.output_text.delta"))
    check_types(client)
