"""Real parts for the tests of the embedded engine: recordings, models, ids, a client of the pure session."""

from __future__ import annotations

import base64
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
from voiceapp.engine.inference.loading import Models, models
from voiceapp.engine.session.actions import Action, Send, Spoken, StartReply
from voiceapp.engine.session.config import Kind
from voiceapp.engine.session.event_types import EMITTED
from voiceapp.engine.session.items import TimedWord
from voiceapp.engine.session.session import EngineSession
from voiceapp.protocol import codec

RECORDINGS = (
    "jfk", "austen-1", "austen-2", "go-forward", "digits", "train", "weather", "timer", "joke", "capital",
    "thanks", "hello",
)  # fmt: skip
_NUMBERS = {"12": "twelve", "10": "ten", "2": "two", "9": "nine", "3": "three", "4": "four", "0": "zero"}


def words_of(name: str) -> str:
    """Return what is said in a recording; skip the test where the recordings are not at hand."""
    path = SHARED / "audio" / "words.json"
    if not path.exists():
        pytest.skip("the recorded speech is not at hand (set SHARED_DIR to the folder that holds audio/)")
    text: str = json.loads(path.read_text())[f"{name}.wav"]
    return text


def recording(name: str, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return a recording in one of the engine's formats; skip where it is not at hand."""
    words_of(name)
    samples, rate = soundfile.read(SHARED / "audio" / f"{name}.wav", dtype="int16")
    return in_format(samples, rate, audio_format)


def in_format(samples: NDArray[np.int16], rate: int, audio_format: AudioFormat) -> bytes:
    """Return 16-bit samples of any rate in one of the engine's formats."""
    data: bytes = soxr.resample(samples, rate, audio_format.rate_hz).astype("<i2").tobytes()
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
        assert {type(action.event) for action in actions if isinstance(action, Send)} <= set(EMITTED)
        events = [json.loads(codec.encode(action.event)) for action in actions if isinstance(action, Send)]
        self.events += events
        self.actions += [action for action in actions if not isinstance(action, Send)]
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
