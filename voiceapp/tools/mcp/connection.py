"""The HTTP under an MCP server's connection.

Imported only where MCP is used: its packages are optional.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from voiceapp.outbound.guard import MAX_BYTES, Guard
from voiceapp.tools.mcp.messages import McpAddress

_TIMEOUT: Final = httpx2.Timeout(10.0, read=60.0)
_READ_TIMEOUT_S: Final = 60.0


@asynccontextmanager
async def connected(server: McpAddress, guard: Guard) -> AsyncIterator[Client]:
    """Connect to a server; ``guard`` then knows what went wrong on the way."""
    # Answers are read as they come: unpacked they could be of any length.
    headers = {"accept-encoding": "identity", **dict(server.headers)}
    async with httpx2.AsyncClient(
        transport=guard, headers=headers, timeout=_TIMEOUT, trust_env=False
    ) as http:
        transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_BYTES)
        async with Client(transport, read_timeout_seconds=_READ_TIMEOUT_S, cache=None) as client:
            yield client
