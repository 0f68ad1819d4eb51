"""The codec: what is kept, and what bad input is told."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import DecodeError
from voiceapp.protocol import codec, events

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(extra=st.dictionaries(st.text(min_size=1), JSON, max_size=4))
def test_unknown_fields_survive(extra: dict[str, object]) -> None:
    known = {"type": "response.cancel", "event_id": "e1", "response_id": None}
    fields = {**extra, **known}
    event = codec.client_event(codec.decode_fields(json.dumps(fields)))
    assert isinstance(event, events.ResponseCancel)
    assert json.loads(codec.encode(event)) == fields


@given(fields=st.dictionaries(st.text(), JSON, max_size=5))
def test_unknown_events_survive_whole(fields: dict[str, object]) -> None:
    fields = {**fields, "type": "response.telepathy.delta"}
    event, _ = codec.decode_server(json.dumps(fields))
    assert isinstance(event, events.UnknownEvent)
    assert json.loads(codec.encode(event)) == fields


@given(samples=st.binary(max_size=400), first=st.booleans())
def test_audio_deltas_carry_bytes_whatever_the_order_of_keys(samples: bytes, first: bool) -> None:
    body = {
        "event_id": "e",
        "response_id": "r",
        "item_id": "i",
        "output_index": 0,
        "content_index": 0,
        "delta": base64.b64encode(samples).decode(),
    }
    kind = {"type": "response.output_audio.delta"}
    text = json.dumps(kind | body if first else body | kind)
    event, _ = codec.decode_server(text)
    assert isinstance(event, events.ResponseOutputAudioDelta)
    assert event.delta == samples
    assert json.loads(codec.encode(event)) == kind | body


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ("{", "invalid_json", None),
        ("", "invalid_json", None),
        ("[1]", "invalid_json", None),
        ("[" * 100_000, "invalid_json", None),
        (f'{{"type": "response.create", "response": {"[" * 300}{"]" * 300}}}', "invalid_json", None),
        ("{}", "missing_required_parameter", "type"),
        ('{"type": 3}', "invalid_type", "type"),
        ('{"type": "session.update"}', "missing_required_parameter", "session"),
        ('{"type": "session.update", "session": []}', "invalid_type", "session"),
        ('{"type": "input_audio_buffer.append"}', "missing_required_parameter", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": 3}', "invalid_type", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": "a b"}', "invalid_value", "audio"),
        (
            '{"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": "x"}',
            "invalid_type",
            "audio_end_ms",
        ),
        (
            json.dumps({"type": "response.cancel", "event_id": "x" * 513}),
            "string_above_max_length",
            "event_id",
        ),
    ],
)
def test_bad_input_is_told_the_services_code(message: str, code: str, param: str | None) -> None:
    with pytest.raises(DecodeError) as caught:
        codec.client_event(codec.decode_fields(message))
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize("smuggled", [{"type": "session.update"}, {"response_id": "other"}, 5])
def test_nothing_replaces_fields_that_were_checked(smuggled: object) -> None:
    fields = {"type": "response.cancel", "response_id": "r", events.EXTRA: smuggled}
    event = codec.client_event(codec.decode_fields(json.dumps(fields)))
    assert isinstance(event, events.ResponseCancel)
    assert codec.to_fields(event) == fields


def test_many_values_side_by_side_are_not_too_deep() -> None:
    fields = {"type": "response.create", "response": {"input": [{"a": [{}]}] * 500}}
    assert codec.decode_fields(json.dumps(fields)) == fields


@given(st.text() | st.binary())
def test_nothing_but_a_decode_error_ever_comes_of_noise(message: str | bytes) -> None:
    with contextlib.suppress(DecodeError):
        codec.decode_server(message)
    with contextlib.suppress(DecodeError):
        codec.client_event(codec.decode_fields(message))


def test_errors_name_the_client_event_at_fault() -> None:
    event = codec.error_event("event_1", code="invalid_value", message="No.", param="x", client_event_id="c7")
    assert json.loads(codec.encode(event)) == {
        "type": "error",
        "event_id": "event_1",
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_value",
            "message": "No.",
            "param": "x",
            "event_id": "c7",
        },
    }


def test_halves_of_characters_do_not_keep_an_event_from_being_sent() -> None:
    event = events.ResponseOutputTextDelta(
        event_id="e", response_id="r", item_id="i", output_index=0, content_index=0, delta="a\ud800b"
    )
    assert json.loads(codec.encode(event))["delta"] == "a?b"
    output = {"type": "function_call_output", "call_id": "c", "output": "\udcff"}
    assert json.loads(codec.encode_fields({"item": output}))["item"]["output"] == "?"


SAMPLES = bytes(range(251)) + b"\xfb\xff\xfe"
"""Bytes whose base64 has all characters in which the alphabets differ."""


@pytest.mark.parametrize("length", [252, 253, 254])
@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text.rstrip("="),
        lambda text: text.replace("+", "-").replace("/", "_"),
        lambda text: text.replace("+", "-").replace("/", "_").rstrip("="),
        lambda text: "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76)) + "\n",
        lambda text: " ".join(text),
        lambda text: text.rstrip("=") + "====",
    ],
)
def test_sound_is_read_in_every_spelling_of_base64(length: int, spell: Callable[[str], str]) -> None:
    delta = spell(base64.b64encode(SAMPLES[-length:]).decode())
    where = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
    event, _ = codec.decode_server(
        json.dumps({"type": "response.output_audio.delta", "event_id": "e", **where, "delta": delta})
    )
    assert isinstance(event, events.ResponseOutputAudioDelta)
    assert event.delta == SAMPLES[-length:]


@pytest.mark.parametrize("delta", ["%%%", "AA%A", "ääää"])
def test_sound_that_is_no_base64_is_an_error(delta: str) -> None:
    where = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
    fields = {"type": "response.output_audio.delta", "event_id": "e", **where, "delta": delta}
    with pytest.raises(DecodeError):
        codec.decode_server(json.dumps(fields))
