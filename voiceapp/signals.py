"""What the parts of the product tell each other without knowing one another."""

from __future__ import annotations

from django.dispatch import Signal

server_stopping = Signal()
"""The server is about to close its connections; awaited, so that receivers may say goodbye first."""
