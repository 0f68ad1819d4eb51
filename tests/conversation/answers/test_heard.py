"""Which words of an answer count as heard, in every script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.conversation.answers.heard import heard_words, words


@pytest.mark.parametrize(
    ("cut", "total", "heard"),
    [
        (0, 1000, ""),
        (1000, 1000, "one two three four"),
        (2000, 1000, "one two three four"),
        (500, 1000, "one two"),
        (10, 0, ""),
    ],
)
def test_heard_words_end_at_a_word(cut: float, total: float, heard: str) -> None:
    assert heard_words("one two three four", cut, total) == heard


@given(st.text(), st.floats(0, 1000), st.floats(0, 1000))
def test_heard_words_are_the_beginning_of_the_text(text: str, cut: float, total: float) -> None:
    assert text.startswith(heard_words(text, cut, total))


@pytest.mark.parametrize(
    ("text", "share", "heard"),
    [
        ("今天天气很好我们去公园散步吧", 0.5, "今天天气很好我"),
        ("今日は天気がいいので公園に行きます", 0.3, "今日は天気"),
        ("コーヒーをください", 0.6, "コーヒーを"),
        ("สวัสดีครับผมชื่อสมชาย", 0.5, "สวัสดีครับผ"),
        ("Ask for 東京駅 at the desk", 0.45, "Ask for 東京"),
        ("你好，世界。再见！", 0.5, "你好，世"),
        ("Größe über alles", 0.4, "Größe"),
        ("안녕하세요 반갑습니다", 0.5, "안녕하세요"),
    ],
)
def test_scripts_without_spaces_are_cut_where_they_were_heard(text: str, share: float, heard: str) -> None:
    assert heard_words(text, share * 1000, 1000) == heard


@given(st.text(alphabet=st.sampled_from("今は天ガーกำลัง é่ab 1。,\u200d\u0301")))
def test_words_follow_one_another_and_leave_out_only_spaces(text: str) -> None:
    end = 0
    for start, at in words(text):
        assert start >= end
        assert not text[end:start].strip()
        assert text[start:at].strip()
        end = at
    assert not text[end:].strip()


@given(st.text(alphabet=st.sampled_from("今は天ガーกำลัง")), st.floats(0, 1))
def test_what_was_heard_is_near_the_place_of_the_cut(text: str, share: float) -> None:
    """No word of these is longer than a few letters, so neither nothing nor all is heard at half."""
    found = len(heard_words(text, share * 1000, 1000))
    longest = max((at - start for start, at in words(text)), default=0)
    assert abs(found - share * len(text)) <= longest
