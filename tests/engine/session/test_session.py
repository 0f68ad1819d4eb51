"""The engine's session as a client sees it: order, shapes, defaults, errors. No socket, no model."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.parts.engine_parts import (
    MESSAGE_END,
    MESSAGE_START,
    Client,
    bring,
    error_of,
    kinds,
    message,
    speaking_client,
    start_reply,
)
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.actions import Close, Listen
from voiceapp.engine.session.config import DEFAULT_INSTRUCTIONS
from voiceapp.engine.turns.detector import TurnSettings
from voiceapp.text.provider import Finished, Said, TextDelta

# -- connecting and settings ----------------------------------------------------------------------------


def test_the_first_event_is_the_session_with_the_services_keys_in_order() -> None:
    client = Client()
    assert kinds(client.events) == ["session.created"]
    session = client.events[0]["session"]
    assert list(session) == [
        "type", "object", "id", "model", "output_modalities", "instructions", "tools", "tool_choice",
        "max_output_tokens", "tracing", "truncation", "prompt", "expires_at", "audio", "include",
    ]  # fmt: skip
    assert list(session["audio"]["input"]) == ["format", "transcription", "noise_reduction", "turn_detection"]
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 200,
        "idle_timeout_ms": None, "create_response": True, "interrupt_response": True,
    }  # fmt: skip
    assert session["audio"]["output"] == {
        "format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy", "speed": 1.0,
    }  # fmt: skip
    assert client.actions == [Listen(AudioFormat.PCM16, TurnSettings())]


def test_an_update_merges_deeply_and_is_echoed_whole() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "threshold": 0.7}}})
    (updated,) = client.update(instructions="Be kind.", audio={"output": {"speed": 1.25}})
    session = updated["session"]
    assert session["audio"]["input"]["turn_detection"]["threshold"] == 0.7
    assert session["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 200
    assert session["audio"]["output"] == {
        "format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy", "speed": 1.25,
    }  # fmt: skip
    assert session["instructions"] == "Be kind."
    (restored,) = client.update(instructions="")
    assert restored["session"]["instructions"] == DEFAULT_INSTRUCTIONS


def test_turn_detection_off_is_null_and_stays_null() -> None:
    client = Client()
    (updated,) = client.update(audio={"input": {"turn_detection": None}})
    assert updated["session"]["audio"]["input"]["turn_detection"] is None
    assert client.actions[-1] == Listen(AudioFormat.PCM16, None)
    (later,) = client.update(output_modalities=["text"])
    assert later["session"]["audio"]["input"]["turn_detection"] is None


def test_formats_change_in_mid_session_and_are_echoed_truthfully() -> None:
    client = Client()
    (updated,) = client.update(
        audio={"input": {"format": {"type": "audio/pcmu"}}, "output": {"format": {"type": "audio/pcma"}}}
    )
    assert updated["session"]["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert updated["session"]["audio"]["output"]["format"] == {"type": "audio/pcma"}
    assert client.actions[-1] == Listen(AudioFormat.PCMU, TurnSettings())
    client.send("input_audio_buffer.append", audio=base64.b64encode(b"\xff" * 801).decode())
    assert kinds(client.send("input_audio_buffer.commit"))[0] == "input_audio_buffer.committed"


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"type": None}, "invalid_value", "session.type"),
        (
            {"audio": {"input": {"turn_detection": {"type": []}}}},
            "invalid_value",
            "session.audio.input.turn_detection.type",
        ),
        ({"bogus_field": 1}, "unknown_parameter", "session.bogus_field"),
        ({"temperature": 0.8}, "unknown_parameter", "session.temperature"),
        ({"output_modalities": ["audio", "text"]}, "invalid_value", "session.output_modalities"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "integer_below_min_value",
            "session.audio.input.format.rate",
        ),
        (
            {"audio": {"input": {"format": {"type": "audio/opus"}}}},
            "invalid_value",
            "session.audio.input.format.type",
        ),
        ({"audio": {"output": {"voice": "nobody"}}}, "invalid_value", "session.audio.output.voice"),
        ({"audio": {"output": {"speed": 2}}}, "decimal_above_max_value", "session.audio.output.speed"),
        ({"max_output_tokens": 0}, "integer_below_min_value", "session.max_output_tokens"),
        ({"max_output_tokens": 5000}, "integer_above_max_value", "session.max_output_tokens"),
        ({"instructions": 3}, "invalid_type", "session.instructions"),
        (
            {"tools": [{"type": "function", "name": "f", "description": "x" * 1025}]},
            "string_above_max_length",
            "session.tools[0].description",
        ),
        ({"tools": [{"type": "function"}]}, "missing_required_parameter", "session.tools[0].name"),
        ({"tools": [{"type": "function", "name": "f"}] * 129}, "array_above_max_length", "session.tools"),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 1}}}},
            "integer_below_min_value",
            "session.audio.input.turn_detection.idle_timeout_ms",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "telepathy"}}}},
            "invalid_value",
            "session.audio.input.turn_detection.type",
        ),
    ],
)
def test_a_wrong_update_is_refused_whole(change: dict[str, Any], code: str, param: str) -> None:
    client = Client()
    before = client.events[0]["session"]
    error = error_of(client.update(**{"instructions": "changed", **change}))
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, param)
    (after,) = client.update()
    assert after["session"] == before


def test_a_ga_update_must_say_its_type() -> None:
    error = error_of(Client().send("session.update", session={}, event_id="mine"))
    assert error["code"] == "missing_required_parameter"
    assert error["message"] == "Missing required parameter: 'session.type'."
    assert error["event_id"] == "mine"


def test_the_voice_is_locked_once_it_was_heard() -> None:
    client = speaking_client()
    error = error_of(client.update(audio={"output": {"voice": "ash"}}))
    assert error["code"] == "cannot_update_voice"
    assert kinds(client.update(audio={"output": {"voice": "alloy"}})) == ["session.updated"]


def test_unknown_events_are_told_what_is_supported() -> None:
    client = Client()
    for kind in ("response.telepathy", "session.created"):
        error = error_of(client.send(kind))
        assert (error["code"], error["param"]) == ("invalid_value", "type")
        assert "'session.update'" in error["message"]
        assert "'response.cancel'" in error["message"]


def test_a_session_expires_with_an_error_and_a_close() -> None:
    client = Client()
    assert error_of(client.take(client.session.expire(60)))["code"] == "session_expired"
    closing = client.actions[-1]
    assert closing == Close(1001, "Your session hit the maximum duration of 60 minutes.")


# -- text -----------------------------------------------------------------------------------------------


def test_a_text_turn_has_the_services_order() -> None:
    client = Client()
    client.update(output_modalities=["text"])
    added, done = client.say("Hello")
    assert kinds([added, done]) == ["conversation.item.added", "conversation.item.done"]
    assert added["previous_item_id"] is None
    assert added["item"]["status"] == "completed"
    events = client.send("response.create", response={"metadata": {"topic": "greeting"}})
    assert kinds(events) == ["response.created"]
    response = events[0]["response"]
    assert (response["status"], response["metadata"]) == ("in_progress", {"topic": "greeting"})
    assert start_reply(client).speaking is None
    assert start_reply(client).request.history == (Said("user", "Hello"),)
    events = bring(client, TextDelta("Hi ")) + bring(client, TextDelta("there.")) + bring(client, Finished())
    assert kinds(events) == [
        *MESSAGE_START,
        "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
        *MESSAGE_END, "response.done",
    ]  # fmt: skip
    assert events[0]["item"] == {
        "id": events[0]["item"]["id"], "type": "message", "status": "in_progress", "role": "assistant",
        "content": [],
    }  # fmt: skip
    assert events[1]["previous_item_id"] == added["item"]["id"]
    assert events[2]["part"] == {"type": "text", "text": ""}
    assert events[5]["text"] == "Hi there."
    final = events[-1]["response"]
    assert final["status"] == "completed"
    assert final["output"][0]["content"] == [{"type": "output_text", "text": "Hi there."}]
    usage = final["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_token_details"] == {"text_tokens": 3, "audio_tokens": 0}


def test_items_are_placed_after_the_one_that_is_named() -> None:
    client = Client()
    for name in ("a", "b"):
        client.send("conversation.item.create", item=message(name))
    first = client.send("conversation.item.create", item=message("r"), previous_item_id="root")
    assert first[0]["previous_item_id"] is None
    middle = client.send("conversation.item.create", item=message("m"), previous_item_id="a")
    assert middle[0]["previous_item_id"] == "a"
    last = client.send("conversation.item.create", item=message("z"), previous_item_id="")
    assert last[0]["previous_item_id"] == "b"
    client.send("response.create")
    said = [item.text for item in start_reply(client).request.history if isinstance(item, Said)]
    assert said == ["r", "a", "m", "b", "z"]


def test_a_client_cannot_fill_the_memory_with_items() -> None:
    client = Client()
    long = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 40_000_000}]}
    assert "conversation.item.done" in kinds(client.send("conversation.item.create", item=long))
    assert error_of(client.send("conversation.item.create", item=long))["code"] == "conversation_full"
    assert "conversation.item.done" in kinds(client.say("Hello"))


@pytest.mark.parametrize(
    ("item", "code", "param"),
    [
        ({"role": "user", "content": []}, "missing_required_parameter", "item.type"),
        ({"type": "poem"}, "invalid_value", "item.type"),
        ({"type": []}, "invalid_value", "item.type"),
        (
            {"type": "message", "role": "user", "content": [{"type": {}}]},
            "invalid_value",
            "item.content[0].type",
        ),
        ({"type": "message", "role": "user"}, "missing_required_parameter", "item.content"),
        ({"type": "message", "role": "king", "content": []}, "invalid_value", "item.role"),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
            "invalid_value",
            "item.content[0].type",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text"}]},
            "missing_required_parameter",
            "item.content[0].text",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "!!"}]},
            "invalid_value",
            "item.content[0].audio",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]},
            "invalid_value",
            "item.content[0].audio",
        ),
        (
            {"type": "function_call_output", "call_id": "call_X", "output": "1"},
            "invalid_tool_call_id",
            "item.call_id",
        ),
        ({**message("a"), "colour": "red"}, "unknown_parameter", "item.colour"),
        (message("a"), "item_create_duplicate_item_id", "item.id"),
    ],
)
def test_wrong_items_are_refused(item: dict[str, Any], code: str, param: str) -> None:
    client = Client()
    client.send("conversation.item.create", item=message("a"))
    error = error_of(client.send("conversation.item.create", item=item))
    assert (error["code"], error["param"]) == (code, param)


def test_unknown_ids_have_a_code_for_each_event() -> None:
    client = Client()
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "item_create_invalid_previous_item_id": ("create", {"item": message("b"), "previous_item_id": "no"}),
        "item_retrieve_invalid_item_id": ("retrieve", {"item_id": "no"}),
        "item_delete_invalid_item_id": ("delete", {"item_id": "no"}),
        "item_truncate_invalid_item_id": (
            "truncate",
            {"item_id": "no", "content_index": 0, "audio_end_ms": 1},
        ),
    }
    for code, (verb, fields) in cases.items():
        assert error_of(client.send(f"conversation.item.{verb}", **fields))["code"] == code


def test_a_deleted_item_is_forgotten() -> None:
    client = Client()
    client.send("conversation.item.create", item=message("a"))
    assert client.send("conversation.item.delete", item_id="a")[0]["item_id"] == "a"
    client.send("response.create")
    assert start_reply(client).request.history == ()
