"""Kept text and lengths of time as people may read them."""

from __future__ import annotations

import pytest

from voiceapp.records.display import clock


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0:00"), (61_999, "1:01"), (3_600_000, "1:00:00"), (-5, "0:00")]
)
def test_clock(ms: int, text: str) -> None:
    assert clock(ms) == text
