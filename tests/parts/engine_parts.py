"""Real parts for the tests of the embedded engine: recordings, models, ids, a client of the pure session."""

from __future__ import annotations

import base64
import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

from tests.parts.places import SHARED
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import from_float, to_float
from voiceapp.engine.inference.loading import Models, models
from voiceapp.engine.inference.recogniser import Recognition
from voiceapp.engine.session.actions import Action, SendEvent, Spoken, StartReply
from voiceapp.engine.session.config import Kind
from voiceapp.engine.session.event_types import EMITTED
from voiceapp.engine.session.items import TimedWord
from voiceapp.engine.session.session import EngineSession
from voiceapp.protocol import codec

RECORDINGS = {
    "jfk": "And so my fellow Americans, ask not what your country can do for you, "
    "ask what you can do for your country.",
    "austen-1": "And Mister John Dashwood had then leisure to consider "
    "how much there might be prudently in his power to do for them.",
    "austen-2": "Had he married a more amiable woman, "
    "he might have been made still more respectable than he was.",
    "go-forward": "Go forward ten meters.",
    "digits": "Two, nine, three, four, zero.",
    "train": "What time does the next train to Manchester leave?",
    "weather": "What is the weather going to be like in Paris this weekend?",
    "timer": "Set a timer for twelve minutes and remind me to check the oven.",
    "joke": "Tell me a short joke about computers.",
    "capital": "What is the capital of Australia and how many people live there?",
    "thanks": "Thank you very much, that is all I needed today.",
    "hello": "Hello, can you hear me clearly?",
}
"""What the product's own voice says to the tests, by name. A sound file of the same name in the folder
``audio`` beside the repository, where there is one, holds another voice with the same words."""
LEAD_MS, TAIL_MS = 300, 200
"""The silence before and after what a recording holds."""
_NUMBERS = {"12": "twelve", "10": "ten", "2": "two", "9": "nine", "3": "three", "4": "four", "0": "zero"}


def words_of(name: str) -> str:
    """Return what is said in a recording."""
    return RECORDINGS[name]


@functools.cache
def recording(name: str, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return a sentence as the product's own voice says it, with a little silence around it."""
    return quiet(LEAD_MS, audio_format) + say(words_of(name), audio_format) + quiet(TAIL_MS, audio_format)


@functools.cache
def say(text: str, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return any words as the product's own voice says them."""
    samples = np.frombuffer(loaded().voice.speak(text).samples, "<i2")
    return in_format(samples, 24_000, audio_format)


def other_voices(audio_format: AudioFormat = AudioFormat.PCM16) -> dict[str, bytes]:
    """Return the same sentences said by others, as far as they are at hand."""
    files = {name: SHARED / "audio" / f"{name}.wav" for name in RECORDINGS}
    found = {name: soundfile.read(file, dtype="int16") for name, file in files.items() if file.exists()}
    return {name: in_format(samples, rate, audio_format) for name, (samples, rate) in found.items()}


def in_format(samples: NDArray[np.int16], rate: int, audio_format: AudioFormat) -> bytes:
    """Return 16-bit samples of any rate in one of the engine's formats."""
    # In floating point: to 16-bit samples the library adds random dither.
    data = from_float(soxr.resample(to_float(samples.astype("<i2").tobytes()), rate, audio_format.rate_hz))
    return data if audio_format is AudioFormat.PCM16 else g711.encode(data, audio_format)


def quiet(ms: int, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return digital silence."""
    return audio_format.silence * (audio_format.rate_hz * ms // 1000)


def plain_words(text: str) -> list[str]:
    """Return words in lower case without punctuation; numbers as words, titles written out."""
    text = text.lower().replace("mr.", "mister").replace("-", "")
    return [_NUMBERS.get(word, word) for word in re.findall(r"[a-z0-9']+", text)]


def word_errors(said: str, heard: str) -> int:
    """Return how many words must be changed, added or removed to make one text the other."""
    one, two = plain_words(said), plain_words(heard)
    row = list(range(len(two) + 1))
    for i, first in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, second in enumerate(two, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (first != second))
    return row[-1]


def heard_as(transcript: str) -> str:
    """Return the name of the recording that a transcript is of, ``""`` where it is nearer to none than half.

    How many of its words the ear gets right differs between processors, which round its weights differently;
    which of the sentences it heard does not.
    """
    shares = {
        name: word_errors(text, transcript) / len(plain_words(text)) for name, text in RECORDINGS.items()
    }
    name = min(shares, key=shares.__getitem__)
    return name if shares[name] < 0.5 else ""


def understood(said: str, heard: str) -> bool:
    """Return whether a transcript has more than half of the words right: it is of what was said."""
    return word_errors(said, heard) < len(plain_words(said)) / 2


class FixedWords:
    """A recogniser that always hears the same, whatever a processor makes of the real one's weights.

    Each text is what is heard of speech of at least so many milliseconds, the silence around it included.
    """

    def __init__(self, *heard: tuple[int, str]) -> None:
        self._heard = sorted(heard)

    def recognise(self, samples: NDArray[np.float32], draft: tuple[int, ...] = ()) -> Recognition:
        """Return the last text that so much speech is enough for."""
        texts = [text for least_ms, text in self._heard if samples.size >= least_ms * 16]
        return Recognition(texts[-1] if texts else "")


def hear_only(monkeypatch: pytest.MonkeyPatch, *heard: tuple[int, str]) -> None:
    """Let the engine's sessions that begin now recognise nothing but these words."""
    recogniser: Any = FixedWords(*heard)
    with_it = dataclasses.replace(loaded(), recogniser=recogniser)

    async def ready() -> Models:
        return with_it

    monkeypatch.setattr(models(), "ready", ready)


@functools.cache
def loaded() -> Models:
    """Return the real models, loaded once for the whole process."""
    return models().wait()


def counting_ids() -> Callable[[str], str]:
    """Return an id maker whose ids are predictable."""
    counters: dict[str, itertools.count[int]] = {}

    def new_id(prefix: str) -> str:
        return f"{prefix}_{next(counters.setdefault(prefix, itertools.count(1)))}"

    return new_id


class Client:
    """Talks to a pure ``EngineSession`` in JSON, as a client on a socket would."""

    def __init__(
        self,
        kind: Kind = "realtime",
        *,
        kind_is_fixed: bool = False,
        new_id: Callable[[str], str] | None = None,
    ) -> None:
        self.session = EngineSession(
            session_id="sess_1", conversation_id="conv_1", model="test", expires_at=4_000_000_000,
            new_id=new_id or counting_ids(), kind=kind, kind_is_fixed=kind_is_fixed,
        )  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self.actions: list[Action] = []
        self.take(self.session.open())

    def take(self, actions: list[Action]) -> list[dict[str, Any]]:
        """Keep what a call brought; return its events, each of which the engine has declared."""
        assert {type(action.event) for action in actions if isinstance(action, SendEvent)} <= set(EMITTED)
        events = [
            json.loads(codec.encode(action.event)) for action in actions if isinstance(action, SendEvent)
        ]
        self.events += events
        self.actions += [action for action in actions if not isinstance(action, SendEvent)]
        return events

    def send(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Send a client event; return the server's events."""
        return self.take(self.session.receive(codec.client_event({"type": kind, **fields})))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the events so far of one type."""
        return [event for event in self.events if event["type"] == kind]

    def update(self, **session: Any) -> list[dict[str, Any]]:
        """Send a ``session.update``."""
        return self.send("session.update", session={"type": "realtime", **session})

    def say(self, text: str) -> list[dict[str, Any]]:
        """Add a user's typed message."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        return self.send("conversation.item.create", item=item)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Return the types of events."""
    return [event["type"] for event in events]


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one error among events."""
    errors = [event["error"] for event in events if event["type"] == "error"]
    assert len(errors) == 1, events
    error: dict[str, Any] = errors[0]
    return error


MESSAGE_START = ["response.output_item.added", "conversation.item.added", "response.content_part.added"]

MESSAGE_END = ["response.content_part.done", "conversation.item.done", "response.output_item.done"]


def spoken(ms: int, *words: tuple[str, float, float]) -> Spoken:
    return Spoken(quiet(ms), tuple(TimedWord(*word) for word in words))


def start_reply(client: Client) -> StartReply:
    return [action for action in client.actions if isinstance(action, StartReply)][-1]


def bring(client: Client, fact: Any, response_id: str = "resp_1") -> list[dict[str, Any]]:
    return client.take(client.session.reply_progressed(response_id, fact))


def spoken_turn(client: Client, *, start_ms: int = 0, end_ms: int = 1000) -> list[dict[str, Any]]:
    """The user says something; returns the events up to the transcript's being due."""
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(end_ms - start_ms)).decode())
    client.take(client.session.speech_started(start_ms, start_ms + 64))
    return client.take(client.session.speech_stopped(end_ms))


def speaking_client(words: int = 4) -> Client:
    """A client to whom one second of four words was spoken, one word each 250 ms; the reply goes on."""
    client = Client()
    client.say("Hello")
    client.send("response.create")
    for number in range(words):
        word = (f"word{number} ", number * 250.0, number * 250.0 + 250.0)
        bring(client, spoken(250, word))
    return client


def message(name: str) -> dict[str, Any]:
    return {"id": name, "type": "message", "role": "user", "content": [{"type": "input_text", "text": name}]}
