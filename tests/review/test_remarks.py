"""A kept conversation as one text."""

from __future__ import annotations

from voiceapp.records.reading.transcript import TranscriptLine
from voiceapp.review.remarks import MAX_CHARS, Remark, as_text, said_in


def test_long_conversations_lose_their_middle() -> None:
    said = [Remark("user", f"Sentence number {number}.") for number in range(5_000)]
    whole = as_text(said)
    assert len(whole) < MAX_CHARS + 100
    assert whole.startswith("User: Sentence number 0.")
    assert whole.endswith("User: Sentence number 4999.")
    assert "left out" in whole


def line(role: str, text: str, heard: str | None = None, kind: str = "message") -> TranscriptLine:
    return TranscriptLine(
        item_id="i", kind=kind, role=role, text=text, heard_text=heard, unheard_text="", cut_ms=None,
        transcript_status="", not_transcribed=False, modality="audio", status="completed", started_ms=0,
        speaker="",
    )  # fmt: skip


def test_what_was_not_heard_was_not_said() -> None:
    lines = [
        line("user", " Hello,\n there "),
        line("assistant", "one two three", "one"),
        line("assistant", "never heard", ""),
        line("system", "Be brief."),
        line("user", "clock()", kind="function_call"),
        line("user", "  "),
    ]
    assert said_in(lines) == [Remark("user", "Hello, there"), Remark("assistant", "one")]


def test_a_short_conversation_is_a_line_for_each_remark() -> None:
    assert as_text([Remark("user", "Hi"), Remark("assistant", "Hello.")]) == "User: Hi\nAssistant: Hello."
    assert as_text([]) == ""
