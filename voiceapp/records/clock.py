"""Lengths of time as people read them."""

from __future__ import annotations

from datetime import timedelta


def clock(ms: int) -> str:
    """Return ``m:ss`` or ``h:mm:ss``."""
    text = str(timedelta(seconds=max(0, ms) // 1000))
    return text.removeprefix("0:").removeprefix("0") if text.startswith("0:") else text
