"""A kept conversation as one text."""

from __future__ import annotations

from voiceapp.review.remarks import MAX_CHARS, Remark, as_text


def test_long_conversations_lose_their_middle() -> None:
    said = [Remark("user", f"Sentence number {number}.") for number in range(5_000)]
    whole = as_text(said)
    assert len(whole) < MAX_CHARS + 100
    assert whole.startswith("User: Sentence number 0.")
    assert whole.endswith("User: Sentence number 4999.")
    assert "left out" in whole
