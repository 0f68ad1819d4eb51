"""The engine's session as a client sees it: order, shapes, defaults, errors. No socket, no model."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.engine_parts import Client, error_of, kinds, quiet
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.actions import (
    AwaitIdle,
    CancelReply,
    Close,
    EndIdle,
    Failed,
    ForgetTurn,
    Listen,
    Opened,
    Spoken,
    StartReply,
    Transcribe,
)
from voiceapp.engine.items import TimedWord, within
from voiceapp.engine.session_config import DEFAULT_INSTRUCTIONS
from voiceapp.engine.turns import TurnSettings
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Finished,
    Returned,
    Said,
    TextDelta,
)

MESSAGE_START = ["response.output_item.added", "conversation.item.added", "response.content_part.added"]
MESSAGE_END = ["response.content_part.done", "conversation.item.done", "response.output_item.done"]


def spoken(ms: int, *words: tuple[str, float, float]) -> Spoken:
    return Spoken(quiet(ms), tuple(TimedWord(*word) for word in words))


def start_reply(client: Client) -> StartReply:
    return [action for action in client.actions if isinstance(action, StartReply)][-1]


def bring(client: Client, fact: Any, response_id: str = "resp_1") -> list[dict[str, Any]]:
    return client.take(client.session.reply_brought(response_id, fact))


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


def message(name: str) -> dict[str, Any]:
    return {"id": name, "type": "message", "role": "user", "content": [{"type": "input_text", "text": name}]}


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


# -- speech in ------------------------------------------------------------------------------------------


def test_a_spoken_turn_has_the_services_order() -> None:
    client = Client()
    client.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1500)).decode())
    (started,) = client.take(client.session.speech_started(200, 564))
    assert started["audio_start_ms"] == 200
    item_id = started["item_id"]
    events = client.take(client.session.speech_stopped(1400))
    assert kinds(events) == [
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    assert events[0] == {**events[0], "audio_end_ms": 1400, "item_id": item_id}
    assert events[1] == {**events[1], "previous_item_id": None, "item_id": item_id}
    assert events[2]["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert Transcribe(item_id, 200, 1400) in client.actions
    delta = client.take(client.session.transcript_delta(item_id, "Hello"))
    assert kinds(delta) == ["conversation.item.input_audio_transcription.delta"]
    (completed,) = client.take(client.session.transcript_final(item_id, "Hello there."))
    assert completed["transcript"] == "Hello there."
    assert completed["content_index"] == 0
    assert completed["usage"]["input_token_details"] == {"text_tokens": 0, "audio_tokens": 12}
    assert start_reply(client).request.history == (Said("user", "Hello there."),)
    (retrieved,) = client.send("conversation.item.retrieve", item_id=item_id)
    part = retrieved["item"]["content"][0]
    assert len(base64.b64decode(part["audio"])) == 1200 * 48
    assert part["transcript"] == "Hello there."


def test_without_transcription_the_words_are_known_but_not_told() -> None:
    client = Client()
    events = spoken_turn(client)
    item_id = events[0]["item_id"]
    assert client.take(client.session.transcript_delta(item_id, "Hel")) == []
    assert client.take(client.session.transcript_final(item_id, "Hello.")) == []
    assert start_reply(client).request.history == (Said("user", "Hello."),)


def test_a_failed_transcription_is_told_and_the_reply_goes_on() -> None:
    client = Client()
    client.update(audio={"input": {"transcription": {}}})
    item_id = spoken_turn(client)[0]["item_id"]
    (failed,) = client.take(client.session.transcript_failed(item_id, "model_unavailable", "No."))
    assert failed["type"] == "conversation.item.input_audio_transcription.failed"
    assert failed["error"]["code"] == "model_unavailable"
    assert start_reply(client).request.history == (Said("user", ""),)


def test_push_to_talk_commits_without_a_response() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": None}})
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(500)).decode())
    assert client.take(client.session.speech_started(0, 64)) == []
    events = client.send("input_audio_buffer.commit")
    assert kinds(events) == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert client.actions[-2:] == [Transcribe(events[0]["item_id"], 0, 500), ForgetTurn(500)]


@pytest.mark.parametrize("audio_format", list(AudioFormat))
@pytest.mark.parametrize("ms", [0, 99, 100])
def test_a_commit_needs_100_ms_in_every_format(audio_format: AudioFormat, ms: int) -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": None, "format": audio_format.to_ga()}})
    if ms:
        client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(ms, audio_format)).decode())
    events = client.send("input_audio_buffer.commit")
    if ms < 100:
        error = error_of(events)
        assert error["code"] == "input_audio_buffer_commit_empty"
        assert f"only has {ms:.2f}ms of audio" in error["message"]
    else:
        assert events[0]["type"] == "input_audio_buffer.committed"


def test_half_a_sample_is_refused_and_nothing_is_lost() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": None}})
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(100)).decode())
    error = error_of(client.send("input_audio_buffer.append", audio="AAAA"))
    assert (error["code"], error["param"]) == ("invalid_value", "audio")
    assert client.send("input_audio_buffer.commit")[0]["type"] == "input_audio_buffer.committed"


def test_a_full_buffer_is_refused_and_can_be_committed() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": None}})
    chunk = base64.b64encode(bytes(5 * 1024 * 1024)).decode()
    for _ in range(3):
        assert client.send("input_audio_buffer.append", audio=chunk) == []
    assert error_of(client.send("input_audio_buffer.append", audio=chunk))["code"] == (
        "input_audio_buffer_full"
    )
    assert client.send("input_audio_buffer.commit")[0]["type"] == "input_audio_buffer.committed"


def test_clearing_forgets_the_turn_and_what_detection_still_brings_of_it() -> None:
    client = Client()
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.take(client.session.speech_started(0, 364))
    assert kinds(client.send("input_audio_buffer.clear")) == ["input_audio_buffer.cleared"]
    assert client.actions[-1] == ForgetTurn(1000)
    assert client.take(client.session.speech_stopped(900)) == []
    assert client.take(client.session.speech_started(500, 864)) == []
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    (started,) = client.take(client.session.speech_started(1100, 1464))
    assert started["audio_start_ms"] == 1100


def test_a_turn_commits_its_own_audio_and_keeps_what_came_after() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    audio = b"".join(bytes([number, 0]) * 2400 for number in range(1, 11))
    client.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())
    client.take(client.session.speech_started(200, 564))
    events = client.take(client.session.speech_stopped(700))
    assert events[-1]["type"] == "conversation.item.done"
    (retrieved,) = client.send("conversation.item.retrieve", item_id=events[0]["item_id"])
    assert base64.b64decode(retrieved["item"]["content"][0]["audio"]) == audio[200 * 48 : 700 * 48]
    events = client.send("input_audio_buffer.commit")
    (rest,) = client.send("conversation.item.retrieve", item_id=events[0]["item_id"])
    assert base64.b64decode(rest["item"]["content"][0]["audio"]) == audio[700 * 48 :]


def test_silence_before_a_turn_does_not_pile_up() -> None:
    client = Client()
    chunk = base64.b64encode(bytes(5 * 1024 * 1024)).decode()
    for number in range(1, 9):
        client.send("input_audio_buffer.append", audio=chunk)
        client.session.heard(round(number * len(bytes(5 * 1024 * 1024)) / 48))
    assert "error" not in kinds(client.events)


def test_idleness_is_reported_after_a_complete_answer_and_answered() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 6000}}})
    client.say("Hello")
    client.send("response.create")
    bring(client, spoken(100, ("Hi.", 0, 90)))
    bring(client, Finished())
    assert client.actions[-1] == AwaitIdle(6000)
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(8000)).decode())
    events = client.take(client.session.idle())
    assert kinds(events) == [
        "input_audio_buffer.timeout_triggered", "input_audio_buffer.committed", "conversation.item.added",
        "conversation.item.done", "response.created",
    ]  # fmt: skip
    assert (events[0]["audio_start_ms"], events[0]["audio_end_ms"]) == (2000, 8000)
    assert len({event["item_id"] for event in events[:2]}) == 1
    assert EndIdle() in client.actions
    assert client.take(client.session.idle()) == []


def test_speech_ends_the_wait_and_an_interrupted_answer_starts_none() -> None:
    client = speaking_client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 6000}}})
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(500)).decode())
    client.take(client.session.speech_started(0, 364))
    assert EndIdle() in client.actions
    assert not [action for action in client.actions if isinstance(action, AwaitIdle)]
    assert client.take(client.session.idle()) == []


# -- speech out -----------------------------------------------------------------------------------------


def test_a_spoken_reply_has_the_services_order() -> None:
    client = Client()
    client.say("Hello")
    client.send("response.create")
    events = bring(client, Opened())
    events += bring(client, spoken(100, ("Hi ", 0, 90)))
    events += bring(client, spoken(150, ("there.", 110, 240)))
    events += bring(client, Finished())
    assert kinds(events) == [
        *MESSAGE_START,
        "response.output_audio_transcript.delta", "response.output_audio.delta",
        "response.output_audio_transcript.delta", "response.output_audio.delta",
        "response.output_audio.done", "response.output_audio_transcript.done",
        *MESSAGE_END, "response.done",
    ]  # fmt: skip
    assert events[2]["part"] == {"type": "audio", "transcript": ""}
    assert len(base64.b64decode(events[4]["delta"])) == 4800
    assert events[8]["transcript"] == "Hi there."
    done = events[-1]["response"]
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": "Hi there."}]
    assert done["usage"]["output_token_details"]["audio_tokens"] == 5


def test_truncation_is_by_time_and_on_word_boundaries() -> None:
    client = speaking_client()
    bring(client, Finished())
    item_id = client.events[-1]["response"]["output"][0]["id"]
    events = client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=600)
    assert events == [
        {**events[0], "type": "conversation.item.truncated", "item_id": item_id, "content_index": 0,
         "audio_end_ms": 600}
    ]  # fmt: skip
    (retrieved,) = client.send("conversation.item.retrieve", item_id=item_id)
    part = retrieved["item"]["content"][0]
    assert part["transcript"] == "word0 word1"
    assert len(base64.b64decode(part["audio"])) == 600 * 48
    error = error_of(
        client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=5000)
    )
    assert error["code"] == "invalid_value"
    assert error["message"] == "Audio content of 600ms is already shorter than 5000ms"
    client.send("response.create")
    assert start_reply(client).request.history[-1] == Said("assistant", "word0 word1")


def test_an_item_in_progress_can_be_truncated_before_its_response_is_cancelled() -> None:
    client = speaking_client()
    item_id = next(e["item_id"] for e in client.events if e["type"] == "response.output_audio.delta")
    client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=250)
    assert bring(client, spoken(250, ("late ", 1000, 1250))) == []
    events = client.send("response.cancel")
    assert events[-1]["response"]["status"] == "cancelled"
    assert events[-1]["response"]["output"][0]["content"][0]["transcript"] == "word0"


def test_only_speech_of_the_model_can_be_truncated() -> None:
    client = Client()
    client.send("conversation.item.create", item=message("a"))
    error = error_of(client.send("conversation.item.truncate", item_id="a", content_index=0, audio_end_ms=0))
    assert error["code"] is None
    assert error["message"] == "Only model output audio messages can be truncated"


def test_barge_in_cancels_with_turn_detected() -> None:
    client = speaking_client()
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(500)).decode())
    events = client.take(client.session.speech_started(0, 364))
    assert kinds(events) == [
        "input_audio_buffer.speech_started", "response.output_audio.done",
        "response.output_audio_transcript.done", *MESSAGE_END, "response.done",
    ]  # fmt: skip
    response = events[-1]["response"]
    assert response["status"] == "cancelled"
    assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert response["output"][0]["status"] == "incomplete"
    assert client.actions[-1] == CancelReply(response["id"])
    assert bring(client, spoken(250, ("straggler", 1000, 1250))) == []


def test_without_interruption_the_next_response_waits_for_the_first() -> None:
    client = speaking_client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_response": False}}})
    events = spoken_turn(client)
    assert "response.done" not in kinds(events)
    assert "response.created" not in kinds(events)
    client.take(client.session.transcript_final(events[0]["item_id"], "And then?"))
    events = bring(client, Finished())
    assert kinds(events)[-2:] == ["response.done", "response.created"]
    assert start_reply(client).request.history[-1] == Said("user", "And then?")


def test_without_create_response_a_turn_is_only_committed() -> None:
    client = Client()
    client.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    assert "response.created" not in kinds(spoken_turn(client))
    assert not client.session.may_reply


# -- responses ------------------------------------------------------------------------------------------


def test_one_response_at_a_time_writes_to_the_conversation() -> None:
    client = speaking_client()
    error = error_of(client.send("response.create"))
    assert error["code"] == "conversation_already_has_active_response"
    assert "resp_1" in error["message"]


def test_cancelling_nothing_is_an_error_that_clients_know() -> None:
    error = error_of(Client().send("response.cancel"))
    assert error["code"] == "response_cancel_not_active"
    assert error["message"].startswith("Cancellation failed")


def test_a_client_cancels_by_id_before_anything_was_said() -> None:
    client = Client()
    client.send("response.create")
    events = client.send("response.cancel", response_id="resp_1")
    assert kinds(events) == ["response.done"]
    assert events[0]["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}


def test_out_of_band_responses_leave_the_conversation_alone() -> None:
    client = speaking_client()
    client.send("conversation.item.create", item=message("fact"))
    events = client.send(
        "response.create",
        response={
            "conversation": "none",
            "output_modalities": ["text"],
            "instructions": "Classify.",
            "metadata": {"job": "7"},
            "input": [{"type": "item_reference", "id": "fact"}, {**message("q"), "id": "private"}],
        },
    )
    response = events[0]["response"]
    assert (response["conversation_id"], response["metadata"]) == (None, {"job": "7"})
    request = start_reply(client).request
    assert (request.instructions, request.spoken) == ("Classify.", False)
    assert request.history == (Said("user", "fact"), Said("user", "q"))
    events = bring(client, TextDelta("fine"), response["id"]) + bring(client, Finished(), response["id"])
    assert not [kind for kind in kinds(events) if kind.startswith("conversation.item")]
    assert error_of(client.send("conversation.item.retrieve", item_id="private"))["code"] == (
        "item_retrieve_invalid_item_id"
    )
    assert bring(client, Finished())[-1]["type"] == "response.done"


def test_a_response_without_instructions_of_its_own_has_the_sessions() -> None:
    client = Client()
    client.update(instructions="Be kind.")
    client.say("Hello")
    client.send("response.create", response={"instructions": None})
    assert start_reply(client).request.instructions == "Be kind."


def test_an_empty_input_is_an_empty_context() -> None:
    client = Client()
    client.say("forget me")
    client.send("response.create", response={"conversation": "none", "input": []})
    assert start_reply(client).request.history == ()


def test_many_responses_at_once_are_bounded() -> None:
    client = Client()
    for _ in range(8):
        client.send("response.create", response={"conversation": "none"})
    error = error_of(client.send("response.create", response={"conversation": "none"}))
    assert error["code"] == "rate_limit_exceeded"


def test_the_token_limit_makes_a_response_incomplete() -> None:
    client = Client()
    client.say("Talk")
    client.send("response.create", response={"output_modalities": ["text"], "max_output_tokens": 2})
    events = bring(client, TextDelta("one two three four"))
    response = events[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["output"][0]["content"][0]["text"] == "one two "
    assert response["usage"]["output_tokens"] == 2


def test_the_token_limit_holds_for_speech() -> None:
    client = Client()
    client.say("Talk")
    client.send("response.create", response={"max_output_tokens": 10})
    events: list[dict[str, Any]] = []
    for number in range(4):
        events += bring(client, spoken(250, (f"w{number} ", number * 250.0, number * 250.0 + 250)))
    assert events[-1]["response"]["status"] == "incomplete"
    assert events[-1]["response"]["usage"]["output_tokens"] <= 10


def test_a_filtered_and_a_failed_reply_say_so() -> None:
    client = Client()
    client.send("response.create")
    response = bring(client, Finished("content_filter"))[-1]["response"]
    assert response["status_details"] == {"type": "incomplete", "reason": "content_filter"}
    client.send("response.create")
    response = bring(client, Failed("rate_limit_exceeded", "Too much."), "resp_2")[-1]["response"]
    assert response["status"] == "failed"
    assert response["status_details"]["error"]["code"] == "rate_limit_exceeded"


def test_a_long_conversation_loses_its_oldest_items_unless_that_is_disabled() -> None:
    client = Client()
    for number in range(12):
        client.say(f"{number} " + "x" * 12_000)
    client.send("response.create", response={"output_modalities": ["text"]})
    said = [item.text.split()[0] for item in start_reply(client).request.history if isinstance(item, Said)]
    assert said == ["3", "4", "5", "6", "7", "8", "9", "10", "11"]
    bring(client, Finished())
    client.update(truncation="disabled")
    client.send("response.create")
    assert len(start_reply(client).request.history) == 12


def test_a_call_and_its_output_are_dropped_together() -> None:
    said = (Called("c", "f", "x" * 400), Returned("c", "1"), Said("user", "y" * 40))
    assert within(said, 20) == (Said("user", "y" * 40),)
    assert within(said, 200) == said
    assert within(said, 1) == (Said("user", "y" * 40),)
    assert within(said[1:], 100) == said[1:]


# -- function calls -------------------------------------------------------------------------------------

TOOL = {
    "type": "function", "name": "get_weather", "description": "Weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}  # fmt: skip


def call_tool(client: Client, response_id: str = "resp_1", index: int = 0) -> list[dict[str, Any]]:
    events = bring(client, CallStarted(index, "c", "get_weather"), response_id)
    events += bring(client, CallArguments(index, '{"city":'), response_id)
    events += bring(client, CallArguments(index, ' "Paris"}'), response_id)
    return events + bring(client, CallFinished(index), response_id)


def test_a_function_call_has_the_services_order() -> None:
    client = Client()
    client.update(tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"})
    client.say("Weather in Paris?")
    client.send("response.create")
    request = start_reply(client).request
    assert (request.tool_choice, request.tools[0].name) == ("get_weather", "get_weather")
    events = call_tool(client) + bring(client, Finished())
    assert kinds(events) == [
        "response.output_item.added", "conversation.item.added",
        "response.function_call_arguments.delta", "response.function_call_arguments.delta",
        "response.function_call_arguments.done", "conversation.item.done", "response.output_item.done",
        "response.done",
    ]  # fmt: skip
    done = events[4]
    assert (done["name"], done["arguments"]) == ("get_weather", '{"city": "Paris"}')
    assert events[-1]["response"]["output"][0]["call_id"] == done["call_id"]
    output = {"type": "function_call_output", "call_id": done["call_id"], "output": '{"sky": "clear"}'}
    events = client.send("conversation.item.create", item=output)
    assert kinds(events) == ["conversation.item.added", "conversation.item.done"]
    assert "status" not in events[0]["item"]
    client.send("response.create")
    assert start_reply(client).request.history == (
        Said("user", "Weather in Paris?"),
        Called(done["call_id"], "get_weather", '{"city": "Paris"}'),
        Returned(done["call_id"], '{"sky": "clear"}'),
    )


def test_an_output_is_accepted_before_the_response_is_done() -> None:
    client = Client()
    client.send("response.create")
    events = call_tool(client)
    output = {"type": "function_call_output", "call_id": events[4]["call_id"], "output": "1"}
    assert kinds(client.send("conversation.item.create", item=output))[0] == "conversation.item.added"


def test_text_before_calls_is_kept_in_order() -> None:
    client = Client()
    client.send("response.create", response={"output_modalities": ["text"]})
    bring(client, TextDelta("Let me look."))
    call_tool(client)
    call_tool(client, index=1)
    output = bring(client, Finished())[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
    assert output[1]["call_id"] != output[2]["call_id"]


def test_a_preview_is_what_the_turn_will_start() -> None:
    client = Client()
    client.update(tools=[TOOL], instructions="Be kind.")
    client.say("Before")
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.take(client.session.speech_started(0, 364))
    preview = client.session.preview("Hello.")
    item_id = client.take(client.session.speech_stopped(900))[0]["item_id"]
    client.take(client.session.transcript_final(item_id, "Hello."))
    started = start_reply(client)
    assert preview == (started.request, started.speaking)
