"""Thinking by chat completions: what is asked, and chunks as deltas."""

from __future__ import annotations

from voiceapp.text.chat.provider import messages
from voiceapp.text.provider import (
    Called,
    ReplyRequest,
    Returned,
    Said,
)


def test_calls_in_a_row_share_one_message_and_outputs_follow() -> None:
    history = (
        Said("user", "go"), Called("a", "f", "{}"), Called("b", "g", "{}"), Returned("a", "1"),
        Returned("b", "2"), Said("assistant", "Done."),
    )  # fmt: skip
    found = messages(ReplyRequest("", history, spoken=True))
    assert "read aloud" in found[0]["content"]
    assert [message["role"] for message in found[1:]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in found[2]["tool_calls"]] == ["a", "b"]
