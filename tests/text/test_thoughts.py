"""What of a model's text is meant for the person, however it is cut into pieces."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceapp.text.thoughts import MAX_MARK_CHARS, SpokenWords, WrittenCall, spoken_words

FINAL = "<|start|>assistant<|channel|>final<|message|>"
ANALYSIS = "<|channel|>analysis<|message|>The user greets me.<|end|>"

SPOKEN = [
    ("<think>The user greets me.</think>\n\nGood day!", "Good day!"),
    ("<thinking>Hm.</thinking>Good day!", "Good day!"),
    ("\n<reasoning>\nHm.\n</reasoning>\nGood day!", "Good day!"),
    ("<THINK>Hm.</Think> Good day!", "Good day!"),
    ("[THINK]Hm.[/THINK]Good day!", "Good day!"),
    ("◁think▷Hm.◁/think▷Good day!", "Good day!"),
    ("The user greets me.</think>\n\nGood day!", "Good day!"),
    ("Sure. <think>Hm.</think> Good day!", "Sure. Good day!"),
    ("<think></think>One.<think>b</think> Two.", "One. Two."),
    ("<think>a</think>b</think>c", "bc"),
    ("<think>Only this, and no end", ""),
    ("<think>Only this</think> \n", ""),
    (f"{ANALYSIS}{FINAL}Good day!", "Good day!"),
    (f"{ANALYSIS}{FINAL}Good day!<|return|>", "Good day!"),
    (f"{ANALYSIS}assistant<|channel|>final<|message|>Good day!", "Good day!"),
    (f"{ANALYSIS}Good day!", "Good day!"),
    (ANALYSIS, ""),
    ("<|channel|>commentary<|message|>One moment.<|end|>" + FINAL + "Done.", "One moment.Done."),
    ("<|im_start|>assistant\nGood day!<|im_end|>", "Good day!"),
    ("Good day!<|im_end|>", "Good day!"),
    ("Good day!<|eot_id|><|endoftext|>", "Good day!"),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nGood day!", "Good day!"),
    ('<tool_call>{"name": "look", "arguments": {"a": 1}}</tool_call>', ""),
    ('One moment. <tool_call>{"name": "look"}</tool_call>', "One moment. "),
    # What is no mark stays as it is.
    ("a < b and b > c", "a < b and b > c"),
    ("<", "<"),
    ("if (a<b) [x] <br> <thin> <|", "if (a<b) [x] <br> <thin> <|"),
    ("  Good day! ", "  Good day! "),
    ("The mark `<think>` begins a thought.", "The mark `<think>` begins a thought."),
    ('{"mark": "</think>"}', '{"mark": "</think>"}'),
    ("An <|" + "x" * 40 + "|> is none.", "An <|" + "x" * 40 + "|> is none."),
    ("<|start|>" + "x" * 200, "x" * 200),
]


def cut(text: str, cuts: list[int], *, unopened: bool = False) -> tuple[str, SpokenWords]:
    """Feed a text in pieces; return what a listener keeps of it, and what it was fed to."""
    words = SpokenWords(unopened=unopened)
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in cuts)})
    said = ""
    for start, end in pairwise(places):
        was = words.taken_back
        more = words.feed(text[start:end])
        said = more if words.taken_back and not was else said + more
    return said + words.finish(), words


@pytest.mark.parametrize(("text", "expected"), SPOKEN)
def test_only_what_is_meant_for_the_person_is_given_out(text: str, expected: str) -> None:
    assert spoken_words(text) == expected
    assert cut(text, list(range(len(text))))[0] == expected, "character by character"


@given(st.sampled_from([text for text, _ in SPOKEN]), st.lists(st.integers(0, 500), max_size=12))
def test_cuts_make_no_difference(text: str, cuts: list[int]) -> None:
    assert cut(text, cuts)[0] == spoken_words(text)


PIECES = st.sampled_from([
    "<think>", "</think>", "<reasoning>", "<tool_call>", "</tool_call>", '{"name": "f"}', "<|start|>",
    "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|im_end|>", "analysis", "final", "assistant", "<",
    "`", '"', " ", "\n", "Good", " day", "to=functions.f", "[", "<|", "|>", "</",
])  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join), st.lists(st.integers(0, 200), max_size=12), st.booleans())
@example("<think>a</think>", [3, 9], False)
def test_cuts_make_no_difference_to_any_text(text: str, cuts: list[int], unopened: bool) -> None:
    (said, whole), (again, pieces) = cut(text, [], unopened=unopened), cut(text, cuts, unopened=unopened)
    assert again == said
    assert (pieces.calls, pieces.was_unopened) == (whole.calls, whole.was_unopened)


@given(st.text(alphabet="ab <>|[]/`\"'\n", max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_text_without_a_mark_comes_through_unchanged(text: str, cuts: list[int]) -> None:
    expected = text if text.strip() else ""
    assert cut(text, cuts)[0] == expected


@given(st.text(alphabet="ab <|>[/thinkT_", min_size=1, max_size=80))
def test_words_are_held_back_by_no_more_than_a_mark(text: str) -> None:
    words = SpokenWords()
    fed = given_out = ""
    for sign in f"x{text}":
        fed += sign
        given_out += words.feed(sign)
        if spoken_words(fed) == fed:
            assert len(fed) - len(given_out) <= MAX_MARK_CHARS
    assert SpokenWords().feed("No mark here.") == "No mark here."


def test_what_was_given_out_before_an_unopened_thoughts_end_is_taken_back() -> None:
    words = SpokenWords()
    assert words.feed("The user greets me.") == "The user greets me."
    assert not words.taken_back
    assert words.feed("</think>Good day!") == "Good day!"
    assert (words.taken_back, words.was_unopened) == (True, True)


def test_a_thought_that_is_known_to_come_without_its_opening_mark_is_never_given_out() -> None:
    words = SpokenWords(unopened=True)
    assert words.feed("The user greets me.") == ""
    assert words.feed("</think>Good day!") == "Good day!"
    assert (words.taken_back, words.was_unopened) == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Good day!", "Good day!"), ("<think>Hm.</think>Good day!", "Good day!"), ("", "")],
)
def test_an_answer_that_has_none_after_all_is_given_out_at_its_end(text: str, expected: str) -> None:
    said, words = cut(text, [3], unopened=True)
    assert (said, words.was_unopened) == (expected, False)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>', [("look", {"a": 1})]),
        ('<tool_call>{"name": "look", "arguments": "{\\"a\\": 1}"}</tool_call>', [("look", {"a": 1})]),
        ('<function_call>{"name": "look", "parameters": {}}</function_call>', [("look", {})]),
        ('<tool_call>{"function": {"name": "look", "arguments": {}}}</tool_call>', [("look", {})]),
        ('<tool_calls>[{"name": "a"}, {"name": "b"}]</tool_calls>', [("a", {}), ("b", {})]),
        ('<tool_call>{"name": "a"}\n{"name": "b"}</tool_call>', [("a", {}), ("b", {})]),
        ('[TOOL_CALLS] [{"name": "a", "arguments": {"x": "</s>"}}]', [("a", {"x": "</s>"})]),
        ('<tool_call>{"name": "look"}', [("look", {})]),
        ('<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"a": 1}<|call|>',
         [("look", {"a": 1})]),
        ('<|start|>assistant to=functions.look<|channel|>commentary<|message|>{}', [("look", {})]),
        ("<tool_call>look around</tool_call>", []),
        ('<tool_call>{"name": "lo', []),
        ("<tool_call>[1, null, {}]</tool_call>", []),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", []),
    ],
)  # fmt: skip
def test_calls_that_are_written_as_text_are_no_words(text: str, calls: list[tuple[str, object]]) -> None:
    said, words = cut(text, [5, 30])
    assert said == ""
    assert [(call.name, json.loads(call.arguments)) for call in words.calls] == calls
    assert all(isinstance(call, WrittenCall) for call in words.calls)
