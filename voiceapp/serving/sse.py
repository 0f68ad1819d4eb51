"""Server-sent events (HTML Standard, section 9.2): how they are written and read; pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024
"""Longest event that is read: what waits for its end is kept, and JSON may take six bytes for a character."""
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


def event(payload: Any, name: str = "") -> str:
    """Return one event: ``event: NAME``, where it has one, ``data: JSON`` and an empty line.

    JSON on one line has no line breaks of its own, so that one ``data`` field is always enough.
    """
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n"


def encode(text: str) -> bytes:
    """Return text as it goes on the wire; halves of characters, which no client could read, as ``?``."""
    return text.encode("utf-8", "replace")


class Received(NamedTuple):
    """An event as it came in: its name, empty where it has none, and its data."""

    name: str
    data: str


class StreamReader:
    """Bytes to events, however they are cut."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Received]:
        """Return the events that more bytes complete; raise ``ValueError`` where one has no end."""
        # Only what is new is looked through, and the CR of a line end that was cut in two.
        unseen = max(0, len(self._rest) - 1)
        self._rest += data
        found: list[Received] = []
        start = 0
        for end in _LINE_END.finditer(self._rest, unseen):
            if end.end() == len(self._rest) and end.group() == b"\r":
                break
            found += self._line(bytes(self._rest[start : end.start()]))
            start = end.end()
        del self._rest[:start]
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise ValueError(f"an event is longer than {MAX_EVENT_BYTES} bytes")
        return found

    def finish(self) -> list[Received]:
        """The stream is over: return its last event, where only the empty line behind it is missing."""
        return [*self._line(bytes(self._rest).rstrip(b"\r")), *self._line(b"")]

    def _line(self, line: bytes) -> list[Received]:
        text = line.decode("utf-8", "replace")
        if not text:
            event = Received(self._name, "\n".join(self._data))
            begun, self._name, self._data, self._size = bool(self._data), "", [], 0
            return [event] if begun else []
        field, _, value = text.removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._size += len(line)
        elif field == "event":
            self._name = value
        return []
