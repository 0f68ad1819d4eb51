"""Server-sent events as text."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.serving import sse
from voiceapp.serving.sse import Received, StreamReader


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


WIRE = (
    b"\xef\xbb\xbfdata: {}\r\n\r\n: a comment\ndata: one\ndata:two\n\nevent: error\rdata: \xc3\xa9\r\r"
    b"id: 7\nretry: 9\n\nodd\n\ndata: last"
)
READ = [Received("", "{}"), Received("", "one\ntwo"), Received("error", "é"), Received("", "last")]


def read(pieces: list[bytes]) -> list[Received]:
    reader = StreamReader()
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


@given(st.lists(st.integers(0, len(WIRE)), max_size=12))
def test_events_are_read_however_their_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WIRE)]
    assert read([WIRE[start:end] for start, end in pairwise(places)]) == READ


def test_an_event_is_there_with_its_empty_line_and_not_before() -> None:
    reader = StreamReader()
    assert reader.feed(b"data: 1\n") == []
    assert reader.feed(b"\n") == [Received("", "1")]


@pytest.mark.parametrize("endless", [b"x", b"data: x\n"])
def test_an_event_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch, endless: bytes) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 64)
    reader = StreamReader()
    with pytest.raises(ValueError, match="longer than 64 bytes"):
        for _ in range(100):
            reader.feed(endless)


@given(st.dictionaries(st.text(), st.text()), st.sampled_from(["", "delta"]))
def test_what_is_written_is_read(payload: dict[str, str], name: str) -> None:
    [found] = read([sse.encode(sse.event(payload, name))])
    assert found.name == name
    assert json.loads(found.data.encode()) == json.loads(sse.encode(json.dumps(payload, ensure_ascii=False)))
