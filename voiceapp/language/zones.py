"""Time zones by their names, and moments in words; pure, but for the table of zones of the system.

A zone's name is that of the IANA database, such as ``Asia/Tokyo``.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

MAX_ZONE_CHARS: Final = 64
"""Longest name of a zone: the longest that is known has half of it."""

_NAMED: Final = re.compile(r"\btime zone is ([A-Za-z][A-Za-z0-9_+/-]*)")


@cache
def zone_names() -> frozenset[str]:
    """Return the names that are known here; the files are looked through once."""
    return frozenset(available_timezones())


def zone_of(name: str) -> ZoneInfo | None:
    """Return the zone of this very name, ``None`` where none is known."""
    return ZoneInfo(name) if len(name) <= MAX_ZONE_CHARS and name in zone_names() else None


def place_of(zone: str) -> str:
    """Return what people call a zone: its city or country, or the abbreviation that it is."""
    return zone.rsplit("/", 1)[-1].replace("_", " ")


def day_in_words(moment: datetime) -> str:
    """Return a day as people say it: "Monday, 30 November 2026"."""
    return f"{moment:%A}, {moment.day} {moment:%B %Y}"


def zone_note(zone: ZoneInfo, now: datetime) -> str:
    """Return what a model is told of its user's time; ``zone_in`` reads the zone in it."""
    there = now.astimezone(zone)
    return (
        f"The user's time zone is {zone.key}. When this was written, it was {there:%H:%M} there, on "
        f"{day_in_words(there)}. Times that you tell are those of this zone, unless another is asked for."
    )


def zone_in(instructions: str) -> ZoneInfo | None:
    """Return the zone of "The user's time zone is Asia/Tokyo.", ``None`` where none is named."""
    found = None
    for named in _NAMED.finditer(instructions):
        # The last one counts: an operator's text may speak of time zones before the session's own note.
        found = zone_of(named[1].rstrip("/-+")) or found
    return found
