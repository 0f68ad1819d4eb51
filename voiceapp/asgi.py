"""The ASGI application: HTTP by Django, sockets by ``voiceapp.routing``, start and stop by lifespan."""

from __future__ import annotations

import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
django: Any = get_asgi_application()

from voiceapp.process import current  # noqa: E402 - Django must be set up before the app's modules load
from voiceapp.routing import program, websocket_urlpatterns  # noqa: E402
from voiceapp.types import Receive, Scope, Send  # noqa: E402

process = current()


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve an address for programs, or a page."""
    await (program(scope["path"]) or django)(scope, receive, send)


async def _lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Load the engine's models in the background; at the end let every session be kept."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await process.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await process.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return


application = ProtocolTypeRouter(
    {"http": _http, "websocket": URLRouter(websocket_urlpatterns), "lifespan": _lifespan}
)
"""What ASGI servers serve."""
