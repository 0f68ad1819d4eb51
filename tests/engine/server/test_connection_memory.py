"""A connection to the engine that is over gives its memory back at once, however it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from tests.parts.engine_parts import recording
from tests.parts.engine_server import GA, PREVIEW, EngineHere, RealtimeClient, connect
from tests.parts.remains import without_collections

pytestmark = pytest.mark.django_db(transaction=True)

CONNECTIONS: Final = (
    "voiceapp.engine.hearing.", "voiceapp.engine.server.connection", "voiceapp.engine.server.consumer",
    "voiceapp.engine.session.", "voiceapp.engine.speaking.", "voiceapp.serving.consumer",
)  # fmt: skip


async def _nothing(client: RealtimeClient) -> None:
    """Leave at once."""


async def _typed(client: RealtimeClient) -> None:
    await client.update(output_modalities=["text"])
    await client.say("What is two plus three?")
    await client.send("response.create")
    await client.until("response.done")


async def _spoken_to(client: RealtimeClient) -> None:
    await client.say("Good day.")
    await client.send("response.create")
    await client.until("response.output_audio.delta", "response.audio.delta")


async def _heard(client: RealtimeClient) -> None:
    """Speak a turn, and leave within the answer."""
    await client.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    await client.speak(recording("joke"), paced=True)
    await client.finish_turn()
    await client.until("response.output_audio.delta")


async def _while_it_hears(client: RealtimeClient) -> None:
    await client.speak(recording("joke"), paced=True)
    await client.until("input_audio_buffer.speech_started")


async def _refused(client: RealtimeClient) -> None:
    await client.send("no.such.event")
    await client.until("error")
    await client.connection.send("{}")
    await client.until("error")


async def _cut_off(client: RealtimeClient) -> None:
    await _spoken_to(client)
    client.connection.transport.abort()


WAYS: Final[dict[str, tuple[str, Callable[[RealtimeClient], Awaitable[None]]]]] = {
    "at once": (GA, _nothing),
    "typed": (GA, _typed),
    "while it speaks": (GA, _spoken_to),
    "while it speaks, in the preview's dialect": (PREVIEW, _spoken_to),
    "after a spoken turn": (GA, _heard),
    "while it hears": (GA, _while_it_hears),
    "refused events": (GA, _refused),
    "cut off": (GA, _cut_off),
}


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_left_of_a_connection(engine_here: EngineHere, unlogged: None, way: str) -> None:
    path, go = WAYS[way]

    async def connection() -> None:
        async with connect(engine_here, path) as client:
            await go(client)

    with without_collections(*CONNECTIONS) as remains:
        await connection()
        await remains.none()
