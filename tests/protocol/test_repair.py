"""What services break is used as far as it can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import DecodeError
from voiceapp.protocol import codec, events, repair
from voiceapp.protocol.repair import MAX_REPAIRED_CHARS, repaired

DONE = '{"type":"response.done","event_id":"e","response":{"id":"r","status":"completed","x":%s}}'


@pytest.mark.parametrize(
    ("broken", "read"),
    [
        ("NaN", None),
        ("-Infinity", None),
        ("1e999", None),
        ('"\\ud83d"', "\ufffd"),
        ('"a\x01b"', "a\x01b"),
        ('"line\nbreak"', "line\nbreak"),
        ('[1, NaN, {"y": "\\udc00z"}]', [1, None, {"y": "\ufffdz"}]),
    ],
)
def test_what_is_no_json_is_mended_where_that_is_safe(broken: str, read: Any) -> None:
    event, text = codec.decode_server(DONE % broken)
    assert isinstance(event, events.ResponseDone)
    assert event.response == {"id": "r", "status": "completed", "x": read}
    assert json.loads(text)["response"]["x"] == read, "the page gets what can be read"


@pytest.mark.parametrize("before", ["\ufeff", "\ufeff  ", " \n"])
def test_marks_before_an_event_are_passed_over(before: str) -> None:
    event, text = codec.decode_server((before + DONE % "1").encode())
    assert isinstance(event, events.ResponseDone)
    assert json.loads(text)["type"] == "response.done"


@pytest.mark.parametrize(
    "data",
    [
        "", "{", "[]", "5", "null", '{"type": 5}', '{"no": "type"}', "\ud83d",
        '{"type":"x","a":' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"type":"response.output_audio.delta","delta":' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"type":"x","a":NaN,"b":"' + "y" * MAX_REPAIRED_CHARS + '"}',
    ],
)  # fmt: skip
def test_what_cannot_be_mended_is_a_decode_error(data: str) -> None:
    with pytest.raises(DecodeError):
        codec.decode_server(data)


@pytest.mark.parametrize("odd", [5, "x", [], [1], {"a": {}}, True, None, 1.5])
@pytest.mark.parametrize(
    "member", ["id", "status", "conversation_id", "status_details", "usage", "metadata", "output", "unknown"]
)
def test_an_odd_member_of_a_response_costs_itself(member: str, odd: Any) -> None:
    response = {"id": "r", "status": "completed", "output": [{"id": "i", "type": "message"}]}
    fields = {"type": "response.done", "event_id": "e", "response": {**response, member: odd}}
    event, _ = codec.decode_server(json.dumps(fields))
    assert isinstance(event, events.ResponseDone)
    for name, value in response.items():
        if name != member:
            assert event.response[name] == value
    kind = repair.INSIDE["response"].get(member)
    if kind is not None and not isinstance(odd, kind) and odd is not None:
        assert member not in event.response


@pytest.mark.parametrize("part", ["x", 5, [], None])
@pytest.mark.parametrize("kind", ["response.done", "response.created", "session.created", "session.updated"])
def test_an_event_without_its_part_still_says_that_it_came(kind: str, part: Any) -> None:
    holder = kind.split(".")[0]
    for fields in ({"type": kind, holder: part}, {"type": kind}):
        event, _ = codec.decode_server(json.dumps(fields))
        assert type(event) is events.SERVER_EVENTS[kind]
        assert getattr(event, holder) == {}
        assert getattr(event, "event_id") == ""  # noqa: B009


def test_an_event_that_needs_what_it_lacks_is_lost() -> None:
    with pytest.raises(DecodeError) as error:
        codec.decode_server('{"type":"conversation.item.deleted","event_id":"e"}')
    assert (error.value.code, error.value.param) == ("missing_required_parameter", "item_id")


def test_a_service_cannot_number_the_page_s_messages() -> None:
    event, text = codec.decode_server('{"type":"response.created","event_id":"e","response":{},"seq":900000}')
    assert isinstance(event, events.ResponseCreated)
    assert "seq" not in json.loads(text)
    assert not event.extra


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), _JSON, max_size=5))
def test_json_that_is_whole_is_read_as_it_is(fields: dict[str, Any]) -> None:
    whole = json.loads(json.dumps(fields))
    assert repaired(json.dumps(fields, ensure_ascii=False)) == whole


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    assert repaired(data) is None or isinstance(repaired(data), dict)
