"""Assistants as the system checks ask for them."""

from __future__ import annotations

from django.db import DatabaseError

from voiceapp.assistants.assistant import Thinking
from voiceapp.records.models import Assistant


def any_names_mcp_servers(database: str, *, besides: Thinking | None = None) -> bool:
    """Whether an assistant names MCP servers; those who think as ``besides`` says do not count. Blocks."""
    found = Assistant.objects.using(database).exclude(mcp_servers=[])
    if besides is not None:
        found = found.exclude(thinking=besides.value)
    try:
        return found.exists()
    except DatabaseError:
        # There are no tables yet, and so no assistants.
        return False
