"""What a session asks of its service, and what it gives up where the service has less."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.parts.relay_talk import shown
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.actions import FormatsAgreed, HostServers
from voiceapp.conversation.negotiation import (
    Negotiation,
    echoed_format,
    session_fields,
    with_server_vad,
    without_instructions,
)
from voiceapp.protocol.events import SessionCreated
from voiceapp.types import JsonObject

SHOP = McpServer(server_label="shop", server_url="https://shop.example/mcp", authorization="s3cret-token")
CLOCK: JsonObject = {"type": "function", "name": "clock"}
ADA = AssistantConfig(
    slug="ada",
    name="Ada",
    instructions="Be kind.",
    voice="verse",
    input_format=AudioFormat.PCMU,
    output_format=AudioFormat.PCMA,
    turn_detection={"type": "semantic_vad", "eagerness": "low", "create_response": False},
    transcription={"language": "en"},
    max_output_tokens=99,
)


def with_servers(**changes: Any) -> Negotiation:
    return Negotiation(msgspec.structs.replace(ADA, mcp_servers=(SHOP,), **changes))


def test_a_session_is_asked_for_with_all_that_the_assistant_is() -> None:
    assert session_fields(ADA, [CLOCK], "whisper-1") == {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": "Be kind.",
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"},
                "transcription": {"model": "whisper-1", "language": "en"},
                "turn_detection": {"type": "semantic_vad", "eagerness": "low", "create_response": False},
            },
            "output": {"format": {"type": "audio/pcma"}, "voice": "verse"},
        },
        "tools": [CLOCK],
        "max_output_tokens": 99,
    }


@pytest.mark.parametrize(
    ("transcription", "model", "asked"),
    [
        (None, "whisper-1", None),
        ({}, "", None),
        ({}, "whisper-1", {"model": "whisper-1"}),
        ({"model": "own"}, "whisper-1", {"model": "own"}),
    ],
)
def test_captions_are_asked_for_where_they_are_wanted(
    transcription: JsonObject | None, model: str, asked: JsonObject | None
) -> None:
    plain = AssistantConfig(slug="a", name="A", transcription=transcription)
    session = session_fields(plain, [], model)
    assert session["audio"]["input"]["transcription"] == asked
    # What is not set is the service's own choice.
    assert "voice" not in session["audio"]["output"]
    assert "max_output_tokens" not in session


def test_servers_stand_among_the_tools_where_the_service_calls_them() -> None:
    negotiation = with_servers()
    negotiation.tools = [CLOCK]
    labels = [tool.get("server_label") for tool in negotiation.session_update()["session"]["tools"]]
    assert labels == [None, "shop"]
    negotiation.has_mcp = False
    assert negotiation.session_update()["session"]["tools"] == [CLOCK]


def test_functions_that_come_later_are_told_once() -> None:
    negotiation = Negotiation(ADA, tools=[CLOCK])
    negotiation.session_update()
    assert negotiation.tools_update() == []
    negotiation.tools += [{"type": "function", "name": "late"}]
    [update] = negotiation.tools_update()
    assert [tool["name"] for tool in update["session"]["tools"]] == ["clock", "late"]
    assert negotiation.tools_update() == []


def test_servers_are_called_from_here_once_and_only_where_the_service_calls_none() -> None:
    negotiation = with_servers()
    assert negotiation.host() == []
    negotiation.has_mcp = False
    assert negotiation.host() == [HostServers()]
    assert negotiation.host() == []
    bare = Negotiation(ADA, has_mcp=False)
    assert bare.host() == []


@pytest.mark.parametrize(
    ("said", "expires_at"), [({}, None), ({"expires_at": 0}, None), ({"expires_at": "soon"}, None),
                             ({"expires_at": 1_900_000_000}, 1_900_000_000.0)],
)  # fmt: skip
def test_the_end_of_the_connection_is_known_where_the_service_says_it(
    said: JsonObject, expires_at: float | None
) -> None:
    negotiation = Negotiation(ADA)
    negotiation.session_created(said)
    assert negotiation.expires_at == expires_at
    negotiation.connection_lost()
    assert negotiation.expires_at is None


def test_what_the_service_echoes_counts_and_not_what_was_asked() -> None:
    negotiation = Negotiation(ADA)
    echoed = {
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
            "output": {"format": "g711_ulaw"},
        }
    }
    agreed = negotiation.session_updated(echoed)
    assert agreed == FormatsAgreed(AudioFormat.PCM16, AudioFormat.PCMU)
    assert negotiation.turn_detection is None


@pytest.mark.parametrize("echoed", [{}, {"audio": None}, {"audio": {"input": "odd", "output": 7}}])
def test_a_service_that_echoes_nothing_is_taken_to_have_agreed(echoed: JsonObject) -> None:
    negotiation = Negotiation(ADA)
    assert negotiation.session_updated(echoed) == FormatsAgreed(AudioFormat.PCMU, AudioFormat.PCMA)
    assert negotiation.turn_detection == ADA.turn_detection


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        (None, AudioFormat.PCMA),
        ({}, AudioFormat.PCMA),
        ({"format": None}, AudioFormat.PCMA),
        ({"format": "pcm16"}, AudioFormat.PCM16),
        ({"format": {"type": "audio/pcm"}}, AudioFormat.PCM16),
        ({"format": {"type": "audio/pcm", "rate": 24000}}, AudioFormat.PCM16),
    ],
)
def test_a_format_that_is_not_said_is_the_wanted_one(side: Any, expected: AudioFormat) -> None:
    assert echoed_format(side, AudioFormat.PCMA) is expected


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize(
    "echoed", ["opus", {"type": "audio/opus"}, {"type": "audio/pcm", "rate": 16000}, 5, [], {"rate": 24000}]
)
def test_a_format_that_nobody_here_can_play_is_the_end_in_words(side: str, echoed: Any) -> None:
    negotiation = Negotiation(ADA)
    negotiation.session_updated({"audio": {side: {"format": echoed}}})
    assert negotiation.refusal.startswith("The service uses a format of audio that")


@pytest.mark.parametrize(
    ("error", "given_up"),
    [
        ({"param": "session.tools", "message": "x"}, "mcp"),
        ({"message": "MCP is not supported here."}, "mcp"),
        ({"param": "session.audio.input.turn_detection.type", "message": "x"}, "semantic_vad"),
        ({"message": "Something is wrong."}, "semantic_vad"),
        ({"code": "cannot_update_voice", "message": "x"}, "voice"),
    ],
)
def test_the_services_words_choose_what_is_given_up(error: JsonObject, given_up: str) -> None:
    assert with_servers().fall_back(error) == given_up


def test_what_a_service_may_lack_is_given_up_one_after_the_other() -> None:
    negotiation = with_servers()
    error = {"message": "Something is wrong."}
    assert [negotiation.fall_back(error) for _ in range(3)] == ["semantic_vad", "mcp", ""]
    voiceless = {"code": "cannot_update_voice", "message": "x"}
    assert negotiation.fall_back(voiceless) == "voice"
    assert negotiation.assistant.voice == ""
    assert negotiation.fall_back(voiceless) == ""


def test_a_refusal_is_told_and_asked_again_with_less() -> None:
    notice, update = with_servers().refused({"message": "no semantic turn detection"})
    assert shown([notice])[0]["code"] == "semantic_vad_refused"
    assert update is not None
    assert update["session"]["audio"]["input"]["turn_detection"]["type"] == "server_vad"


TOOLS: list[JsonObject] = [
    {"type": "function", "name": name, "parameters": {}} for name in ("clock", "find_orders", "notes")
]


@pytest.mark.parametrize(
    "error",
    [
        {"param": "session.tools[1].parameters", "code": "invalid_function_parameters", "message": "No."},
        {"param": "tools[1]", "message": "No."},
        {"param": "session.tools.1.parameters.properties", "message": "No."},
        {
            "param": "tools",
            "message": "Invalid schema for function 'find_orders': array schema missing items.",
        },
        {"param": None, "message": "Invalid tool: find_orders."},
    ],
)
@pytest.mark.parametrize("detection", [{"type": "semantic_vad"}, {"type": "server_vad"}, None])
def test_a_tool_that_is_refused_is_left_out_alone(error: JsonObject, detection: JsonObject | None) -> None:
    negotiation = Negotiation(AssistantConfig(slug="a", name="A", turn_detection=detection), tools=TOOLS)
    notice, update = negotiation.refused(error)
    assert shown([notice])[0]["code"] == "tool_refused"
    assert update is not None
    assert [tool["name"] for tool in update["session"]["tools"]] == ["clock", "notes"]
    assert update["session"]["audio"]["input"]["turn_detection"] == detection
    negotiation.connection_lost()
    again = negotiation.session_update()["session"]["tools"]
    assert [tool["name"] for tool in again] == ["clock", "notes"], "it is remembered for the next connection"


def test_every_tool_may_be_refused_one_after_the_other() -> None:
    negotiation = Negotiation(AssistantConfig(slug="a", name="A"), tools=TOOLS)
    error: JsonObject = {"param": "session.tools[0].parameters", "message": "No."}
    updates = [negotiation.refused(error)[1] for _ in range(4)]
    assert [update and len(update["session"]["tools"]) for update in updates] == [2, 1, 0, None]
    assert negotiation.refusal


@pytest.mark.parametrize(
    ("param", "gone"),
    [
        ("session.max_response_output_tokens", "max_output_tokens"),
        ("session.max_output_tokens", "max_output_tokens"),
        ("session.input_audio_transcription.model", "transcription"),
        ("session.audio.input.transcription", "transcription"),
        ("session.audio.output.voice", "voice"),
        ("session.voice", "voice"),
        ("session.turn_detection.eagerness", "turn_detection"),
    ],
)
def test_a_setting_that_is_refused_by_name_is_left_out_alone(param: str, gone: str) -> None:
    assistant = AssistantConfig(
        slug="a", name="A", voice="coral", max_output_tokens=100, transcription={"model": "whisper-1"},
        turn_detection={"type": "server_vad"},
    )  # fmt: skip
    negotiation = Negotiation(assistant)
    notice, update = negotiation.refused({"param": param, "message": "Unknown parameter."})
    assert shown([notice])[0]["code"] == "setting_refused"
    text = str(update)
    kept = {"max_output_tokens", "transcription", "voice", "turn_detection"} - {gone}
    assert gone not in text
    assert all(name in text for name in kept)


def test_a_refusal_of_the_least_is_told_without_secrets() -> None:
    negotiation = Negotiation(AssistantConfig(slug="a", name="A", mcp_servers=(SHOP,)), has_mcp=False)
    notice, update = negotiation.refused({"message": "The header s3cret-token is odd."})
    [event] = shown([notice])
    assert (event["code"], event["level"]) == ("configuration_refused", "error")
    assert "is odd" in event["message"]
    assert "s3cret" not in event["message"]
    assert update is None


def test_silence_ends_turns_in_place_of_their_sense() -> None:
    assert with_server_vad(ADA).turn_detection == {"type": "server_vad", "create_response": False}


def test_the_page_is_not_shown_the_operators_text() -> None:
    session = {"instructions": "Be kind.", "tools": [CLOCK], "prompt": {}, "model": "m"}
    event = SessionCreated(event_id="e", session=session)
    assert without_instructions(event) == SessionCreated(event_id="e", session={"model": "m"})
    assert "instructions" in session
