"""An assistant's fields are held against what services take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from voiceapp.records import validation
from voiceapp.records.validation import MAX_VOICES

Check = Callable[[object], None]
TURNS, VOICES = validation.validate_turn_detection, validation.validate_voices


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (TURNS, None),
        (TURNS, validation.default_turn_detection()),
        (TURNS, {"type": "server_vad", "threshold": 1, "idle_timeout_ms": 5_000}),
        (TURNS, {"type": "semantic_vad", "eagerness": "low", "interrupt_response": False}),
        (validation.validate_transcription, None),
        (validation.validate_transcription, {"model": "m", "language": "en", "prompt": "Names."}),
        (VOICES, []),
        (VOICES, [f"voice {number}" for number in range(MAX_VOICES)]),
        (validation.validate_tools, ["calculate", "current_time"]),
        (validation.validate_mcp_servers, [{"server_label": "a", "server_url": "https://x.y"}]),
        (validation.validate_operations, ["GET /orders"]),
    ],
)
def test_what_services_take_passes(check: Check, value: Any) -> None:
    check(value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (TURNS, "server_vad"),
        (TURNS, {}),
        (TURNS, {"type": "server_vad", "threshold": 1.1}),
        (TURNS, {"type": "server_vad", "idle_timeout_ms": 4_999}),
        (TURNS, {"type": "semantic_vad", "threshold": 0.5}),
        (validation.validate_transcription, {"lang": "en"}),
        (VOICES, ["a", "a"]),
        (VOICES, [" "]),
        (VOICES, [f"voice {number}" for number in range(MAX_VOICES + 1)]),
        (validation.validate_tools, ["no_such_tool"]),
        (validation.validate_tools, "calculate"),
        (validation.validate_mcp_servers, [{"server_label": "a", "server_url": "http://x.y"}]),
        (validation.validate_operations, ["a\nb"]),
        (validation.validate_operations, [str(number) for number in range(65)]),
    ],
)
def test_what_services_would_refuse_is_refused(check: Check, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        check(value)
    assert all(message.endswith(".") for message in refused.value.messages)
