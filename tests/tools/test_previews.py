"""What the page is asked with: all of a short preview, and of a long one as much as can be read."""

from __future__ import annotations

from voiceapp.tools.previews import MAX_PREVIEW_CHARS, MAX_PREVIEW_LINES, Preview, shown_preview


def test_what_is_too_long_to_be_shown_is_cut_and_says_so() -> None:
    found = Preview("x" * 1000, tuple(f"{n} " + "y" * 1000 for n in range(50)), None)
    shown = shown_preview(found)
    assert shown is not None
    assert len(shown.lines) == MAX_PREVIEW_LINES
    assert shown.lines[-1] == "… and 31 more"
    assert all(
        len(text) <= MAX_PREVIEW_CHARS and text[-1] == "…" for text in (shown.title, *shown.lines[:-1])
    )
    assert shown_preview(None) is None
    short = shown_preview(Preview("Sure?", ("a\n b",), None))
    assert short is not None
    assert (short.title, short.lines) == ("Sure?", ["a b"])
