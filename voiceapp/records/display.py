"""Kept text and lengths of time as people may read them: strangers' text inert, times as ``m:ss``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

TITLE_LENGTH: Final = 80
"""Characters of a title."""

# Control characters but tab and newline, and the marks that turn the direction of what follows. Marks that
# only say the direction of a neighbour (U+200E, U+200F, U+061C) stay: Arabic and Hebrew need them.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)


def inert(text: str) -> str:
    """Return ``text`` with each character that could act on its surroundings shown as U+FFFD.

    Markup is not touched: that is the template's business.
    """
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def inert_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with their texts made inert."""
    return {name: inert(value) if isinstance(value, str) else value for name, value in fields.items()}


def members(value: object) -> Mapping[str, Any]:
    """Return a kept JSON object; of anything else, which a service may send in its place, nothing."""
    return value if isinstance(value, dict) else {}


def clock(ms: int) -> str:
    """Return ``m:ss`` or ``h:mm:ss``."""
    text = str(timedelta(seconds=max(0, ms) // 1000))
    return text.removeprefix("0:").removeprefix("0") if text.startswith("0:") else text
