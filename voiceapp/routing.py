"""Which socket is served by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from voiceapp.engine.consumer import GA_PATH, PREVIEW_PATH, realtime_socket
from voiceapp.relay.consumer import voice_socket

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]

SOCKETS: dict[str, App] = {
    "/ws/voice/": voice_socket,
    GA_PATH: realtime_socket,
    PREVIEW_PATH: realtime_socket,
}


async def sockets(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve a WebSocket by its path; another path is refused."""
    app = SOCKETS.get(scope["path"])
    if app is not None:
        await app(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.close", "code": 4004})
