"""The ASGI application: HTTP by Django, sockets by ``voiceapp.routing``, start and stop by lifespan."""

from __future__ import annotations

import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
django: Any = get_asgi_application()

from django.conf import settings  # noqa: E402 - Django must be set up before the app's modules load

from voiceapp.config import UpstreamKind  # noqa: E402
from voiceapp.engine.inference import loading  # noqa: E402
from voiceapp.records.store import store  # noqa: E402
from voiceapp.relay.process.handover import handover  # noqa: E402
from voiceapp.relay.process.sessions import registry  # noqa: E402
from voiceapp.review import worker  # noqa: E402, F401 - hears of sessions that are over
from voiceapp.routing import program, websocket_urlpatterns  # noqa: E402
from voiceapp.types import Receive, Scope, Send  # noqa: E402


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve an address for programs, or a page."""
    await (program(scope["path"]) or django)(scope, receive, send)


async def _lifespan(scope: Scope, receive: Receive, send: Send) -> None:
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


application = ProtocolTypeRouter(
    {"http": _http, "websocket": URLRouter(websocket_urlpatterns), "lifespan": _lifespan}
)
"""What ASGI servers serve."""
