"""Whatever a service breaks or leaves out of an answer: the next typed turn is answered soon."""

from __future__ import annotations

import copy
import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.examples import examples
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import Save, SendBrowser, SendUpstream
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import DecodeError
from voiceapp.protocol import codec, dialects
from voiceapp.protocol.dialects import Dialect, Half
from voiceapp.types import JsonObject

SOON_MS = 40_000
"""Within which the next turn is answered, on a clock that the test drives."""

WHERE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
ITEM = {"id": "item_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
ANSWER: list[JsonObject] = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "response_id": "resp_1", "output_index": 0, "item": ITEM},
    {"type": "conversation.item.added", "item": ITEM, "previous_item_id": None},
    {"type": "response.output_audio_transcript.delta", **WHERE, "delta": "Good "},
    {"type": "response.output_audio.delta", **WHERE, "delta": "AAAA"},
    {"type": "response.output_audio_transcript.done", **WHERE, "transcript": "Good day."},
    {"type": "response.output_audio.done", **WHERE},
    {"type": "conversation.item.done", "item": {**ITEM, "status": "completed"}, "previous_item_id": None},
    {"type": "response.output_item.done", "response_id": "resp_1", "output_index": 0, "item": ITEM},
    {"type": "response.done", "response": {
        "id": "resp_1", "status": "completed", "conversation_id": "conv", "status_details": None,
        "usage": {"total_tokens": 5}, "metadata": {}, "output": [{**ITEM, "status": "completed"}],
    }},
]  # fmt: skip
LAST = len(ANSWER) - 1


class Scene:
    """A conversation that has asked for an answer, and what it did so far."""

    def __init__(self, silence_ms: float = 30_000) -> None:
        ids = (f"relay_{n}" for n in count())
        self.talk = Conversation(AssistantConfig(slug="a", name="A"), ids, silence_ms=silence_ms)
        self.now = 0.0
        self.actions: list[Any] = []
        self.service({"type": "session.created", "session": {}})
        self.service({"type": "session.updated", "session": {}})
        self.page({"type": "response.create"})
        assert self.asked() == 1

    def service(self, fields: JsonObject, *, raw: str = "") -> None:
        """Let an event come over the wire, as a connection reads it."""
        self.now += 20
        try:
            event, text = codec.decode_server(raw or json.dumps({"event_id": "e", **fields}))
        except DecodeError:
            return
        self.actions += self.talk.receive_server(event, text, self.now)

    def page(self, fields: JsonObject) -> None:
        self.actions += self.talk.receive_client(codec.client_event(fields), self.now)

    def asked(self) -> int:
        """Count the responses that were asked for."""
        sent = [one.fields["type"] for one in self.actions if isinstance(one, SendUpstream)]
        return sent.count("response.create")

    def next_turn_is_asked_for(self) -> None:
        before = self.asked()
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]}
        self.page({"type": "conversation.item.create", "item": item})
        self.page({"type": "response.create"})
        until = self.now + SOON_MS
        while self.asked() == before and self.now < until:
            self.now += 250
            self.actions += self.talk.tick(self.now)
        assert self.asked() > before, "the next turn was never asked for"

    def said_in_words(self) -> bool:
        """Whether the page was told that an answer is lost."""
        messages = [json.loads(one.text) for one in self.actions if isinstance(one, SendBrowser)]
        return any(one["type"] == "notice" and one["code"] == "response_lost" for one in messages)

    def kept(self) -> dict[str, Any]:
        records = [one.record for one in self.actions if isinstance(one, Save)]
        return {getattr(one, "item_id", ""): one for one in records}


def test_an_ordinary_answer_is_followed_at_once() -> None:
    scene = Scene()
    for event in ANSWER:
        scene.service(event)
    before = scene.now
    scene.next_turn_is_asked_for()
    assert scene.now == before
    assert not scene.said_in_words()
    assert scene.kept()["item_1"].generated_text == "Good day."


RESPONSES: list[tuple[str, Any]] = [
    (member, odd)
    for member in ("usage", "status_details", "output", "metadata", "status", "conversation_id", "id")
    for odd in ("none", "x", [], 5, None, True, {"error": "rate limited"}, [1])
]


@pytest.mark.parametrize(("member", "odd"), RESPONSES)
def test_an_end_with_an_odd_member_is_an_end(member: str, odd: Any) -> None:
    scene = Scene()
    for event in ANSWER[:-1]:
        scene.service(event)
    done = copy.deepcopy(ANSWER[-1])
    done["response"][member] = odd
    scene.service(done)
    before = scene.now
    scene.next_turn_is_asked_for()
    assert scene.now == before, "the end was not taken for one"


@pytest.mark.parametrize("number", ["NaN", "1e999", '"\\ud83d"', '"\x02"'])
def test_an_end_that_is_no_json_is_an_end(number: str) -> None:
    scene = Scene()
    for event in ANSWER[:-1]:
        scene.service(event)
    scene.service({}, raw=json.dumps(ANSWER[-1]).replace('"total_tokens": 5', f'"total_tokens": {number}'))
    before = scene.now
    scene.next_turn_is_asked_for()
    assert scene.now == before


@pytest.mark.parametrize("created", [{}, {"response": {"status": "in_progress"}}, {"response": "x"}, None])
def test_an_end_without_a_readable_beginning_is_an_end(created: JsonObject | None) -> None:
    scene = Scene()
    if created is not None:
        scene.service({"type": "response.created", **created})
    scene.service(ANSWER[-1])
    before = scene.now
    scene.next_turn_is_asked_for()
    assert scene.now == before


@pytest.mark.parametrize("length", range(len(ANSWER)))
def test_an_answer_that_stops_anywhere_is_given_up_in_words(length: int) -> None:
    scene = Scene()
    for event in ANSWER[:length]:
        scene.service(event)
    scene.next_turn_is_asked_for()
    assert scene.said_in_words()
    kept = scene.kept()
    assert all(record.status != "in_progress" for record in kept.values())


def test_an_answer_of_which_something_comes_is_not_given_up() -> None:
    scene = Scene()
    for event in ANSWER[:4]:
        scene.service(event)
    for _ in range(10):
        scene.now += 25_000
        scene.actions += scene.talk.tick(scene.now)
        scene.service(ANSWER[4])
    assert not scene.said_in_words()


@pytest.mark.parametrize("silence_ms", [5_000.0, 30_000.0, 390_000.0])
def test_a_service_that_may_be_silent_for_longer_is_waited_for(silence_ms: float) -> None:
    scene = Scene(silence_ms)
    scene.service(ANSWER[0])
    scene.now += silence_ms - 1_000
    scene.actions += scene.talk.tick(scene.now)
    assert not scene.said_in_words()
    scene.now += 2_000
    scene.actions += scene.talk.tick(scene.now)
    assert scene.said_in_words()


def test_a_cancel_that_came_too_early_stops_no_later_response() -> None:
    """The page stops an answer whose beginning never comes; the next one is not meant."""
    scene = Scene()
    scene.page({"type": "response.cancel"})
    scene.service(ANSWER[-1])
    scene.page({"type": "response.create"})
    before = len(scene.actions)
    scene.service({"type": "response.created", "response": {"id": "resp_2"}})
    sent = [one.fields["type"] for one in scene.actions[before:] if isinstance(one, SendUpstream)]
    assert "response.cancel" not in sent


def test_a_fault_of_the_service_in_place_of_the_end_is_not_waited_out() -> None:
    scene = Scene()
    for event in ANSWER[:6]:
        scene.service(event)
    scene.service({"type": "error", "error": {"type": "server_error", "code": None, "message": "Oops."}})
    before = scene.now
    scene.next_turn_is_asked_for()
    assert scene.now - before < 5_000


def test_the_late_end_of_a_response_that_was_given_up_ends_no_other() -> None:
    scene = Scene()
    for event in ANSWER[:6]:
        scene.service(event)
    scene.next_turn_is_asked_for()
    asked = scene.asked()
    scene.service(ANSWER[-1])
    scene.page({"type": "response.create"})
    assert scene.asked() == asked, "the response that is under way was taken for ended"


ODD = st.sampled_from([None, 5, "x", [], {}, True, [None], {"a": 1}]).map(copy.deepcopy)


USER = {"id": "item_u", "type": "message", "role": "user", "status": "completed",
        "content": [{"type": "input_audio", "transcript": None}]}  # fmt: skip
SPOKEN: list[JsonObject] = [
    {"type": "input_audio_buffer.speech_started", "item_id": "item_u", "audio_start_ms": 0},
    {"type": "input_audio_buffer.speech_stopped", "item_id": "item_u", "audio_end_ms": 900},
    {"type": "input_audio_buffer.committed", "item_id": "item_u", "previous_item_id": None},
    {"type": "conversation.item.added", "item": USER, "previous_item_id": None},
    {"type": "conversation.item.done", "item": USER, "previous_item_id": None},
    {"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u", "content_index": 0,
     "transcript": "Hello there."},
]  # fmt: skip
PASSED = "time passes"
"""Stands among events for a pause that is longer than any that is waited for."""


@st.composite
def mutated_turns(draw: st.DrawFn, dialect: Dialect, untouched: int) -> list[JsonObject]:
    """An ordinary turn as a service spells it, of which all but the first ``untouched`` events may break.

    One to three faults: members missing or odd, one and two levels deep; events lost, doubled, moved, late,
    or all from one on.
    """
    turn = [*SPOKEN, *ANSWER]
    named = [{"event_id": "e", **event} for event in turn]
    spelt = [one for event in named for one in dialects.from_ga(event, dialect, Half.SERVER)]
    kept, turn = copy.deepcopy(spelt[:untouched]), copy.deepcopy(spelt[untouched:])
    for _ in range(draw(st.integers(1, 3))):
        if turn:
            _break(draw, turn, draw(st.integers(0, len(turn) - 1)))
    return [*kept, *(event for event in turn if event)]


def _break(  # noqa: C901 - one step for each fault
    draw: st.DrawFn, turn: list[JsonObject], place: int
) -> None:
    event = turn[place]
    match draw(st.sampled_from(["missing", "odd", "inner", "lost", "doubled", "moved", "late", "cut"])):
        case "missing":
            event.pop(draw(st.sampled_from(sorted(event) or [""])), None)
        case "odd":
            event[draw(st.sampled_from(sorted(event) or ["x"]))] = draw(ODD)
        case "inner":
            for inner in [value for value in event.values() if isinstance(value, dict) and value][:1]:
                name = draw(st.sampled_from(sorted(inner)))
                deeper = inner[name]
                if isinstance(deeper, dict) and deeper and draw(st.booleans()):
                    deeper[draw(st.sampled_from(sorted(deeper)))] = draw(ODD)
                else:
                    inner[name] = draw(ODD)
        case "lost":
            del turn[place]
        case "doubled":
            turn.insert(place, copy.deepcopy(event))
        case "moved":
            turn.insert(draw(st.integers(0, len(turn))), turn.pop(place))
        case "late":
            turn.insert(place, {"type": PASSED})
        case "cut":
            del turn[place:]


def play(turn: list[JsonObject], dialect: Dialect) -> Scene:
    """Let a service that may speak another dialect say a turn, as a connection reads it."""
    scene = Scene()
    for event in turn:
        if event.get("type") == PASSED:
            scene.now += SOON_MS
            scene.actions += scene.talk.tick(scene.now)
            continue
        try:
            read = dialects.to_ga(codec.decode_server_fields(json.dumps(event)), dialect, Half.SERVER)
        except DecodeError:
            continue
        for fields in read:
            scene.service({}, raw=json.dumps(fields))
    return scene


DIALECTS = pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])


@DIALECTS
@settings(max_examples=examples(300))
@given(data=st.data())
def test_whatever_is_broken_the_next_turn_is_answered(dialect: Dialect, data: st.DataObject) -> None:
    scene = play(data.draw(mutated_turns(dialect, 0)), dialect)
    scene.next_turn_is_asked_for()
    scene.actions += scene.talk.finish(scene.now)
    assert all(record.status != "in_progress" for record in scene.kept().values())


@DIALECTS
@settings(max_examples=examples(200))
@given(data=st.data())
def test_what_came_whole_is_kept_and_shown_once_whatever_breaks_after_it(
    dialect: Dialect, data: st.DataObject
) -> None:
    spoken = len([one for event in SPOKEN for one in dialects.from_ga(event, dialect, Half.SERVER)])
    turn = data.draw(mutated_turns(dialect, spoken))
    scene = play(turn, dialect)
    scene.next_turn_is_asked_for()
    scene.actions += scene.talk.finish(scene.now)
    texts = [getattr(record, "generated_text", "") for record in scene.kept().values()]
    assert texts.count("Hello there.") == 1
    assert texts.count("Good day.") <= 1
    shown = [json.loads(one.text) for one in scene.actions if isinstance(one, SendBrowser)]
    transcribed = [one for one in shown if one["type"].endswith("transcription.completed")]
    assert len(transcribed) == 1
    sent = [event for event in turn if str(event.get("type")).endswith("transcript.delta")]
    assert len([one for one in shown if one["type"].endswith("transcript.delta")]) <= len(sent)
