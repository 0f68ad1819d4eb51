"""What one response asks for differs from the session for that response alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.engine_parts import Client, error_of, start_reply
from tests.parts.engine_server import GA, PREVIEW, EngineServer, connect
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs

TOOL = {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object"}}


def test_its_words_tools_voice_and_limit_are_its_own() -> None:
    client = Client()
    client.update(instructions="Be kind.", tools=[{**TOOL, "name": "wait"}], tool_choice="none")
    client.say("Hello")
    wishes: dict[str, Any] = {
        "instructions": "Be brief.", "tools": [TOOL], "tool_choice": "required", "max_output_tokens": 7,
        "metadata": {"a": "b"}, "audio": {"output": {"voice": "ash", "format": {"type": "audio/pcma"}}},
    }  # fmt: skip
    (created,) = client.send("response.create", response=wishes)
    asked, response = start_reply(client), created["response"]
    assert asked.request.instructions == "Be brief."
    assert [tool.name for tool in asked.request.tools] == ["look"]
    assert asked.request.tool_choice == "required"
    assert asked.speaking is not None
    assert (asked.speaking.voice, asked.speaking.audio_format) == ("ash", AudioFormat.PCMA)
    assert response["metadata"] == {"a": "b"}
    assert response["max_output_tokens"] == 7
    assert response["audio"]["output"] == {"format": {"type": "audio/pcma"}, "voice": "ash"}
    client.send("response.cancel")
    (updated,) = client.update()
    session = updated["session"]
    assert (session["instructions"], session["tool_choice"]) == ("Be kind.", "none")
    assert session["audio"]["output"]["format"] == {"type": "audio/pcm", "rate": 24000}
    client.send("response.create")
    asked = start_reply(client)
    assert (asked.request.instructions, asked.request.tool_choice) == ("Be kind.", "none")
    assert [tool.name for tool in asked.request.tools] == ["wait"]
    assert asked.speaking is not None
    assert asked.speaking.audio_format is AudioFormat.PCM16


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"audio": {"output": {"format": {"type": "audio/opus"}}}}, "invalid_value"),
        ({"output_modalities": ["audio", "text"]}, "invalid_value"),
        ({"max_output_tokens": 0}, "integer_below_min_value"),
        ({"conversation": "mine"}, "invalid_value"),
        ({"bogus": 1}, "unknown_parameter"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "object_above_max_properties"),
        ({"metadata": {"k": "x" * 513}}, "string_above_max_length"),
    ],
)
def test_a_wrong_wish_is_refused_and_begins_nothing(wish: dict[str, Any], code: str) -> None:
    client = Client()
    assert error_of(client.send("response.create", response=wish))["code"] == code
    assert client.of_kind("response.created") == []


@pytest.mark.parametrize("path", [GA, PREVIEW, f"{PREVIEW}&dialect=contract"])
async def test_one_answer_is_spoken_in_another_format(engine: EngineServer, path: str) -> None:
    ga = path == GA
    wish: dict[str, Any] = (
        {"audio": {"output": {"format": {"type": "audio/pcmu"}}}}
        if ga else {"output_audio_format": "g711_ulaw"}
    )  # fmt: skip
    kind = "response.audio.delta" if path == PREVIEW else "response.output_audio.delta"
    async with connect(engine, path) as client:
        for number, wished in enumerate((wish, {})):
            await client.say("Add 2 and 3")
            await client.send("response.create", response=wished)
            done = (await client.until("response.done"))["response"]
            said = client.audio(kind)
            client.events.clear()
            if number == 0:
                assert level_dbfs(g711.decode(said, AudioFormat.PCMU)) > -35
                told = done["audio"]["output"]["format"] if ga else done["output_audio_format"]
                assert told == ({"type": "audio/pcmu"} if ga else "g711_ulaw")
                seconds = len(said) / 8000
            else:
                # The same sentence, again as the session has it.
                assert len(said) / 48_000 == pytest.approx(seconds, abs=0.3)
