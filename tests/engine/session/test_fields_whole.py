"""The table of fields is whole: it has all of the contract, of the events, and of OpenAI's own package."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

import pydantic
import pytest
from openai.types import realtime

from tests.engine.session.test_fields import FUNCTION, VAD
from tests.parts.contracts import Realtime, load
from tests.parts.engine_parts import Client
from voiceapp.engine.session import validation
from voiceapp.engine.session.config import RESPONSE, SessionConfig
from voiceapp.engine.session.fields import FIELDS, Effect, checked
from voiceapp.engine.session.items import read_item
from voiceapp.errors import ProtocolError
from voiceapp.protocol.dialects import Dialect, Half, to_ga
from voiceapp.protocol.events import CLIENT_EVENTS, EXTRA

# -- the table is whole ---------------------------------------------------------------------------------


def test_the_table_has_the_fields_of_every_event() -> None:
    for kind, event in CLIENT_EVENTS.items():
        if kind != "output_audio_buffer.clear":
            assert set(FIELDS[kind]) == {"type", *event.__struct_encode_fields__} - {EXTRA}


def test_checks_that_differ_from_the_table_are_no_checks() -> None:
    with pytest.raises(ValueError, match="effort"):
        checked("reasoning", {})
    with pytest.raises(ValueError, match="more"):
        checked("reasoning", {"effort": validation.boolean, "more": validation.boolean})


def properties(contract: Realtime, schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of a contract's schema, those of its parts included."""
    schema = contract.resolve(schema)
    found: dict[str, dict[str, Any]] = {}
    for choice in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(choice, []):
            found |= properties(contract, part)
    own: dict[str, dict[str, Any]] = schema.get("properties", {})
    return found | own


def of_kinds(place: str) -> set[str]:
    """Return the fields of all kinds of items, or of content."""
    return {name for one, rows in FIELDS.items() if one.startswith(f"{place}[") for name in rows}


def test_the_table_has_every_field_of_the_contract_file() -> None:
    contract = Realtime()
    for kind in contract.client:
        found = properties(contract, contract.schema(kind))
        assert not set(found) - set(FIELDS[kind]) or kind == "output_audio_buffer.clear"
        for item in (found.get("item"), properties(contract, found.get("response", {})).get("input")):
            if item is None:
                continue
            fields = properties(contract, contract.resolve(item).get("items", item))
            assert set(fields) <= of_kinds("item")
            for one in fields["type"]["enum"]:
                assert f"item[{one}]" in FIELDS
            part = properties(contract, contract.resolve(fields["content"])["items"])
            # The "id" is of a reference, which is refused as a whole.
            assert set(part) - of_kinds("content") == {"id"}
            names = {"text": "output_text", "audio": "output_audio"}
            for one in part["type"]["enum"]:
                assert f"content[{names.get(one, one)}]" in FIELDS


def contract_settings() -> Iterator[tuple[str, str, Any]]:
    """Yield an event, a field of its ``session`` or ``response``, and a value, as the contract has them."""
    contract = Realtime()
    load(Realtime.FILE)
    for kind, inner in (
        ("session.update", "session"),
        ("transcription_session.update", "session"),
        ("response.create", "response"),
    ):
        for name, schema in properties(contract, properties(contract, contract.schema(kind))[inner]).items():
            yield kind, name, contract.example(schema, full=True)


def test_the_contracts_settings_fare_as_the_table_says() -> None:
    lawful = {
        "voice": "sage", "modalities": ["text"], "instructions": "Hi", "output_audio_format": "pcm16",
        "input_audio_format": "pcm16", "turn_detection": {"type": "server_vad"}, "conversation": "none",
        "input_audio_noise_reduction": {"type": "near_field"}, "metadata": {}, "tools": [FUNCTION],
        "input_audio_transcription": {"model": "m", "language": "en"}, "tool_choice": "auto", "input": [],
    }  # fmt: skip
    seen = 0
    for kind, name, example in contract_settings():
        inner = "response" if kind == "response.create" else "session"
        event = {"type": kind, inner: {name: lawful.get(name, example)}}
        (ga,) = to_ga(event, Dialect.CONTRACT, Half.CLIENT)
        client = Client("transcription" if kind.startswith("transcription") else "realtime")
        events = client.send(ga.pop("type"), **ga)
        errors = [event["error"] for event in events if event["type"] == "error"]
        place = "session[transcription]" if kind.startswith("transcription") else inner
        below = {
            "temperature": (inner, "temperature"),
            "voice": (f"{inner}.audio.output", "voice"),
            "output_audio_format": (f"{inner}.audio.output", "format"),
            "input_audio_format": ("session.audio.input", "format"),
            "input_audio_transcription": ("session.audio.input", "transcription"),
            "input_audio_noise_reduction": ("session.audio.input", "noise_reduction"),
            "turn_detection": ("session.audio.input", "turn_detection"),
            "modalities": (place, "output_modalities"),
            "max_response_output_tokens": (place, "max_output_tokens"),
        }
        where, called = below.get(name, (place, name))
        row = FIELDS[where][called]
        if row.effect is Effect.UNKNOWN and name != "temperature":
            assert [error["param"] for error in errors] == [f"session.{called}"]
        else:
            assert not errors, (kind, name)
        seen += 1
    assert seen > 25


MODELS = {
    "SystemMessage": "item[message]", "UserMessage": "item[message]", "AssistantMessage": "item[message]",
    "FunctionCall": "item[function_call]", "FunctionCallOutput": "item[function_call_output]",
    "RealtimeMcpApprovalResponse": "item[mcp_approval_response]",
    "RealtimeResponseCreateParams": "response", "RealtimeResponseCreateAudioOutput": "response.audio",
    "Output": "response.audio.output", "AudioPCM": "audio.format", "AudioPCMU": "audio.format",
    "AudioPCMA": "audio.format", "OutputVoiceID": "audio.output.voice", "VoiceID": "audio.output.voice",
    "RealtimeReasoning": "reasoning", "ToolChoiceFunction": "tool_choice[function]",
    "ToolChoiceMcp": "tool_choice[mcp]", "RealtimeFunctionTool": "tools[function]",
    "RealtimeResponseCreateMcpTool": "tools[mcp]", "Mcp": "tools[mcp]",
    "RealtimeSessionCreateRequest": "session", "RealtimeAudioConfig": "session.audio",
    "RealtimeAudioConfigInput": "session.audio.input", "RealtimeAudioConfigOutput": "session.audio.output",
    "NoiseReduction": "session.audio.input.noise_reduction",
    "AudioTranscription": "session.audio.input.transcription",
    "ServerVad": f"{VAD}[server_vad]", "SemanticVad": f"{VAD}[semantic_vad]",
    "TracingConfiguration": "session.tracing", "RealtimeTruncationRetentionRatio": "session.truncation",
    "TokenLimits": "session.truncation.token_limits",
    "RealtimeTranscriptionSessionCreateRequest": "session[transcription]",
    "RealtimeTranscriptionSessionAudio": "session[transcription].audio",
    "RealtimeTranscriptionSessionAudioInput": "session.audio.input",
}  # fmt: skip
"""Which place the classes of OpenAI's package are about, by the ends of their names."""


def package_models(kind: Any, seen: set[type[pydantic.BaseModel]]) -> None:
    """Collect the classes of OpenAI's package that an event may hold; the parts of a prompt are left out."""
    if inspect.isclass(kind) and issubclass(kind, pydantic.BaseModel):
        if kind in seen or kind.__name__ == "ResponsePrompt":
            return
        seen.add(kind)
        for field in kind.model_fields.values():
            package_models(field.annotation, seen)
    for inner in get_args(kind):
        package_models(inner, seen)


def test_the_table_has_every_field_of_openais_own_package() -> None:
    models: set[type[pydantic.BaseModel]] = set()
    package_models(realtime.RealtimeClientEvent, models)
    known = 0
    for model in models:
        name = model.__name__.removeprefix("RealtimeConversationItem")
        names = {field.alias or key for key, field in model.model_fields.items()}
        if name == "Content":
            # The rest is of images, which are refused as a whole.
            assert names - {"image_url", "detail"} <= of_kinds("content")
        elif name in MODELS:
            assert names <= set(FIELDS[MODELS[name]]), name
        elif name.endswith("Event"):
            kind = get_args(model.model_fields["type"].annotation)[0]
            assert names <= set(FIELDS[kind]) or kind == "output_audio_buffer.clear"
        else:
            assert "Mcp" in name or "mcp" in name or model.__module__.endswith("mcp_list_tools"), name
            continue
        known += 1
    assert known > 40


def test_what_the_engine_shows_can_be_sent_back_where_it_is_a_setting() -> None:
    session = SessionConfig("sess_1", "model", 1, "realtime").snapshot()
    named = {name for name, row in FIELDS["session"].items() if row.effect is not Effect.UNKNOWN}
    given = {name: value for name, value in session.items() if name in named}
    assert "session.updated" in [event["type"] for event in Client().update(**given)]
    assert {"id", "object", "expires_at"} == set(session) - set(given)


def test_a_response_is_checked_by_the_table_also_without_a_session() -> None:
    with pytest.raises(ProtocolError) as refused:
        RESPONSE({"prompt": {"id": "p"}}, "response")
    assert refused.value.param == "response.prompt"
    with pytest.raises(ProtocolError) as refused:
        read_item({"type": "mcp_call"}, "item", new_id="i", call_id="c", audio_format=None)  # type: ignore[arg-type]
    assert refused.value.param == "item.type"
