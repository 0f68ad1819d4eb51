"""A log filter: lines that end in their TLS handshake are no faults of this program."""

from __future__ import annotations

import logging
from typing import Final

_HANDSHAKE: Final = "SSL handshake failed"
"""How event loops begin such a message."""


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
