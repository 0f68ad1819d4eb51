"""The engine alone as an ASGI application, for a server started as a process of its own."""

from __future__ import annotations

import django

django.setup()

from voiceapp.engine.server.consumer import realtime_socket  # noqa: E402

application = realtime_socket
