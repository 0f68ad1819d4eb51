"""Whatever the order of client events and facts: the session stays legal and all that it says is valid."""

from __future__ import annotations

import base64
import functools
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts import contracts
from tests.parts.engine_parts import Client, quiet
from tests.parts.engine_steps import EngineSteps
from tests.parts.examples import examples
from voiceapp.engine.session.actions import Transcribe
from voiceapp.engine.session.transcripts import Segment
from voiceapp.protocol.dialects import Dialect, Half, from_ga

AUDIO = base64.b64encode(quiet(400)).decode()

STEPS = st.sampled_from(
    [
        "append", "commit", "clear", "speak", "stop", "words", "no_words", "say", "create", "create_text",
        "aside", "cancel", "cancel_other", "opened", "text", "audio", "audio", "call", "output", "finish",
        "fail", "truncate", "truncate_far", "delete", "retrieve", "duplicate", "push_to_talk", "hands_free",
        "voice", "nonsense", "idle", "key", "become", "aside_heard",
    ]
)  # fmt: skip


class World(EngineSteps):
    """Drives a client through steps and checks every event against what went before."""

    def __init__(self) -> None:
        self.engine = Client()
        self.clock_ms = 0
        self.active: dict[str, bool] = {}
        self.open_items: set[str] = set()
        self.known_items: list[str] = []
        self.call_ids: list[str] = []
        self.seen = 0
        self.check()

    def step(self, name: str, pick: int) -> None:
        getattr(self, f"do_{name}")(pick)
        self.check()

    # -- the user and the application ---

    def do_append(self, pick: int) -> None:
        self.engine.send("input_audio_buffer.append", audio=AUDIO)
        self.clock_ms += 400

    def do_commit(self, pick: int) -> None:
        self.engine.send("input_audio_buffer.commit")

    def do_clear(self, pick: int) -> None:
        self.engine.send("input_audio_buffer.clear")

    def do_speak(self, pick: int) -> None:
        session = self.engine.session
        self.engine.take(session.speech_started(max(0, self.clock_ms - 300), self.clock_ms))

    def do_words(self, pick: int) -> None:
        if wanted := self.pending(Transcribe):
            item_id = wanted[pick % len(wanted)].item_id
            self.engine.take(self.engine.session.transcript_delta(item_id, "what"))
            segments = [Segment("what is", 0, 200), Segment("this", 220, 300)]
            self.engine.take(self.engine.session.transcript_final(item_id, "what is this", segments))

    def do_say(self, pick: int) -> None:
        self.engine.say("hello")

    def do_create(self, pick: int) -> None:
        self.engine.send("response.create")

    def do_create_text(self, pick: int) -> None:
        self.engine.send("response.create", response={"output_modalities": ["text"], "max_output_tokens": 9})

    def do_aside(self, pick: int) -> None:
        self.engine.send("response.create", response={"conversation": "none", "input": []})

    def do_aside_heard(self, pick: int) -> None:
        part = {"type": "input_audio", "audio": AUDIO}
        item = {"type": "message", "role": "user", "content": [part]}
        self.engine.send("response.create", response={"conversation": "none", "input": [item]})

    def do_key(self, pick: int) -> None:
        self.engine.take(self.engine.session.key_pressed("5", pick))

    def do_become(self, pick: int) -> None:
        self.engine.send("session.update", session={"type": "transcription"})

    def do_cancel(self, pick: int) -> None:
        self.engine.send("response.cancel")

    def do_cancel_other(self, pick: int) -> None:
        self.engine.send("response.cancel", response_id=f"resp_{pick}")

    def do_output(self, pick: int) -> None:
        call_id = self.call_ids[pick % len(self.call_ids)] if self.call_ids else "call_unknown"
        item = {"type": "function_call_output", "call_id": call_id, "output": "1"}
        self.engine.send("conversation.item.create", item=item)

    def do_truncate(self, pick: int) -> None:
        self.engine.send(
            "conversation.item.truncate", item_id=self.item(pick), content_index=0, audio_end_ms=pick
        )

    def do_truncate_far(self, pick: int) -> None:
        self.engine.send(
            "conversation.item.truncate", item_id=self.item(pick), content_index=0, audio_end_ms=10**7
        )

    def do_delete(self, pick: int) -> None:
        self.engine.send("conversation.item.delete", item_id=self.item(pick))

    def do_retrieve(self, pick: int) -> None:
        self.engine.send("conversation.item.retrieve", item_id=self.item(pick))

    def do_duplicate(self, pick: int) -> None:
        item = {"id": self.item(pick), "type": "message", "role": "system", "content": []}
        self.engine.send("conversation.item.create", item=item)

    def do_push_to_talk(self, pick: int) -> None:
        self.engine.update(audio={"input": {"turn_detection": None}})

    def do_hands_free(self, pick: int) -> None:
        detection = {"type": "server_vad", "interrupt_response": bool(pick % 2), "idle_timeout_ms": 5000}
        self.engine.update(audio={"input": {"turn_detection": detection, "transcription": {}}})

    def do_voice(self, pick: int) -> None:
        self.engine.update(audio={"output": {"voice": "ash" if pick % 2 else "alloy"}})

    def do_idle(self, pick: int) -> None:
        self.engine.take(self.engine.session.idle())

    def do_nonsense(self, pick: int) -> None:
        self.engine.send("session.update", session={"type": "realtime", "audio": {"input": {"x": pick}}})

    # -- what is known ---

    def item(self, pick: int) -> str:
        return self.known_items[pick % len(self.known_items)] if self.known_items else "nothing"

    # -- the law ---

    def check(self) -> None:
        for event in self.engine.events[self.seen :]:
            self.obey(event)
            validate(event)
        self.seen = len(self.engine.events)
        writing = [name for name, writes in self.active.items() if writes]
        assert len(writing) <= 1

    def obey(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == "response.created":
            response = event["response"]
            self.active[response["id"]] = response["conversation_id"] is not None
        elif kind == "response.done":
            del self.active[event["response"]["id"]]
            assert event["response"]["status"] != "in_progress"
            assert all(item["status"] != "in_progress" for item in event["response"]["output"])
        elif kind.startswith("response."):
            assert event["response_id"] in self.active
            item_id = event["item"]["id"] if "item" in event else event["item_id"]
            if kind == "response.output_item.added":
                assert item_id not in self.open_items
                self.open_items.add(item_id)
            elif kind == "response.output_item.done":
                self.open_items.remove(item_id)
            else:
                assert item_id in self.open_items
            if kind == "response.function_call_arguments.done":
                self.call_ids.append(event["call_id"])
        elif kind == "conversation.item.added":
            self.known_items.append(event["item"]["id"])
        elif kind == "error":
            assert event["error"]["message"]


@functools.cache
def validator(kind: str) -> Any:
    try:
        schema = contracts.Realtime().schema(kind)
    except StopIteration:
        return None
    return jsonschema.validators.validator_for(schema)(schema)


def validate(event: dict[str, Any]) -> None:
    for fields in from_ga(event, Dialect.CONTRACT, Half.SERVER):
        if (found := validator(fields["type"])) is not None:
            found.validate(fields)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 40)), max_size=40))
def test_any_interleaving_is_legal_and_valid(steps: list[tuple[str, int]]) -> None:
    world = World()
    for name, pick in steps:
        world.step(name, pick)


def test_the_contract_file_is_what_validates() -> None:
    realtime = contracts.Realtime()
    assert "response.done" in realtime.server
    assert validator("response.done") is not None
    with pytest.raises(jsonschema.ValidationError):
        validator("response.done").validate({"type": "response.done"})
