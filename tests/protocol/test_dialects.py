"""GA, preview and contract: what both can say survives the way there and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.protocol import dialects
from voiceapp.protocol.dialects import Dialect, Half

FORMATS = st.sampled_from(
    [
        {"type": "audio/pcm", "rate": 24000},
        {"type": "audio/pcmu"},
        {"type": "audio/pcma"},
    ]
)
TURN_DETECTION = st.none() | st.fixed_dictionaries(
    {"type": st.sampled_from(["server_vad", "semantic_vad"])},
    optional={"threshold": st.floats(0, 1), "create_response": st.booleans()},
)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


AUDIO = maybe(
    input=maybe(
        format=FORMATS,
        transcription=st.none() | maybe(model=st.text(), language=st.text()),
        noise_reduction=st.none() | st.just({"type": "near_field"}),
        turn_detection=TURN_DETECTION,
    ).filter(bool),
    output=maybe(format=FORMATS, voice=st.text(), speed=st.floats(0.25, 1.5)).filter(bool),
).filter(bool)
SESSIONS = st.fixed_dictionaries(
    {"type": st.just("realtime")},
    optional={
        "id": st.text(),
        "instructions": st.text(),
        "output_modalities": st.sampled_from([["text"], ["audio"]]),
        "audio": AUDIO,
        "tools": st.lists(st.fixed_dictionaries({"type": st.just("function"), "name": st.text()})),
        "tool_choice": st.sampled_from(["auto", "none"]),
        "max_output_tokens": st.integers(1, 4096) | st.just("inf"),
        "some_new_field": st.integers(),
    },
)
PARTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["output_text", "output_audio"])}, optional={"text": st.text()}
    ),
    max_size=3,
)
ITEMS = st.fixed_dictionaries(
    {"id": st.text(), "type": st.just("message"), "role": st.just("assistant"), "content": PARTS},
    optional={"status": st.sampled_from(["completed", "incomplete"])},
)
RESPONSES = st.fixed_dictionaries(
    {"id": st.text(), "object": st.just("realtime.response"), "output": st.lists(ITEMS, max_size=2)},
    optional={
        "output_modalities": st.sampled_from([["text"], ["audio"]]),
        "max_output_tokens": st.integers(1, 4096),
        "metadata": st.none() | st.dictionaries(st.text(), st.text()),
        "audio": maybe(output=maybe(format=FORMATS, voice=st.text()).filter(bool)).filter(bool),
    },
)


@pytest.mark.parametrize("other", [Dialect.PREVIEW, Dialect.CONTRACT])
@pytest.mark.parametrize("kind", ["session.created", "session.updated", "session.update"])
@given(session=SESSIONS)
def test_sessions_come_back_equal(kind: str, other: Dialect, session: dict[str, Any]) -> None:
    half = Half.CLIENT if kind == "session.update" else Half.SERVER
    event = {"type": kind, "event_id": "e", "session": session}
    [there] = dialects.from_ga(event, other, half)
    [back] = dialects.to_ga(there, other, half)
    assert back == event


@given(response=RESPONSES)
def test_responses_come_back_equal(response: dict[str, Any]) -> None:
    event = {"type": "response.done", "event_id": "e", "response": response}
    [there] = dialects.from_ga(event, Dialect.PREVIEW, Half.SERVER)
    [back] = dialects.to_ga(there, Dialect.PREVIEW, Half.SERVER)
    assert back == event


@given(item=ITEMS)
def test_items_come_back_equal(item: dict[str, Any]) -> None:
    event = {"type": "conversation.item.create", "previous_item_id": None, "item": item}
    [there] = dialects.from_ga(event, Dialect.PREVIEW, Half.CLIENT)
    assert {part["type"] for part in there["item"]["content"]} <= {"text", "audio"}
    [back] = dialects.to_ga(there, Dialect.PREVIEW, Half.CLIENT)
    assert back == event


def test_a_session_is_spelt_as_the_preview_spells_it() -> None:
    session = {
        "type": "realtime",
        "output_modalities": ["audio"],
        "max_output_tokens": "inf",
        "audio": {
            "input": {"format": {"type": "audio/pcmu"}, "turn_detection": None},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"},
        },
    }
    [event] = dialects.from_ga({"type": "session.update", "session": session}, Dialect.PREVIEW, Half.CLIENT)
    assert event["session"] == {
        "modalities": ["audio", "text"],
        "max_response_output_tokens": "inf",
        "input_audio_format": "g711_ulaw",
        "output_audio_format": "pcm16",
        "turn_detection": None,
        "voice": "alloy",
    }


def test_created_becomes_added_and_done_once_complete() -> None:
    created = {"type": "conversation.item.created", "event_id": "e", "previous_item_id": "p"}
    whole = created | {"item": {"id": "i", "status": "completed"}}
    assert [e["type"] for e in dialects.to_ga(whole, Dialect.PREVIEW, Half.SERVER)] == [
        "conversation.item.added",
        "conversation.item.done",
    ]
    growing = created | {"item": {"id": "i", "status": "in_progress"}}
    assert [e["type"] for e in dialects.to_ga(growing, Dialect.PREVIEW, Half.SERVER)] == [
        "conversation.item.added"
    ]
    done = {"type": "response.output_item.done", "event_id": "e", "item": {"id": "i", "status": "completed"}}
    assert [e["type"] for e in dialects.to_ga(done, Dialect.PREVIEW, Half.SERVER)] == [
        "conversation.item.done",
        "response.output_item.done",
    ]


def test_transcription_sessions_have_their_own_names_in_the_preview() -> None:
    event = {
        "type": "session.update",
        "session": {"type": "transcription", "audio": {"input": {"format": {"type": "audio/pcma"}}}},
    }
    [there] = dialects.from_ga(event, Dialect.PREVIEW, Half.CLIENT)
    assert there == {
        "type": "transcription_session.update",
        "session": {"input_audio_format": "g711_alaw"},
    }
    assert dialects.to_ga(there, Dialect.PREVIEW, Half.CLIENT) == [event]


def test_turn_detection_none_means_off() -> None:
    event = {"type": "session.update", "session": {"turn_detection": {"type": "none"}}}
    [ga] = dialects.to_ga(event, Dialect.PREVIEW, Half.CLIENT)
    assert ga["session"] == {"type": "realtime", "audio": {"input": {"turn_detection": None}}}


@pytest.mark.parametrize(
    ("session", "dialect"),
    [
        ({"type": "realtime", "audio": {}}, Dialect.GA),
        ({"modalities": ["text"], "voice": "alloy"}, Dialect.PREVIEW),
    ],
)
def test_the_first_frame_tells_the_dialect(session: dict[str, Any], dialect: Dialect) -> None:
    assert dialects.detect(session) is dialect


@given(kind=st.text(min_size=1), fields=st.dictionaries(st.text(), st.integers(), max_size=3))
def test_unknown_events_pass_through(kind: str, fields: dict[str, Any]) -> None:
    event = {**fields, "type": "x." + kind}
    for dialect in Dialect:
        assert dialects.to_ga(event, dialect, Half.SERVER) == [event]
        assert dialects.from_ga(event, dialect, Half.SERVER) == [event]


@pytest.mark.parametrize("kind", [[], {}, None, 1])
def test_a_parts_type_that_is_no_name_is_left_for_the_session_to_refuse(kind: object) -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": kind}]}
    event = {"type": "conversation.item.create", "item": item}
    assert dialects.to_ga(event, Dialect.PREVIEW, Half.CLIENT) == [event]
