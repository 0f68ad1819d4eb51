"""Types that every layer names: JSON objects and the three of ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, decoded."""

Scope: TypeAlias = dict[str, Any]
"""What an ASGI server says of a connection (ASGI, "Connection Scope")."""

Receive: TypeAlias = Callable[[], Awaitable[JsonObject]]
Send: TypeAlias = Callable[[JsonObject], Awaitable[None]]
