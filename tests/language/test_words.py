"""Words in many scripts: what is one, and which texts have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.language.words import has_words, words_in


@pytest.mark.parametrize(
    ("text", "wanted", "has"),
    [
        ("Buy milk.", "milk", True),
        ("Buy milk.", "MILK!", True),
        ("Call the milkman", "milk", False),
        ("Milk the goats", "goats milk", True),
        ("Buy milk", "milk bread", False),
        ("Straße 5", "STRASSE", True),
        ("Cafe\u0301 at 9", "caf\u00e9", True),
        ("ﬁle the form", "file", True),
        ("snake_case and two-part", "two part", True),
        ("दूध लाना", "दूध", True),
        ("दूधवाला", "दूध", False),
        ("לקנות חלב", "חלב", True),
        ("牛乳を買う", "牛乳", True),
        ("ﾐﾙｸを買う", "ミルク", True),
        ("ซื้อนมวันนี้", "นม", True),
        ("Buy milk", "", True),
    ],
)
def test_whole_words_are_found_in_any_script(text: str, wanted: str, has: bool) -> None:
    assert has_words(text, wanted) is has


@given(st.text(max_size=60))
def test_a_text_has_its_own_words_and_each_of_them(text: str) -> None:
    assert has_words(text, text)
    assert all(has_words(text, word) for word in words_in(text))
