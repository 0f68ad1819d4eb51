"""Names of time zones, known and unknown, and what a model is told of its user's time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from voiceapp.language.zones import MAX_ZONE_CHARS, place_of, zone_in, zone_names, zone_note, zone_of

NOW = datetime(2026, 11, 30, 23, 38, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Asia/Tokyo", "Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC"])
def test_a_zone_is_known_by_its_name(name: str) -> None:
    assert zone_of(name) == ZoneInfo(name)


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Olympus", "asia/tokyo", "../../etc/passwd", "/etc/localtime", "Asia/Tokyo\0", "A" * 10_000],
)
def test_nothing_else_is_a_zone(name: str) -> None:
    assert zone_of(name) is None


def test_every_known_name_is_within_the_limit() -> None:
    assert max(map(len, zone_names())) <= MAX_ZONE_CHARS


def test_a_model_is_told_the_time_where_its_user_is() -> None:
    note = zone_note(ZoneInfo("Asia/Tokyo"), NOW)
    assert "time zone is Asia/Tokyo." in note
    assert "it was 08:39 there" not in note
    assert "it was 08:38 there, on Tuesday, 1 December 2026." in note


@pytest.mark.parametrize("name", sorted(zone_names()))
def test_what_a_model_is_told_names_the_zone_that_is_read_in_it(name: str) -> None:
    zone = ZoneInfo(name)
    assert zone_in(f"You are Ada.\n\n{zone_note(zone, NOW)}") == zone


@pytest.mark.parametrize(
    ("instructions", "zone"),
    [
        ("", None),
        ("Our time zone is central to us.", None),
        ("Our time zone is UTC.\n\nThe user's time zone is Asia/Tokyo. It is late.", ZoneInfo("Asia/Tokyo")),
        ("The user's time zone is Asia/Tokyo, so be polite.", ZoneInfo("Asia/Tokyo")),
        (
            "The user's time zone is Asia/Tokyo. The time zone is none of your business.",
            ZoneInfo("Asia/Tokyo"),
        ),
    ],
)
def test_the_last_zone_that_instructions_name_counts(instructions: str, zone: ZoneInfo | None) -> None:
    assert zone_in(instructions) == zone


def test_a_zone_is_called_by_its_city() -> None:
    assert [place_of(name) for name in ("America/New_York", "Japan", "EST")] == ["New York", "Japan", "EST"]
