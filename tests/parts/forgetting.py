"""What a process remembers, and what a test lets it forget."""

from __future__ import annotations

from voiceapp.records.store.tokens import known_tokens


def forget_tokens() -> None:
    """Let the database be asked anew at the next request that brings a token."""
    known_tokens()._holders.clear()
