"""What a page has been told by the server, whatever its socket is."""

from __future__ import annotations

import json
from typing import Any


class PageMessages:
    """Counts every numbered message, and keeps what it says.

    ``seen`` are the events, ``audio`` the samples of all binary messages, ``seq`` the number of the last one.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.seen: list[dict[str, Any]] = []
        self.audio = bytearray()

    def take(self, message: str | bytes) -> dict[str, Any] | None:
        """Keep a message; return its event, and ``None`` for audio. Raise where a number is out of order."""
        if isinstance(message, bytes):
            self.seq += 1
            self.audio += message[4:]
            return None
        event: dict[str, Any] = json.loads(message)
        self.seen.append(event)
        if event["type"] == "session.resumed":
            self.seq = event["seq"]
        elif "seq" in event:
            self.seq += 1
            assert event["seq"] == self.seq, "a sequence number is missing or repeated"
        return event
