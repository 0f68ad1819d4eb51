"""The answer is begun while the silence that ends a turn is not over yet, and given up if speech goes on."""

from __future__ import annotations

import asyncio

import pytest

from tests.parts.chat_server import chat_provider, chat_server, sse, text
from tests.parts.engine_parts import kinds, loaded, quiet
from tests.parts.engine_server import EngineServer, connect
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.text import providers
from voiceapp.text.chat.provider import ChatProvider


def say(words: str) -> bytes:
    return loaded().voice.speak(words).samples


async def test_an_answer_is_prepared_in_a_pause_and_thrown_away_when_the_user_goes_on(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("Nice to hear that. And then "))
    async with chat_server(script=script, hold=asyncio.Event()) as chat:
        provider = chat_provider(chat.base_url)

        async def this_provider(*given: object) -> ChatProvider:
            return provider

        monkeypatch.setattr(providers, "provider", this_provider)
        turns = {"type": "server_vad", "silence_duration_ms": 2500}
        async with connect(engine) as client:
            await client.update(audio={"input": {"turn_detection": turns, "transcription": {}}})
            await client.speak(quiet(300) + say("I live in London.") + quiet(900))
            # Only a pause so far, and somebody thinks already.
            await wait_until(lambda: len(chat.requests) == 1)
            assert "london" in chat.requests[0]["messages"][-1]["content"].lower()
            more = say("And I work on Monday.")
            half = len(more) // 4 * 2
            await client.speak(more[:half])
            await asyncio.wait_for(chat.left.wait(), PATIENCE_S)
            assert len(chat.requests) == 1
            await client.speak(more[half:] + quiet(900))
            await wait_until(lambda: len(chat.requests) == 2)
            heard = chat.requests[1]["messages"][-1]["content"].lower()
            assert "london" in heard
            assert "monday" in heard
            await client.speak(quiet(2500))
            await client.until("response.output_audio.delta")
            order = kinds(client.events)
            assert order.count("input_audio_buffer.speech_stopped") == 1
            assert order.count("response.created") == 1
            # What was prepared is what is said: nobody was asked again.
            assert len(chat.requests) == 2
