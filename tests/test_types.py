"""The place of a part of the process."""

from __future__ import annotations

import pytest

from voiceapp.types import Part


def test_a_part_is_found_for_as_long_as_it_is_in_use() -> None:
    part = Part[str]("clock")
    assert part.get() is None
    with part.use("outer"):
        with part.use("inner") as given:
            assert given == part() == part.get() == "inner"
        assert part() == "outer"
    with pytest.raises(RuntimeError, match="no clock"):
        part()


def test_a_part_is_let_go_of_whatever_happens() -> None:
    part = Part[str]("clock")
    with pytest.raises(ValueError, match="broken"), part.use("one"):
        raise ValueError("broken")
    assert part.get() is None
