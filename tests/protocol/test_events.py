"""Every message of the published Azure contract survives the codec and the contract dialect."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest

from tests.parts.contracts import Realtime
from voiceapp.protocol import chat_chunks, codec, dialects, events
from voiceapp.protocol.dialects import Dialect, Half

CONTRACT = Realtime()
EVENTS = [(Half.CLIENT, name) for name in CONTRACT.client] + [(Half.SERVER, name) for name in CONTRACT.server]
CHUNK = "chat.completion.chunk"


def through_the_product(fields: dict[str, Any], half: Half) -> dict[str, Any]:
    """Contract JSON -> GA -> struct -> GA JSON -> contract JSON."""
    make = codec.client_event if half is Half.CLIENT else codec.server_event
    [ga] = dialects.to_ga(fields, Dialect.CONTRACT, half)
    event = make(ga)
    assert isinstance(event, events.Event), f"{fields['type']} is unknown"
    [back] = dialects.from_ga(codec.decode_fields(codec.encode(event)), Dialect.CONTRACT, half)
    return back


def test_the_product_knows_all_61_messages() -> None:
    assert set(CONTRACT.client) == set(events.CLIENT_EVENTS)
    assert set(CONTRACT.server) == set(events.SERVER_EVENTS)
    assert len(CONTRACT.client) + len(CONTRACT.server) + 2 == len(CONTRACT.messages) == 61


@pytest.mark.parametrize("full", [True, False], ids=["every-field", "required-only"])
@pytest.mark.parametrize(("half", "name"), EVENTS, ids=[name for _, name in EVENTS])
def test_each_event_decodes_reencodes_and_validates(half: Half, name: str, full: bool) -> None:
    schema = CONTRACT.schema(name)
    fields = CONTRACT.example(schema, full=full)
    jsonschema.validate(fields, schema)
    back = through_the_product(fields, half)
    jsonschema.validate(back, schema)
    assert back["type"] == name
    if name != "input_audio_buffer.dtmf_event_received":
        for key, value in fields.items():
            if key not in ("session", "response", "item"):
                assert back[key] == value


@pytest.mark.parametrize("name", ["session.update", "session.updated"])
def test_a_session_comes_back_with_every_field_that_ga_can_say(name: str) -> None:
    half = Half.CLIENT if name == "session.update" else Half.SERVER
    fields = CONTRACT.example(CONTRACT.schema(name), full=True)
    session = fields["session"] | {"modalities": ["audio", "text"], "turn_detection": {"type": "server_vad"}}
    fields["session"] = session
    back = through_the_product(fields, half)["session"]
    session.pop("temperature"), back.pop("temperature", None)
    assert back == session


@pytest.mark.parametrize("full", [True, False])
def test_the_chat_chunk_is_read(full: bool) -> None:
    fields = CONTRACT.example(CONTRACT.schema(CHUNK), full=full)
    read = msgspec.to_builtins(chat_chunks.read(fields))
    assert len(read["choices"]) == len(fields["choices"])
    for ours, theirs in zip(read["choices"], fields["choices"], strict=True):
        assert (ours["index"], ours["finish_reason"]) == (theirs["index"], theirs.get("finish_reason"))
        assert (ours["delta"] or {}).get("content") == (theirs.get("delta") or {}).get("content")
    assert read["usage"] == fields.get("usage")
