"""The ``session`` object: complete at any moment, changed by deep merges or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.config import DEFAULT_INSTRUCTIONS, Kind, SessionConfig
from voiceapp.errors import ProtocolError


def config(kind: Kind = "realtime") -> SessionConfig:
    return SessionConfig("sess_1", "model", 4_000_000_000, kind)


def update(
    session: SessionConfig, *, spoken: bool = False, may_change_kind: bool = True, **change: Any
) -> None:
    fields = {"type": session["type"], **change}
    session.update(fields, audio_was_spoken=spoken, may_change_kind=may_change_kind)


def test_a_new_session_says_all_of_its_settings() -> None:
    session = config()
    assert (session.converses, session.transcribes, session.input_format) == (True, False, AudioFormat.PCM16)
    assert session.turns is not None
    shown = session.snapshot()
    assert (shown["id"], shown["model"], shown["instructions"]) == ("sess_1", "model", DEFAULT_INSTRUCTIONS)
    # What is shown is a copy.
    shown["audio"]["input"]["format"] = "changed"
    assert session.input_format is AudioFormat.PCM16


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    session = config()
    update(session, audio={"input": {"transcription": {"language": "en"}}})
    update(session, audio={"input": {"transcription": {"prompt": "Names."}}, "output": {"speed": 1.2}})
    shown = session.snapshot()
    assert shown["audio"]["input"]["transcription"] == {"language": "en", "prompt": "Names."}
    assert shown["audio"]["output"]["voice"] == "alloy"
    assert session.transcribes
    update(session, audio={"input": {"transcription": None}})
    assert not session.transcribes


def test_another_kind_of_turn_detection_begins_with_its_own_defaults() -> None:
    session = config()
    update(session, audio={"input": {"turn_detection": {"type": "server_vad", "threshold": 0.9}}})
    update(session, audio={"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 700}}})
    turns = session.snapshot()["audio"]["input"]["turn_detection"]
    assert (turns["threshold"], turns["silence_duration_ms"]) == (0.9, 700)
    update(session, audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
    turns = session.snapshot()["audio"]["input"]["turn_detection"]
    assert turns == {
        "type": "semantic_vad", "eagerness": "auto", "create_response": True, "interrupt_response": True
    }  # fmt: skip
    update(session, audio={"input": {"turn_detection": None}})
    assert session.turns is None


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"temperature": 1}, "unknown_parameter", "session.temperature"),
        ({"audio": {"output": {"speed": 3}}}, "decimal_above_max_value", "session.audio.output.speed"),
        ({"audio": {"input": {"turn_detection": {"type": "none"}}}}, "invalid_value",
         "session.audio.input.turn_detection.type"),
        ({"audio": {"input": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}}},
         "unknown_parameter", "session.audio.input.turn_detection.threshold"),
        ({"type": "robot"}, "invalid_value", "session.type"),
    ],
)  # fmt: skip
def test_a_wrong_change_changes_nothing(change: dict[str, Any], code: str, param: str) -> None:
    session = config()
    before = session.snapshot()
    with pytest.raises(ProtocolError) as refused:
        update(session, **{"instructions": "New.", **change})
    assert (refused.value.code, refused.value.param) == (code, param)
    assert session.snapshot() == before


def test_a_change_says_which_kind_of_session_it_is_for() -> None:
    with pytest.raises(ProtocolError) as refused:
        config().update({}, audio_was_spoken=False, may_change_kind=True)
    assert refused.value.param == "session.type"


def test_the_voice_stays_once_it_was_heard() -> None:
    session = config()
    update(session, audio={"output": {"voice": "verse"}})
    with pytest.raises(ProtocolError) as refused:
        update(session, spoken=True, audio={"output": {"voice": "alloy"}})
    assert refused.value.code == "cannot_update_voice"
    update(session, spoken=True, audio={"output": {"voice": "verse", "speed": 1.5}})


def test_empty_instructions_are_the_default_ones() -> None:
    session = config()
    update(session, instructions="Be brief.")
    assert session["instructions"] == "Be brief."
    update(session, instructions="")
    assert session["instructions"] == DEFAULT_INSTRUCTIONS


def test_secrets_of_servers_are_kept_and_never_shown() -> None:
    session = config()
    shop = {"type": "mcp", "server_label": "shop", "server_url": "https://x.y", "authorization": "token",
            "headers": {"X-Key": "secret"}}  # fmt: skip
    update(session, tools=[shop])
    assert session["tools"][0]["authorization"] == "token"
    [shown] = session.snapshot()["tools"]
    assert shown == {"type": "mcp", "server_label": "shop", "server_url": "https://x.y"}


def test_a_session_may_become_one_of_transcription_as_long_as_it_is_new() -> None:
    session = config()
    change = {"type": "transcription"}
    with pytest.raises(ProtocolError):
        session.update(change, audio_was_spoken=False, may_change_kind=False)
    session.update(change, audio_was_spoken=False, may_change_kind=True)
    assert not session.converses
    assert session.transcribes
    with pytest.raises(ProtocolError):
        session.update({"type": "realtime"}, audio_was_spoken=False, may_change_kind=True)


def test_a_session_of_transcription_answers_nobody() -> None:
    session = config("transcription")
    turns = session.turns
    assert turns is not None
    assert (turns.create_response, turns.interrupt_response, turns.idle_timeout_ms) == (False, False, None)
    shown = session.snapshot()["audio"]["input"]["turn_detection"]
    assert "create_response" not in shown
    with pytest.raises(ProtocolError) as refused:
        update(session, instructions="Talk.")
    assert refused.value.code == "unknown_parameter"
