"""What a session's answers cost, added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from voiceapp.records.display import members


def totals(usages: Iterable[Mapping[str, Any] | None]) -> dict[str, int]:
    """Return the sum of every count in the services' usage objects, by its path in words.

    ``{"input_token_details": {"audio_tokens": 3}}`` counts as ``input token details, audio tokens``.
    """
    sums: dict[str, int] = {}
    for usage in usages:
        for path, count in _counts(members(usage), ()):
            sums[path] = sums.get(path, 0) + count
    return sums


def _counts(usage: Mapping[str, Any], above: tuple[str, ...]) -> Iterable[tuple[str, int]]:
    for name, value in usage.items():
        path = (*above, name.replace("_", " "))
        if isinstance(value, Mapping):
            yield from _counts(value, path)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield ", ".join(path), value
