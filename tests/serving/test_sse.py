"""Server-sent events as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.serving import sse


@pytest.mark.parametrize(
    ("payload", "name", "text"),
    [
        ("[DONE]", "", "data: [DONE]\n\n"),
        ({"a": "é"}, "", 'data: {"a": "é"}\n\n'),
        ({"a": 1}, "delta", 'event: delta\ndata: {"a": 1}\n\n'),
    ],
)
def test_an_event_is_its_name_its_data_and_an_empty_line(payload: object, name: str, text: str) -> None:
    assert sse.event(payload, name) == text


@given(st.dictionaries(st.text(), st.text()))
def test_no_text_makes_lines_of_its_own(payload: dict[str, str]) -> None:
    data, empty, end = sse.event(payload).split("\n")
    assert (empty, end) == ("", "")
    assert json.loads(data.removeprefix("data: ")) == payload


def test_half_a_character_goes_on_the_wire_as_a_mark() -> None:
    assert sse.encode("a\ud800é") == b"a?\xc3\xa9"
