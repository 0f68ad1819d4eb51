"""The conversation's items as the engine keeps them: order, words, and what audio is left."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.items import (
    AUDIO_BUDGET_BYTES,
    MAX_GIVEN_CHARS,
    ConversationItems,
    SessionItem,
    TimedWord,
    decode_audio,
    history,
    read_item,
    whole_samples,
    within,
)
from voiceapp.errors import ProtocolError
from voiceapp.text.provider import Called, HistoryItem, Returned, Said, text_tokens


def message(name: str, role: str = "user", **part: Any) -> SessionItem:
    content = [part] if part else []
    return SessionItem({"id": name, "type": "message", "role": role, "content": content})


def spoken(name: str, *words: str) -> SessionItem:
    """Return what the assistant said, 100 ms for each word."""
    text = "".join(words)
    item = message(name, "assistant", type="output_audio", transcript=text)
    item.audio = bytes(len(words) * 100 * AudioFormat.PCM16.bytes_per_ms)
    item.audio_ms = len(words) * 100.0
    item.words = [TimedWord(word, at * 100, at * 100 + 100) for at, word in enumerate(words)]
    return item


def items(*names: str) -> ConversationItems:
    kept = ConversationItems()
    for name in names:
        kept.insert(message(name), None)
    return kept


def read(fields: dict[str, Any], audio_format: AudioFormat = AudioFormat.PCM16) -> SessionItem:
    return read_item(fields, "item", new_id="item_1", call_id="call_1", audio_format=audio_format)


# -- order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("previous", "order"), [(None, "abx"), ("", "abx"), ("root", "xab"), ("a", "axb"), ("b", "abx")]
)
def test_an_item_stands_where_it_was_put(previous: str | None, order: str) -> None:
    kept = items("a", "b")
    kept.insert(message("x"), previous)
    assert "".join(item.id for item in kept) == order
    at = order.index("x")
    assert kept.previous_id("x") == (order[at - 1] if at else None)
    assert kept.last_id == order[-1]


def test_an_item_cannot_follow_one_that_is_not_there() -> None:
    kept = items("a")
    with pytest.raises(ProtocolError) as refused:
        kept.insert(message("x"), "gone")
    assert refused.value.code == "item_create_invalid_previous_item_id"
    assert [item.id for item in kept] == ["a"]


def test_items_are_found_and_removed() -> None:
    kept = items("a", "b")
    found = kept.find("a")
    assert found is not None
    kept.remove(found)
    assert kept.find("a") is None
    assert kept.previous_id("unknown") is None
    assert ConversationItems().last_id is None


def test_what_clients_give_is_bounded() -> None:
    kept = ConversationItems()
    large = message("a", type="input_text", text="x" * (MAX_GIVEN_CHARS // 2))
    kept.admit(large)
    with pytest.raises(ProtocolError) as refused:
        kept.admit(large)
    assert refused.value.code == "conversation_full"
    # What was refused takes no room.
    kept.admit(message("b"))


# -- audio ------------------------------------------------------------------------------------------------


def test_the_oldest_audio_is_let_go_and_its_length_stays_known() -> None:
    kept = items("a", "b")
    first, second = kept
    half = bytes(AUDIO_BUDGET_BYTES // 2 + 2)
    kept.keep_audio(first, half, AudioFormat.PCM16)
    kept.keep_audio(second, half, AudioFormat.PCM16)
    assert (first.audio, second.audio) == (b"", half)
    assert first.audio_ms == second.audio_ms == AudioFormat.PCM16.duration_ms(len(half))


def test_an_item_is_shown_with_its_audio_only_where_that_is_asked_for() -> None:
    item = spoken("a", "one ")
    assert "audio" not in item.snapshot()["content"][0]
    shown = item.with_audio()["content"][0]
    assert base64.b64decode(shown["audio"]) == item.audio
    assert shown["format"] == {"type": "audio/pcm", "rate": 24000}
    item.audio = b""
    assert "audio" not in item.with_audio()["content"][0]


def test_a_cut_answer_keeps_the_words_that_were_heard() -> None:
    item = spoken("a", "one ", "two ", "three ")
    item.truncate(210)
    assert item.cut
    assert item.plain_text() == "one two"
    assert (item.audio_ms, len(item.audio)) == (210.0, 210 * 48)
    # Of a word that ends just behind the cut nearly all was heard.
    late = spoken("b", "one ", "two ", "three ")
    late.truncate(270)
    assert late.plain_text() == "one two three"


def test_the_assistant_was_heard_once_it_spoke() -> None:
    kept = ConversationItems()
    kept.insert(message("typed", "assistant", type="output_text", text="Hi"), None)
    kept.insert(message("silent", "assistant", type="output_audio", transcript=""), None)
    assert not kept.has_spoken()
    kept.insert(spoken("a", "one "), None)
    assert kept.has_spoken()


# -- words ------------------------------------------------------------------------------------------------


def test_history_has_what_was_said_in_words() -> None:
    kept = [
        message("u", type="input_text", text="Hi"),
        message("empty", type="input_audio", transcript=None),
        message("nothing", "assistant", type="output_text", text=""),
        spoken("a", "one ", "two"),
        SessionItem({"id": "c", "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
        SessionItem({"id": "o", "type": "function_call_output", "call_id": "c1", "output": "1"}),
        SessionItem({"id": "m", "type": "mcp_call", "status": "failed", "name": "g", "arguments": "{}",
                     "error": {"type": "x"}, "output": None}),
        SessionItem({"id": "n", "type": "mcp_call", "status": "in_progress", "name": "g", "arguments": "{}"}),
        SessionItem({"id": "l", "type": "mcp_list_tools"}),
    ]  # fmt: skip
    assert history(kept) == (
        Said("user", "Hi"),
        Said("user", ""),
        Said("assistant", "one two"),
        Called("c1", "f", "{}"),
        Returned("c1", "1"),
        Called("m", "g", "{}"),
        Returned("m", '{"error": {"type": "x"}}'),
    )


def test_what_a_user_said_counts_even_where_the_client_wants_no_transcript() -> None:
    item = message("u", type="input_audio", transcript=None)
    item.heard_text = "Hello."
    assert history([item]) == (Said("user", "Hello."),)


HISTORIES = st.lists(
    st.one_of(
        st.builds(Said, st.just("user"), st.text(max_size=40)),
        st.builds(Called, st.sampled_from("ab"), st.just("f"), st.text(max_size=40)),
        st.builds(Returned, st.sampled_from("ab"), st.text(max_size=40)),
    ),
    max_size=8,
)


@given(HISTORIES, st.integers(0, 30))
def test_the_newest_part_of_a_history_fits_and_holds_no_half_of_a_pair(
    said: list[HistoryItem], tokens: int
) -> None:
    kept = within(said, tokens)
    remaining = iter(said)
    assert all(item in remaining for item in kept), "in its order"
    texts = [
        item.text if isinstance(item, Said) else item.arguments if isinstance(item, Called) else item.output
        for item in kept
    ]
    assert sum(map(text_tokens, texts)) <= tokens or len(kept) <= 1
    dropped = said[: len(said) - len(kept)]
    gone = {item.call_id for item in dropped if isinstance(item, Called)} - {
        item.call_id for item in kept if isinstance(item, Called)
    }
    assert not [item for item in kept if isinstance(item, Returned) and item.call_id in gone]


def test_the_newest_item_is_told_whatever_its_length() -> None:
    said = [Said("user", "old"), Said("user", "x" * 1000)]
    assert within(said, 1) == (said[1],)
    assert within(said, 1000) == tuple(said)
    assert within([], 5) == ()


# -- items from the client --------------------------------------------------------------------------------


def test_an_item_of_a_client_is_made_complete() -> None:
    text = {"type": "input_text", "text": "Hi"}
    made = read({"type": "message", "role": "user", "content": [text], "object": "realtime.item"})
    assert made.fields == {
        "id": "item_1", "type": "message", "status": "completed", "role": "user", "content": [text]
    }  # fmt: skip
    call = read({"type": "function_call", "name": "f", "arguments": "{}", "id": "mine"})
    assert (call.id, call.fields["call_id"], call.fields["status"]) == ("mine", "call_1", "completed")
    output = read({"type": "function_call_output", "call_id": "c", "output": "1"})
    assert "status" not in output.fields


def test_audio_in_an_item_is_taken_out_of_what_is_shown() -> None:
    audio = AudioFormat.PCMU.silence * 80
    part = {"type": "input_audio", "audio": base64.b64encode(audio).decode()}
    made = read({"type": "message", "role": "user", "content": [part]}, AudioFormat.PCMU)
    assert made.fields["content"] == [{"type": "input_audio", "transcript": None}]
    assert (made.audio, made.audio_format, made.audio_ms) == (audio, AudioFormat.PCMU, 10.0)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({}, "missing_required_parameter", "item.type"),
        ({"type": "robot"}, "invalid_value", "item.type"),
        ({"type": ["message"]}, "invalid_value", "item.type"),
        ({"type": "message", "content": []}, "missing_required_parameter", "item.role"),
        ({"type": "message", "role": "user"}, "missing_required_parameter", "item.content"),
        ({"type": "message", "role": "user", "content": "Hi"}, "invalid_type", "item.content"),
        ({"type": "message", "role": "user", "content": [{}]}, "missing_required_parameter",
         "item.content[0].type"),
        ({"type": "message", "role": "system", "content": [{"type": "input_audio"}]}, "invalid_value",
         "item.content[0].type"),
        ({"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "?"}]},
         "invalid_value", "item.content[0].audio"),
        ({"type": "function_call", "arguments": "{}"}, "missing_required_parameter", "item.name"),
        ({"type": "message", "role": "user", "content": [], "extra": 1}, "unknown_parameter", "item.extra"),
    ],
)  # fmt: skip
def test_a_wrong_item_is_refused_with_its_place(fields: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read(fields)
    assert (refused.value.code, refused.value.param) == (code, param)


def test_half_a_sample_is_refused() -> None:
    assert whole_samples(b"ab", "audio", AudioFormat.PCM16) == b"ab"
    assert decode_audio("YQ==", "audio", AudioFormat.PCMU) == b"a"
    with pytest.raises(ProtocolError):
        decode_audio("YQ==", "audio", AudioFormat.PCM16)


def test_calls_of_functions_are_known_by_their_id() -> None:
    kept = items("a")
    kept.insert(read({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}), None)
    kept.insert(read({"type": "function_call_output", "call_id": "d", "output": ""}), None)
    assert kept.knows_call("c")
    assert not kept.knows_call("d")
