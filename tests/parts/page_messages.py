"""What a page has been told by the server, whatever its socket is."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from voiceapp.protocol import codec
from voiceapp.protocol.events import UnknownEvent
from voiceapp.protocol.page import REALTIME_SERVER_EVENTS, SERVER_MESSAGES, SessionResumed, write


class PageMessages:
    """Counts every numbered message, and keeps what it says. Each must be as it is declared.

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
        check(message)
        return event


def check(text: str) -> None:
    """Raise where a message for the page is not one that is declared, to the byte."""
    fields = codec.decode_fields(text)
    declared = SERVER_MESSAGES.get(fields["type"])
    if declared is None:
        # It was handed on. Types that are not known come from a service, whose events have ids.
        unknown = isinstance(codec.server_event(fields), UnknownEvent)
        assert "event_id" in fields if unknown else fields["type"] in REALTIME_SERVER_EVENTS, text
        return
    numbered = declared is not SessionResumed and "seq" in fields
    start = f'{{"seq":{fields.pop("seq")},' if numbered else "{"
    assert start + write(msgspec.convert(fields, declared))[1:] == text
