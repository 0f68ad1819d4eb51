"""The engine's session, joined to nothing: speech that comes in, and speech that goes out."""

from __future__ import annotations

import base64

import pytest

from tests.parts.engine_parts import (
    MESSAGE_END,
    MESSAGE_START,
    Client,
    bring,
    error_of,
    kinds,
    message,
    quiet,
    speaking_client,
    spoken,
    spoken_turn,
    start_reply,
)
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.actions import AwaitIdle, CancelReply, EndIdle, ForgetTurn, Opened, Transcribe
from voiceapp.text.provider import Finished, Said

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
