"""The ways in which a live session ends."""

from __future__ import annotations

from voiceapp.relay.session.ending import EndReason


def test_each_way_has_a_word_of_its_own_a_close_code_and_a_sentence() -> None:
    words = [reason.reason for reason in EndReason]
    assert len(set(words)) == len(words)
    for reason in EndReason:
        assert reason.close_code == 1011 or 4000 <= reason.close_code < 5000
        assert reason.words.endswith(".")
        # It is kept with the session in a column of this width.
        assert len(reason.reason) <= 64
