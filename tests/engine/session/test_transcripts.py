"""Sessions that only write down what they hear: the pure session, then the real one in every dialect."""

from __future__ import annotations

import base64
from typing import Any

import jsonschema
import pytest

from tests.parts.contracts import Realtime
from tests.parts.engine_parts import (
    Client,
    error_of,
    heard_as,
    kinds,
    quiet,
    recording,
    word_errors,
)
from tests.parts.engine_server import GA, PREVIEW, TRANSCRIPTION, EngineServer, connect
from voiceapp.engine.hearing.ear import SEGMENT_MS
from voiceapp.engine.session.actions import Listen, StartReply
from voiceapp.engine.session.transcripts import Segment
from voiceapp.protocol.dialects import Dialect, Half, from_ga

GA_INTENT = "/openai/v1/realtime?intent=transcription"
PREVIEW_INTENT = "/openai/realtime?api-version=2025-04-01-preview&intent=transcription"


def heard_turn(client: Client) -> str:
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.take(client.session.speech_started(0, 64))
    client.take(client.session.speech_stopped(1000))
    (committed,) = (event for event in client.events if event["type"] == "input_audio_buffer.committed")
    return str(committed["item_id"])


def test_its_session_has_an_ear_and_no_mouth() -> None:
    client = Client("transcription")
    session = client.events[0]["session"]
    assert list(session) == ["type", "object", "id", "expires_at", "include", "audio"]
    assert (session["type"], session["object"]) == ("transcription", "realtime.transcription_session")
    assert list(session["audio"]) == ["input"]
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 200,
    }  # fmt: skip
    turns = client.actions[0]
    assert isinstance(turns, Listen)
    assert turns.turns is not None
    assert not turns.turns.create_response


def test_segments_come_before_the_whole_and_nothing_is_answered() -> None:
    client = Client("transcription")
    item_id = heard_turn(client)
    segments = [Segment("One two", 300, 900), Segment("three.", 1000, 1500)]
    *told, completed = client.take(client.session.transcript_final(item_id, "One two three.", segments))
    assert kinds(told) == [f"{TRANSCRIPTION}.segment"] * 2
    assert [(one["start"], one["end"], one["text"]) for one in told] == [
        (0.3, 0.9, "One two"), (1.0, 1.5, "three."),
    ]  # fmt: skip
    assert told[0]["id"] != told[1]["id"]
    assert all(one["speaker"] and one["item_id"] == item_id and one["content_index"] == 0 for one in told)
    assert completed["transcript"] == "One two three."
    assert completed["usage"]["input_token_details"] == {"text_tokens": 0, "audio_tokens": 10}
    assert not [action for action in client.actions if isinstance(action, StartReply)]


def test_conversations_hear_of_no_segments() -> None:
    client = Client()
    client.update(audio={"input": {"transcription": {}}})
    item_id = heard_turn(client)
    events = client.take(client.session.transcript_final(item_id, "One", [Segment("One", 0, 100)]))
    assert f"{TRANSCRIPTION}.segment" not in kinds(events)


def test_a_failure_is_told_in_the_services_words() -> None:
    client = Client("transcription")
    item_id = heard_turn(client)
    (failed,) = client.take(client.session.transcript_failed(item_id, "DeploymentNotFound", "It failed."))
    assert failed["type"] == f"{TRANSCRIPTION}.failed"
    assert failed["error"]["code"] == "DeploymentNotFound"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("response.create", {}),
        ("response.cancel", {}),
        ("conversation.item.create", {"item": {"type": "message", "role": "user", "content": []}}),
        ("conversation.item.truncate", {"item_id": "x", "content_index": 0, "audio_end_ms": 0}),
        ("no.such.event", {}),
    ],
)
def test_what_belongs_to_conversations_is_refused(kind: str, fields: dict[str, Any]) -> None:
    error = error_of(Client("transcription").send(kind, **fields))
    assert (error["code"], error["param"]) == ("invalid_value", "type")
    assert "'response.create'," not in error["message"]


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ({"type": "realtime"}, "invalid_value"),
        ({"type": "transcription", "instructions": "Hi"}, "unknown_parameter"),
        ({"type": "transcription", "audio": {"output": {}}}, "unknown_parameter"),
    ],
)
def test_updates_of_conversations_are_refused(session: dict[str, Any], code: str) -> None:
    assert error_of(Client("transcription").send("session.update", session=session))["code"] == code


def test_a_fresh_ga_session_becomes_one_by_its_first_update() -> None:
    client = Client()
    fields = {"audio": {"input": {"transcription": {"model": "some-model"}, "turn_detection": None}}}
    (updated,) = client.send("session.update", session={"type": "transcription", **fields})
    session = updated["session"]
    assert session["type"] == "transcription"
    assert session["audio"]["input"]["transcription"]["model"] == "some-model"
    assert session["id"] == client.events[0]["session"]["id"]
    assert error_of(client.send("response.create"))["code"] == "invalid_value"


def test_a_conversation_that_has_begun_stays_one() -> None:
    client = Client()
    client.say("Hello")
    error = error_of(client.send("session.update", session={"type": "transcription"}))
    assert error["message"] == (
        "Passing a transcription session update event to a realtime session is not allowed."
    )


@pytest.mark.parametrize("fixed", [True, False])
def test_the_previews_update_is_refused_in_a_conversation(fixed: bool) -> None:
    client = Client(kind_is_fixed=fixed)
    kind = "session.update" if fixed else "transcription_session.update"
    error = error_of(client.send(kind, session={"type": "transcription"}))
    assert "transcription session update event to a realtime session" in error["message"]


# -- real sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [GA_INTENT, GA])
async def test_a_ga_session_writes_down_two_turns(engine: EngineServer, path: str) -> None:
    async with connect(engine, path) as client:
        first = client.events[0]
        assert first["type"] == "session.created"
        assert first["session"]["type"] == ("transcription" if path == GA_INTENT else "realtime")
        await client.send("session.update", session={"type": "transcription"})
        assert (await client.until("session.updated"))["session"]["type"] == "transcription"
        spoken = (("joke", 1000), ("train", 1000))
        for name, silence_ms in spoken:
            await client.speak(recording(name) + quiet(silence_ms))
        for _ in spoken:
            await client.until(f"{TRANSCRIPTION}.completed")
        said = {event["item_id"]: event["transcript"] for event in client.of(f"{TRANSCRIPTION}.completed")}
        items = [event["item_id"] for event in client.of("input_audio_buffer.committed")]
        for (name, _), item_id in zip(spoken, items, strict=True):
            assert heard_as(said[item_id]) == name
        for segment in client.of(f"{TRANSCRIPTION}.segment"):
            assert segment["text"] == said[segment["item_id"]]
            # A turn begins 300 ms before its first word.
            assert 0.1 <= segment["start"] <= 0.5
            assert 1 <= segment["end"] - segment["start"] <= 5
        assert len(client.of(f"{TRANSCRIPTION}.segment")) == 2
        assert not [kind for kind in kinds(client.events) if kind.startswith("response.")]


async def test_long_speech_comes_in_several_segments_in_order(engine: EngineServer) -> None:
    async with connect(engine, GA_INTENT) as client:
        await client.send(
            "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}}
        )
        audio = recording("austen-1")
        audio += recording("austen-2")
        audio += recording("jfk")
        assert len(audio) / 48 > SEGMENT_MS
        await client.speak(audio)
        await client.send("input_audio_buffer.commit")
        completed = await client.until(f"{TRANSCRIPTION}.completed")
    segments = client.of(f"{TRANSCRIPTION}.segment")
    assert len(segments) >= 2
    assert " ".join(segment["text"] for segment in segments) == completed["transcript"]
    times = [time for segment in segments for time in (segment["start"], segment["end"])]
    assert times == sorted(times)
    assert times[-1] <= len(audio) / 48_000


@pytest.mark.parametrize("dialect", ["preview", "contract"])
async def test_the_preview_has_events_of_its_own(engine: EngineServer, dialect: str) -> None:
    async with connect(engine, f"{PREVIEW_INTENT}&dialect={dialect}") as client:
        first = client.events[0]
        preview = dialect == "preview"
        assert first["type"] == ("transcription_session.created" if preview else "session.created")
        assert first["session"]["input_audio_format"] == "pcm16"
        assert first["session"].get("object") == ("realtime.transcription_session" if preview else None)
        await client.send(
            "transcription_session.update",
            session={
                "input_audio_transcription": {"model": "mine"},
                "turn_detection": {"type": "server_vad"},
            },
        )
        updated = await client.until("transcription_session.updated")
        assert updated["session"]["input_audio_transcription"]["model"] == "mine"
        await client.speak(recording("joke") + quiet(1000))
        completed = await client.until(f"{TRANSCRIPTION}.completed")
        assert heard_as(completed["transcript"]) == "joke"
        captions = "".join(event["delta"] for event in client.of(f"{TRANSCRIPTION}.delta"))
        # A word at their end that a later decoding contradicts is left to the whole transcript.
        assert word_errors(captions, completed["transcript"][: len(captions)]) <= 1
        assert bool(client.of(f"{TRANSCRIPTION}.segment")) is not preview
        await client.send("session.update", session={"input_audio_format": "pcm16"})
        assert "realtime session update event" in (await client.until("error"))["error"]["message"]


@pytest.mark.parametrize("transcription", [None, {"model": "mine"}])
def test_the_contract_file_describes_what_comes(transcription: dict[str, str] | None) -> None:
    contract = Realtime()
    client = Client("transcription", kind_is_fixed=True)
    client.send(
        "session.update",
        session={"type": "transcription", "audio": {"input": {"transcription": transcription}}},
    )
    item_id = heard_turn(client)
    client.take(client.session.transcript_final(item_id, "One.", [Segment("One.", 0, 500)]))
    for event in client.events:
        for fields in from_ga(event, Dialect.CONTRACT, Half.SERVER):
            jsonschema.validate(fields, contract.schema(fields["type"]))


async def test_a_preview_conversation_refuses_to_become_one(engine: EngineServer) -> None:
    async with connect(engine, PREVIEW) as client:
        await client.send("transcription_session.update", session={"input_audio_format": "pcm16"})
        assert "to a realtime session is not allowed" in (await client.until("error"))["error"]["message"]
