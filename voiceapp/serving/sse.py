"""Server-sent events as text: how they are written; pure."""

from __future__ import annotations

import json
from typing import Any


def event(payload: Any, name: str = "") -> str:
    """Return one event: ``event: NAME``, where it has one, ``data: JSON`` and an empty line.

    JSON on one line has no line breaks of its own, so that one ``data`` field is always enough.
    """
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n"


def encode(text: str) -> bytes:
    """Return text as it goes on the wire; halves of characters, which no client could read, as ``?``."""
    return text.encode("utf-8", "replace")
