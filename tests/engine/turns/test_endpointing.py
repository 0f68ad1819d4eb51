"""Whether a sentence is over: by its words, and by the engine's own ear and voice."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.dtmf_tones import RATE, press
from tests.parts.engine_parts import hear_only, in_format, quiet, say, words_of
from tests.parts.engine_server import EngineServer, RealtimeClient, connect
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.turns.endpointing import Completeness, judge


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
    assert judge(text) is Completeness.OVER


@pytest.mark.parametrize(
    "text",
    ["Um", "I want to", "Well, uh.", "Please book a", "I would like the", "Tell me about", "And then I",
     "We went home because", "The train to Boston and", "It costs more than", "My", "What is", "How can",
     "What I really want is", "I'd like", "I'm", "It is very", "Send it to my."],
)  # fmt: skip
def test_words_that_announce_others_hang(text: str) -> None:
    assert judge(text) is Completeness.HANGING


@pytest.mark.parametrize(
    "text",
    ["I want.", "I need", "Please give.", "My number is 5 5 5", "My number is five five five one.",
     "If it rains tomorrow", "The weather in,", "Could you please?", "I was thinking...", "Please tell"],
)  # fmt: skip
def test_sentences_without_their_end_are_unfinished(text: str) -> None:
    assert judge(text) is Completeness.UNFINISHED


@pytest.mark.parametrize(
    "text",
    ["", "Where are you from", "Turn it on", "Yes, I can.", "Do you know what time it is?", "A ticket.",
     "That is all I need", "The train", "My name is Ada,", "On Monday, Tuesday,"],
)  # fmt: skip
def test_what_could_be_all_is_open(text: str) -> None:
    assert judge(text) is Completeness.OPEN


@given(st.text(max_size=200))
def test_anything_is_judged(text: str) -> None:
    assert judge(text) in Completeness


@pytest.mark.parametrize(
    "text",
    ["I want to.", "Can you tell me the?", "My name is.", "We went home because,", "The weather in,",
     "Set a timer for.", "My number is five, five, five.", "I need.", "Let me think, um,",
     "He said that they,", "If it rains to-morrow.", "Could you please?",
     "What I really want is,", "There are two apples and,"],
)  # fmt: skip
def test_a_sign_that_the_recogniser_adds_ends_no_sentence(text: str) -> None:
    """It punctuates what it is given as if that were all."""
    assert judge(text) in (Completeness.UNFINISHED, Completeness.HANGING)


@pytest.mark.parametrize("text", ["My name is John,", "I live in London,", "What is too plus, too?"])
def test_a_whole_sentence_with_a_wrong_sign_is_not_taken_for_a_part(text: str) -> None:
    assert judge(text) is Completeness.OPEN


# -- over the wire --------------------------------------------------------------------------------------


async def listen(client: RealtimeClient, eagerness: str, audio: bytes) -> None:
    detection: Any = {"type": "semantic_vad", "eagerness": eagerness, "create_response": False}
    await client.update(audio={"input": {"turn_detection": detection, "transcription": {}}})
    await client.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())


@pytest.mark.parametrize(("eagerness", "turns"), [("low", 1), ("medium", 1), ("auto", 1), ("high", 2)])
async def test_a_pause_in_mid_sentence_divides_only_for_the_eager(
    engine: EngineServer, eagerness: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear_only(monkeypatch, (0, "I want"), (1500, "I want a ticket."))
    audio = quiet(300) + say("I want") + quiet(1500) + say("a ticket.") + quiet(9000)
    async with connect(engine) as client:
        await listen(client, eagerness, audio)
        for _ in range(turns):
            await client.until("conversation.item.input_audio_transcription.completed")
        said = client.of("conversation.item.input_audio_transcription.completed")
        assert len(client.of("input_audio_buffer.speech_stopped")) == turns
        assert {one["transcript"] for one in said} == {"I want a ticket." if turns == 1 else "I want."}


@pytest.mark.parametrize("name", ["joke", "thanks", "weather", "hello"])
async def test_a_finished_question_is_answered_sooner_than_an_unfinished_one(
    engine: EngineServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    for text in (words_of(name), "I want to"):
        hear_only(monkeypatch, (0, text))
        audio = say(text)
        async with connect(engine) as client:
            await listen(client, "medium", quiet(300) + audio + quiet(5000))
            stopped = await client.until("input_audio_buffer.speech_stopped")
            waits.append(stopped["audio_end_ms"] - 300 - len(audio) / 48)
    finished, unfinished = waits
    assert finished < 700
    assert unfinished > 3000


async def test_a_speech_with_pauses_is_divided_at_its_sentences(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ("And so, my fellow Americans,", "ask not what your country can do for you.",
             "Ask what you can do for your country.")  # fmt: skip
    hear_only(monkeypatch, (0, parts[0]), (3000, f"{parts[0]} {parts[1]}"))
    speech = b"".join(say(part) + quiet(900) for part in parts)
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
            await client.speak(speech + quiet(8500) + end)
            await client.until("input_audio_buffer.dtmf_event_received")
            turns[detection.get("eagerness", "")] = len(client.of("input_audio_buffer.speech_stopped"))
    assert turns[""] == 3
    assert turns["low"] <= turns["medium"] < 3
