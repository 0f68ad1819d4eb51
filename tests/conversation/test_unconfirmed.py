"""What was sent and is not confirmed: kept in one order, given again when it may be lost, and never twice."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.relay_talk import saved, shown, tell, upstream
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.actions import Action, SendSpeech, SendUpstream
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ItemRecord
from voiceapp.conversation.unconfirmed import MAX_EVENTS, SILENCE_MS, SPEECH_MS, Unconfirmed
from voiceapp.protocol import codec
from voiceapp.types import JsonObject

FRAME_MS = 20
PUSH_TO_TALK: JsonObject = {"audio": {"input": {"turn_detection": None}}}
HANDS_FREE: JsonObject = {"audio": {"input": {"turn_detection": {"type": "server_vad"}}}}


def frame(number: int, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return a loud frame that is told from others by its length of one value."""
    samples = np.full(FRAME_MS * audio_format.rate_hz // 1000, 8_000 + number, "<i2").tobytes()
    return samples if audio_format is AudioFormat.PCM16 else g711.encode(samples, audio_format)


class Talk:
    """A conversation, and what reaches its service: frames, and events by their type."""

    def __init__(self, session: JsonObject, audio_format: AudioFormat = AudioFormat.PCM16) -> None:
        assistant = AssistantConfig(slug="a", name="A", turn_detection={"type": "server_vad"})
        ids = (f"id_{n}" for n in count())
        self.talk = Conversation(assistant, ids, microphone=audio_format)
        self.session = session
        self.given: list[bytes | str] = []
        self.actions: list[Action] = []

    def connect(self) -> None:
        self.given.clear()
        self.service({"type": "session.created", "session": {}})
        self.service({"type": "session.updated", "session": self.session})
        self.given = [one for one in self.given if one != "session.update"]

    def service(self, event: JsonObject) -> None:
        self._do(tell(self.talk, event))

    def page(self, kind: str, **fields: Any) -> None:
        self._do(self.talk.receive_client(codec.client_event({"type": kind, **fields}), 0))

    def hear(self, *frames: bytes) -> None:
        for one in frames:
            if self.talk.hear(one):
                self.given.append(one)

    def type(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self.page("conversation.item.create", item={"type": "message", "role": "user", "content": content})

    def lose(self) -> None:
        # The relay says it when the connection is lost, and again when the next one is there.
        self._do(self.talk.disconnected(0))
        self._do(self.talk.disconnected(0))

    def _do(self, actions: Iterable[Any]) -> None:
        for action in actions:
            self.actions.append(action)
            if isinstance(action, SendSpeech):
                self.given.append(action.frame)
            elif isinstance(action, SendUpstream):
                self.given.append(action.fields["type"])

    def warned(self) -> bool:
        return "speech_lost" in [one.get("code") for one in shown(self.actions)]


SPOKEN = [frame(number) for number in range(5)]
TURN = [*SPOKEN, "input_audio_buffer.commit", "response.create"]


def speak(talk: Talk) -> None:
    talk.hear(*SPOKEN)
    talk.page("input_audio_buffer.commit")
    talk.page("response.create")


@pytest.mark.parametrize("audio_format", AudioFormat)
def test_a_turn_that_is_spoken_before_there_is_a_service_reaches_it_in_order(
    audio_format: AudioFormat,
) -> None:
    talk = Talk(PUSH_TO_TALK, audio_format)
    talk.hear(first := frame(1, audio_format))
    talk.page("input_audio_buffer.commit")
    talk.page("response.create")
    talk.type("And?")
    talk.hear(second := frame(2, audio_format))
    talk.connect()
    assert talk.given == [
        first, "input_audio_buffer.commit", "response.create", "conversation.item.create", second
    ]  # fmt: skip


def test_a_turn_that_was_sent_and_not_committed_is_sent_again_and_answered() -> None:
    talk = Talk(PUSH_TO_TALK)
    talk.connect()
    speak(talk)
    talk.lose()
    talk.connect()
    assert talk.given == TURN


def test_a_turn_that_was_committed_is_not_sent_again() -> None:
    talk = Talk(PUSH_TO_TALK)
    talk.connect()
    speak(talk)
    talk.service({"type": "input_audio_buffer.committed", "item_id": "item_1"})
    talk.hear(next_turn := frame(9))
    talk.lose()
    talk.connect()
    assert talk.given == [next_turn, "response.create"]


def test_the_beginning_of_a_turn_survives_a_service_that_is_lost_in_the_middle_of_it() -> None:
    for session in (PUSH_TO_TALK, HANDS_FREE):
        talk = Talk(session)
        talk.connect()
        talk.service({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 0})
        talk.hear(*SPOKEN[:2])
        talk.lose()
        talk.hear(*SPOKEN[2:])
        talk.connect()
        assert talk.given == SPOKEN
        assert not talk.warned()


def test_of_silence_only_the_last_is_given_to_the_next_service() -> None:
    talk = Talk(HANDS_FREE)
    talk.connect()
    talk.hear(*(frame(number) for number in range(400)))
    talk.lose()
    talk.connect()
    assert len(talk.given) == SILENCE_MS // FRAME_MS
    assert talk.given[-1] == frame(399)


def test_what_the_user_took_back_is_not_said_again() -> None:
    talk = Talk(PUSH_TO_TALK)
    talk.connect()
    talk.hear(*SPOKEN)
    talk.page("input_audio_buffer.clear")
    talk.hear(kept := frame(9))
    talk.lose()
    talk.connect()
    assert talk.given == [kept]


def test_speech_that_does_not_fit_is_missed_in_words() -> None:
    talk = Talk(PUSH_TO_TALK)
    talk.connect()
    for number in range(SPEECH_MS // FRAME_MS + 100):
        talk.hear(frame(number % 50))
    talk.lose()
    talk.connect()
    assert talk.warned()
    assert SPEECH_MS <= len(talk.given) * FRAME_MS <= SPEECH_MS + 500


def test_a_room_that_was_silent_for_long_is_not_missed() -> None:
    talk = Talk(PUSH_TO_TALK)
    for _ in range(SPEECH_MS // FRAME_MS + 100):
        talk.hear(bytes(960))
    talk.connect()
    assert not talk.warned()


@pytest.mark.parametrize("own_ids", [False, True])
def test_a_typed_message_is_given_again_unless_it_was_echoed(*, own_ids: bool) -> None:
    talk = Talk(HANDS_FREE)
    talk.connect()
    for text in ("one", "two"):
        talk.type(text)
    [first, second] = [one["item"] for one in upstream(talk.actions) if one["type"].endswith("item.create")]
    echo = {**first, "id": "item_of_the_service"} if own_ids else first
    talk.service({"type": "conversation.item.added", "item": echo, "previous_item_id": None})
    talk.service({"type": "conversation.item.done", "item": echo, "previous_item_id": None})
    talk.lose()
    talk.actions.clear()
    talk.connect()
    sent = [one["item"] for one in upstream(talk.actions) if one["type"] == "conversation.item.create"]
    assert [item["content"][0]["text"] for item in sent] == ["one", "two"]
    assert sent[1]["id"] == second["id"]


def test_what_was_typed_and_reached_nobody_is_kept_at_the_end() -> None:
    for connected in (True, False):
        talk = Talk(HANDS_FREE)
        if connected:
            talk.connect()
        talk.type("one")
        assert [record.generated_text for record in saved(talk.talk.finish(5), ItemRecord)] == ["one"]


def test_a_service_that_confirms_nothing_is_not_remembered_without_end() -> None:
    kept = Unconfirmed(AudioFormat.PCM16)
    for _ in range(3 * MAX_EVENTS):
        kept.sent(codec.client_event({"type": "input_audio_buffer.commit"}))
    assert len(kept.entries) == MAX_EVENTS


class Turns:
    """Turns that are spoken and committed, and a service that plays what comes to it."""

    def __init__(self) -> None:
        self.talk = Talk(PUSH_TO_TALK)
        self.talk.connect()
        self.spoken: list[list[bytes]] = [[]]
        self.confirmed = 0
        self.numbers = count()

    def hear(self) -> None:
        self.spoken[-1].append(frame(next(self.numbers)))
        self.talk.hear(self.spoken[-1][-1])

    def commit(self) -> None:
        if self.spoken[-1]:
            self.talk.page("input_audio_buffer.commit")
            self.spoken.append([])

    def lose(self) -> None:
        self.talk.lose()
        self.talk.connect()
        self.before = self.confirmed

    before = 0
    """The turns that earlier connections confirmed."""

    def served(self) -> list[list[bytes]]:
        """Return the turns of this connection, and the frames of the one that is not committed."""
        turns: list[list[bytes]] = [[]]
        for one in self.talk.given:
            if isinstance(one, bytes):
                turns[-1].append(one)
            elif one == "input_audio_buffer.commit":
                turns.append([])
        return turns

    def confirm(self) -> None:
        if self.confirmed - self.before < len(self.served()) - 1:
            self.confirmed += 1
            self.talk.service({"type": "input_audio_buffer.committed", "item_id": f"i{self.confirmed}"})


@given(st.lists(st.sampled_from(["hear", "commit", "lose", "confirm"]), max_size=40))
def test_whenever_the_line_breaks_every_turn_is_committed_whole(steps: list[str]) -> None:
    turns = Turns()
    for step in [*steps, "lose"]:
        getattr(turns, step)()
        assert turns.served() == turns.spoken[turns.before :]


def test_other_settings_in_mid_turn_send_nothing_again() -> None:
    """Tools of a server come while the user speaks, and the service takes them."""
    talk = Talk(PUSH_TO_TALK)
    talk.connect()
    talk.hear(*SPOKEN)
    talk.type("And?")
    given = list(talk.given)
    talk.service({"type": "session.updated", "session": PUSH_TO_TALK})
    assert talk.given == given


def test_all_that_was_typed_before_there_was_a_service_is_kept_at_the_end() -> None:
    talk = Talk(HANDS_FREE)
    talk.type("one")
    talk.type("two")
    records = saved(talk.talk.finish(5), ItemRecord)
    assert [record.generated_text for record in records] == ["one", "two"]
    assert len({record.item_id for record in records} - {""}) == 2


def test_what_is_said_while_somebody_else_takes_over_is_kept_for_them() -> None:
    talk = Talk(HANDS_FREE)
    talk.connect()
    said = [frame(number % 50) for number in range(200)]
    talk.talk.hand_over(AssistantConfig(slug="b", name="B"), [], {}, silence_ms=30_000)
    talk.hear(*said)
    talk.lose()
    talk.connect()
    assert [one for one in talk.given if isinstance(one, bytes)] == said


def test_a_turn_that_is_over_and_not_committed_is_speech_as_well() -> None:
    talk = Talk(HANDS_FREE)
    talk.connect()
    talk.service({"type": "input_audio_buffer.speech_started", "item_id": "i", "audio_start_ms": 0})
    said = [frame(number % 50) for number in range(300)]
    talk.hear(*said)
    talk.service({"type": "input_audio_buffer.speech_stopped", "item_id": "i", "audio_end_ms": 6_000})
    talk.lose()
    talk.connect()
    assert talk.given == said
