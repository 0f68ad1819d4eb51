"""Messages between the app and a model host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import DecodeError
from voiceapp.text.model_host import messages
from voiceapp.text.model_host.messages import (
    Answer,
    Initialized,
    Request,
    RequestError,
    RequestFailed,
    StreamEvent,
    StreamMetadata,
)

IDS = {"threadId": "th", "turnId": "tu", "requestId": "r"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (messages.request(1, "model/request", {"a": 1}), Request(1, "model/request", {"a": 1})),
        (messages.result("x", {"accepted": True}), Answer("x", {"accepted": True})),
        (messages.refusal(2, -32601, "No."), Answer(2, None, {"code": -32601, "message": "No."})),
        (messages.notification("initialized"), Initialized()),
        (
            messages.notification("model/streamMetadata", {**IDS, "metadata": {"x-a": "1"}}),
            StreamMetadata("th", "tu", "r", {"x-a": "1"}),
        ),
        (
            messages.notification("model/streamEvent", {**IDS, "event": {"type": "x"}}),
            StreamEvent("th", "tu", "r", {"type": "x"}),
        ),
        (
            messages.notification("model/requestFailed", {**IDS, "error": {"message": "No.", "type": "t"}}),
            RequestFailed("th", "tu", "r", RequestError("No.", "t")),
        ),
    ],
)
def test_what_is_written_is_read(text: str, message: Any) -> None:
    assert messages.read(text) == message


def test_text_of_any_language_is_written_as_it_is() -> None:
    assert "grüße 😀" in messages.result(1, {"text": "grüße 😀"})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("{", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ("[]", "invalid_event"),
        ("{}", "invalid_event"),
        ('{"method": "no/such"}', "invalid_event"),
        ('{"method": ["initialized"]}', "invalid_event"),
        ('{"method": "model/streamEvent"}', "invalid_event"),
        (json.dumps({"method": "model/streamEvent", "params": {**IDS, "turnId": 7}}), "invalid_event"),
        ('{"id": null, "method": "x"}', "invalid_event"),
        ('{"id": 1.5, "result": 1}', "invalid_event"),
    ],
)
def test_what_is_no_message_is_refused(fields: str, code: str) -> None:
    with pytest.raises(DecodeError) as refused:
        messages.read(fields)
    assert refused.value.code == code


def test_whatever_carries_an_id_is_no_notification() -> None:
    assert messages.read('{"id": 1, "method": "initialized"}') == Request(1, "initialized")
    assert messages.read('{"id": 1}') == Answer(1)


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with pytest.raises(DecodeError):
        messages.read(text)
