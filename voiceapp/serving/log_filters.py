"""Filters of what event loops and Uvicorn log of connections: strangers must not be able to fill a disk."""

from __future__ import annotations

import logging
import sys
from typing import Final

from voiceapp.serving.refusals import refusals

_HANDSHAKE: Final = "SSL handshake failed"
"""How event loops begin such a message."""


_NO_HTTP: Final = frozenset(["Invalid HTTP request received.", "Unsupported upgrade request."])
"""What Uvicorn says of each request that is none."""


def head_given_up() -> bool:
    """Whether the exception being handled is h11's of a head whose end has not come after so many bytes."""
    return getattr(sys.exception(), "error_status_hint", 400) == 431


class LostLines(logging.Filter):
    """Drops what an event loop says of a line that was closed in its TLS handshake.

    Whoever dialled is told by an exception, and says it in words. The loop logs it as well, with a traceback
    that is of no use; uvloop gives a class for the exception, which logging cannot even print.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record of the loop's is to be logged."""
        if not record.getMessage().startswith(_HANDSHAKE) or not isinstance(record.exc_info, tuple):
            return True
        error: object = record.exc_info[1]
        kind = error if isinstance(error, type) else type(error)
        return not issubclass(kind, OSError)


class NoRequests(logging.Filter):
    """Counts what Uvicorn says of requests that are none, so that it is said once a minute."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record of Uvicorn's is to be logged as it is. To be called on an event loop."""
        counted = refusals.get()
        if counted is None or record.msg not in _NO_HTTP:
            return True
        if head_given_up():
            # Whoever answers it says so.
            return False
        counted.note(record.msg, f"Refused a connection: {record.msg}")
        return False
