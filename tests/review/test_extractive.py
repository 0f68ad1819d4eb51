"""Titles and summaries out of a conversation's own sentences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voiceapp.review import extractive


@given(st.lists(st.text(max_size=80), max_size=8))
def test_whatever_was_said_makes_a_short_title_and_summary_of_it(said: list[str]) -> None:
    title, summary = extractive.title_of(said), extractive.summary_of(said)
    assert len(title) <= extractive.TITLE_CHARS
    assert len(summary) <= extractive.SUMMARY_CHARS
    everything = " ".join(said).lower()
    for word in title.removesuffix("…").lower().split():
        assert word in everything


def test_a_mark_inside_a_number_or_a_name_ends_no_sentence() -> None:
    said = ["Hello! What is 12.5 times 8?", "Does example.com cost 3.50 a month? Tell me!", "Thanks."]
    assert extractive.title_of(said) == "Does example.com cost 3.50 a month"
    assert (
        extractive.title_of(["Convert 12.5 miles to kilometers.\nThanks"])
        == "Convert 12.5 miles to kilometers"
    )
    assert extractive.summary_of(said) == ("What is 12.5 times 8? Does example.com cost 3.50 a month?")


def test_a_greeting_is_no_title() -> None:
    assert extractive.title_of(["Hello, can you hear me clearly?", "Set a timer for six seconds"]) == (
        "Set a timer for six seconds"
    )
    assert extractive.title_of(["Good morning!", "Thanks."]) == ""
    assert (
        extractive.summary_of(["Hi. Take a note: buy milk", "Set a timer"])
        == "Take a note: buy milk. Set a timer."
    )


def test_a_summary_has_what_the_conversation_comes_back_to() -> None:
    said = [
        "The garden needs water.",
        "Bananas are yellow.",
        "Water the garden roses twice.",
        "Clouds float.",
        "The roses in the garden need water now.",
    ]
    summary = extractive.summary_of(said)
    assert (
        summary
        == "The garden needs water. Water the garden roses twice. The roses in the garden need water now."
    )


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=8))
def test_further_titles_are_short_and_differ(title: str, said: list[str]) -> None:
    further = list(extractive.titles_besides(title, said))
    assert all(len(one) <= extractive.TITLE_CHARS for one in further)
    assert title not in further


def test_further_titles_say_what_else_was_wanted() -> None:
    said = ["Set a timer for tea.", "Take a note: buy milk.", "Set a timer for tea.", "Thanks!"]
    assert list(extractive.titles_besides("Set a timer for tea", said)) == [
        "Set a timer for tea; Take a note: buy milk"
    ]


def test_a_long_title_is_cut_at_its_length() -> None:
    title = extractive.title_of(["book " + "a long train journey " * 20])
    assert len(title) <= extractive.TITLE_CHARS
    assert title.startswith("Book a long train")
    assert title.endswith("…")


def test_the_same_sentence_twice_is_said_once() -> None:
    assert extractive.summary_of(["Set a timer", "Set a timer"]) == "Set a timer."
    assert extractive.summary_of([]) == extractive.title_of([]) == ""
