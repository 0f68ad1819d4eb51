"""The ASGI application: HTTP by Django, sockets by ``voiceapp.routing``, start and stop by lifespan."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
django = get_asgi_application()

from django.conf import settings  # noqa: E402 - Django must be set up before the app's modules load

from voiceapp.config import UpstreamKind  # noqa: E402
from voiceapp.engine.inference import loading  # noqa: E402
from voiceapp.records.store import store  # noqa: E402
from voiceapp.relay.process.handover import handover  # noqa: E402
from voiceapp.relay.process.sessions import registry  # noqa: E402
from voiceapp.review import worker  # noqa: E402, F401 - hears of sessions that are over
from voiceapp.routing import program, sockets  # noqa: E402


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve one connection, or the server's life."""
    if scope["type"] == "http":
        await (program(scope["path"]) or django)(scope, receive, send)
    elif scope["type"] == "websocket":
        await sockets(scope, receive, send)
    elif scope["type"] == "lifespan":
        await _lifespan(receive, send)


async def _lifespan(receive: Any, send: Any) -> None:
    """Load the engine's models in the background; at the end let every session be kept."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            if settings.VOICE.upstream_kind is UpstreamKind.EMBEDDED:
                loading.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await registry.drain()
            await handover.aclose()
            await loading.aclose()
            await store.writer().aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
