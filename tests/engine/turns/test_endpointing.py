"""Whether a sentence is over: by its words, and by the engine's own ear and voice."""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.dtmf_tones import RATE, press
from tests.parts.engine_parts import in_format, loaded, quiet, recording
from tests.parts.engine_server import EngineServer, RealtimeClient, connect
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.hearing.ear import Ear
from voiceapp.engine.hearing.utterance import Utterance
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.turns.endpointing import Ending, judge


@pytest.mark.parametrize(
    "text",
    [
        "What time is it?", "What's the weather in Paris?", "Tell me a joke.", "I want a ticket.", "Yes.",
        "No.", "Thank you.", "Set a timer for ten minutes.", "My name is Ada.", "Can you hear me?",
        "How are you?", "My number is 555 123 4567.", "Two plus two.", "If it rains, take a coat.",
        "Is the train late?", "That would be great.", "Book a table for four people please.",
        "I live in London.", "Could you repeat that?", "It is five o'clock.", "No, thanks.",
    ],
)  # fmt: skip
def test_whole_sentences_are_over(text: str) -> None:
    assert judge(text) is Ending.OVER


@pytest.mark.parametrize(
    "text",
    ["Um", "I want to", "Well, uh.", "Please book a", "I would like the", "Tell me about", "And then I",
     "We went home because", "The train to Boston and", "It costs more than", "My", "What is", "How can",
     "What I really want is", "I'd like", "I'm", "It is very", "Send it to my."],
)  # fmt: skip
def test_words_that_announce_others_hang(text: str) -> None:
    assert judge(text) is Ending.HANGING


@pytest.mark.parametrize(
    "text",
    ["I want.", "I need", "Please give.", "My number is 5 5 5", "My number is five five five one.",
     "If it rains tomorrow", "The weather in,", "Could you please?", "I was thinking...", "Please tell"],
)  # fmt: skip
def test_sentences_without_their_end_are_unfinished(text: str) -> None:
    assert judge(text) is Ending.UNFINISHED


@pytest.mark.parametrize(
    "text",
    ["", "Where are you from", "Turn it on", "Yes, I can.", "Do you know what time it is?", "A ticket.",
     "That is all I need", "The train", "My name is Ada,", "On Monday, Tuesday,"],
)  # fmt: skip
def test_what_could_be_all_is_open(text: str) -> None:
    assert judge(text) is Ending.OPEN


@given(st.text(max_size=200))
def test_anything_is_judged(text: str) -> None:
    assert judge(text) in Ending


def say(text: str) -> bytes:
    return loaded().voice.speak(text).samples


UNFINISHED = (
    "I want to", "I would like", "Can you tell me the", "My name is", "Please book a table for",
    "We went home because", "The weather in", "I was wondering if", "Set a timer for", "It depends on",
    "My number is five five five", "I need", "Let me think, um", "Show me the way to", "He said that they",
    "If it rains tomorrow", "Could you please", "What I really want is", "There are two apples and",
    "She gave it to her",
)  # fmt: skip
WHOLE = (
    "What time is it?", "Tell me a joke.", "I want a ticket.", "My name is John.", "Can you hear me?",
    "Set a timer for ten minutes.", "Thank you very much.", "I live in London.", "Please turn off the light.",
    "How much does it cost?", "That is all I need.", "Where are you from?", "The train leaves at nine.",
    "No, that is wrong.", "What is two plus two?", "Book a table for four people.", "I do not understand.",
    "Say that again please.", "Good morning.", "Let us go home now.",
)  # fmt: skip


def test_what_the_voice_says_and_the_ear_hears_is_judged_rightly() -> None:
    def heard(text: str) -> Ending:
        ear = Ear(loaded().detector, AudioFormat.PCM16)
        ear.hear(quiet(300) + say(text) + quiet(200))
        return judge(asyncio.run(Utterance(loaded(), ear, 0).words(ear.end_ms, Priority.FINAL)))

    # The models infer beside each other.
    with ThreadPoolExecutor(2) as threads:
        unfinished = dict(zip(UNFINISHED, threads.map(heard, UNFINISHED), strict=True))
        whole = dict(zip(WHOLE, threads.map(heard, WHOLE), strict=True))
    assert Ending.OVER not in unfinished.values(), unfinished
    assert sum(one in (Ending.UNFINISHED, Ending.HANGING) for one in unfinished.values()) >= 18, unfinished
    assert sum(one is Ending.OVER for one in whole.values()) >= 14, whole
    assert sum(one in (Ending.UNFINISHED, Ending.HANGING) for one in whole.values()) <= 1, whole


# -- over the wire --------------------------------------------------------------------------------------


async def listen(client: RealtimeClient, eagerness: str, audio: bytes) -> None:
    detection: Any = {"type": "semantic_vad", "eagerness": eagerness, "create_response": False}
    await client.update(audio={"input": {"turn_detection": detection, "transcription": {}}})
    await client.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())


@pytest.mark.parametrize(("eagerness", "turns"), [("low", 1), ("medium", 1), ("auto", 1), ("high", 2)])
async def test_a_pause_in_mid_sentence_divides_only_for_the_eager(
    engine: EngineServer, eagerness: str, turns: int
) -> None:
    audio = quiet(300) + say("I want") + quiet(1500) + say("a ticket.") + quiet(9000)
    async with connect(engine) as client:
        await listen(client, eagerness, audio)
        for _ in range(turns):
            await client.until("conversation.item.input_audio_transcription.completed")
        said = client.of("conversation.item.input_audio_transcription.completed")
        assert len(client.of("input_audio_buffer.speech_stopped")) == turns
        assert "want" in said[0]["transcript"].lower()
        # Alone, "a ticket" is hard to understand.
        assert ("ticket" in said[0]["transcript"].lower()) is (turns == 1)


@pytest.mark.parametrize("name", ["joke", "thanks", "weather", "hello"])
async def test_a_finished_question_is_answered_sooner_than_an_unfinished_one(
    engine: EngineServer, name: str
) -> None:
    waits = []
    for audio in (recording(name), say("I want to")):
        async with connect(engine) as client:
            await listen(client, "medium", quiet(300) + audio + quiet(5000))
            stopped = await client.until("input_audio_buffer.speech_stopped")
            waits.append(stopped["audio_end_ms"] - 300 - len(audio) / 48)
    finished, unfinished = waits
    # Recordings end with a little silence of their own.
    assert finished < 700
    assert unfinished > 3000


async def test_a_speech_with_pauses_is_divided_at_its_sentences(engine: EngineServer) -> None:
    # A key at the end tells when everything was heard.
    end = in_format(press("#", 100), RATE, AudioFormat.PCM16) + quiet(100)
    turns = {}
    for detection in (
        {"type": "server_vad"},
        {"type": "semantic_vad", "eagerness": "medium"},
        {"type": "semantic_vad", "eagerness": "low"},
    ):
        async with connect(engine) as client:
            await client.update(audio={"input": {"turn_detection": {**detection, "create_response": False}}})
            await client.speak(recording("jfk") + quiet(8500) + end)
            await client.until("input_audio_buffer.dtmf_event_received")
            turns[detection.get("eagerness", "")] = len(client.of("input_audio_buffer.speech_stopped"))
    assert turns["low"] <= turns["medium"] < turns[""]
