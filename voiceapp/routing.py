"""Which socket, and which address for programs, is served by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from voiceapp.engine.server.consumer import GA_PATH, PREVIEW_PATH, realtime_socket
from voiceapp.gateway.chat import MODELS, PATHS, chat_completions, list_models
from voiceapp.gateway.generate import GENERATE, STREAM, generate
from voiceapp.gateway.host_consumer import model_host_socket
from voiceapp.nnrp.consumer import PATH as NNRP_PATH
from voiceapp.nnrp.consumer import nnrp_socket
from voiceapp.nnrp.events_http import PATH as EVENTS_PATH
from voiceapp.nnrp.events_http import events
from voiceapp.relay.browser.consumer import voice_socket

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]

SOCKETS: dict[str, App] = {
    "/ws/voice/": voice_socket,
    "/ws/model-host/": model_host_socket,
    NNRP_PATH: nnrp_socket,
    GA_PATH: realtime_socket,
    PREVIEW_PATH: realtime_socket,
}


def program(path: str) -> App | None:
    """Return what serves an HTTP address for programs; the rest is Django's."""
    if path in (GENERATE, STREAM):
        return generate
    if path == EVENTS_PATH:
        return events
    if path == MODELS:
        return list_models
    return chat_completions if PATHS.fullmatch(path) else None


async def sockets(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve a WebSocket by its path; another path is refused."""
    app = SOCKETS.get(scope["path"])
    if app is not None:
        await app(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.close", "code": 4004})
