"""The engine alone as an ASGI application, for a server started as a process of its own."""

from __future__ import annotations

import django

django.setup()

from voiceapp.engine.server.consumer import RealtimeConsumer  # noqa: E402
from voiceapp.process import current  # noqa: E402

process = current()
application = RealtimeConsumer.as_asgi()
