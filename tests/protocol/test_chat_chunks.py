"""What is read of a chat-completions stream, whatever a service leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol import chat_chunks
from voiceapp.protocol.chat_chunks import CallSlots, Choice, Delta


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": [], "prompt_filter_results": []},
        {"choices": None, "usage": {"total_tokens": 3}},
        {"choices": [{"index": 0, "content_filter_results": {}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {}}]}}]},
    ],
)
def test_everything_may_be_missing(chunk: dict[str, Any]) -> None:
    read = chat_chunks.read(chunk)
    assert read.usage == chunk.get("usage")
    assert len(read.choices or []) == len(chunk.get("choices") or [])


def test_what_is_said_is_read() -> None:
    delta = {"content": "Hi", "role": "assistant"}
    [choice] = (
        chat_chunks.read({"choices": [{"index": 1, "delta": delta, "finish_reason": "stop"}]}).choices or []
    )
    assert choice == Choice(index=1, delta=Delta(content="Hi"), finish_reason="stop")


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": "x"},
        {"choices": [None]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": "0"}]}}]},
        {"usage": 7},
    ],
)
def test_what_is_no_chunk_is_a_fault_of_the_service(chunk: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError) as fault:
        chat_chunks.read(chunk)
    assert fault.value.code == "invalid_chunk"


def fragment(index: int | None = None, call_id: str = "", name: str = "") -> dict[str, Any]:
    return {"index": index, "id": call_id or None, "function": {"name": name or None, "arguments": "x"}}


def test_fragments_are_told_apart_by_their_index() -> None:
    slots = CallSlots()
    assert slots.of(fragment(0, "a", "f"), 0) == 0
    assert slots.of(fragment(1, "b", "g"), 0) == 1
    assert slots.of(fragment(0), 0) == 0
    assert slots.ids == {0: "a", 1: "b"}


def test_fragments_without_an_index_are_told_apart_by_their_place() -> None:
    slots = CallSlots()
    assert [slots.of(fragment(), place) for place in (0, 1, 0)] == [0, 1, 0]
    assert slots.ids == {0: "call_0", 1: "call_1"}


def test_calls_that_are_all_numbered_0_are_told_apart_by_id_and_name() -> None:
    slots = CallSlots()
    assert slots.of(fragment(0, "a", "f"), 0) == 0
    # The same call, named again.
    assert slots.of(fragment(0, "a", "f"), 0) == 0
    # A new id alone, as one server gives each fragment, is no new call.
    assert slots.of(fragment(0, "b"), 0) == 0
    assert slots.of(fragment(0, "c", "g"), 0) == 1
    assert slots.of(fragment(0), 0) == 1
    assert slots.ids == {0: "a", 1: "c"}


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.sampled_from(["", "a", "b"]),
                          st.sampled_from(["", "f"]), st.integers(0, 2))))  # fmt: skip
def test_every_call_has_a_number_and_an_id_of_its_own(parts: list[tuple[int | None, str, str, int]]) -> None:
    slots = CallSlots()
    numbers = {slots.of(fragment(index, call_id, name), place) for index, call_id, name, place in parts}
    assert numbers == slots.ids.keys()
    assert all(slots.ids.values())
