"""What the parts of the product tell each other without knowing one another."""

from __future__ import annotations

from django.dispatch import Signal

session_ended = Signal()
"""A live session is over and kept (``session_id``); awaited, so receivers must not do the work at once."""

server_stopping = Signal()
"""The server is about to close its connections; awaited, so that receivers may say goodbye first."""
