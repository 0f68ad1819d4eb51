"""Which socket, and which address for programs, is served by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.urls import path, re_path

from voiceapp.engine.server.consumer import GA_PATH, PREVIEW_PATH, RealtimeConsumer
from voiceapp.gateway.chat import MODELS, PATHS, chat_completions, list_models
from voiceapp.gateway.generate import GENERATE, STREAM, generate
from voiceapp.gateway.host_consumer import ModelHostConsumer
from voiceapp.nnrp.consumer import PATH as NNRP_PATH
from voiceapp.nnrp.consumer import NnrpConsumer
from voiceapp.nnrp.events_http import PATH as EVENTS_PATH
from voiceapp.nnrp.events_http import events
from voiceapp.relay.browser.admission import WHY, why
from voiceapp.relay.browser.consumer import VoiceConsumer
from voiceapp.relay.browser.echo import EchoConsumer
from voiceapp.relay.browser.login import login_stack
from voiceapp.serving.refusals import refusals, shown
from voiceapp.types import Receive, Scope, Send

App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket at an address that nothing has."""
    await receive()
    refusals().note("unknown socket", f"Refused a WebSocket at {shown(scope['path'])}: nothing is there.")
    await send({"type": "websocket.close", "code": 4004})


_refuse_unknown: Any = _unknown
_why: App = login_stack(why)

websocket_urlpatterns = [
    path("ws/voice/", login_stack(VoiceConsumer.as_asgi())),
    path("ws/echo/", login_stack(EchoConsumer.as_asgi())),
    path("ws/model-host/", ModelHostConsumer.as_asgi()),
    path(NNRP_PATH[1:], NnrpConsumer.as_asgi()),
    path(GA_PATH[1:], RealtimeConsumer.as_asgi()),
    path(PREVIEW_PATH[1:], RealtimeConsumer.as_asgi()),
    # URLRouter would raise.
    re_path("", _refuse_unknown),
]


def program(address: str) -> App | None:
    """Return what serves an HTTP address for programs, or the page's question; the rest is Django's."""
    if address in (GENERATE, STREAM):
        return generate
    if address == EVENTS_PATH:
        return events()
    if address == WHY:
        return _why
    if address == MODELS:
        return list_models
    return chat_completions if PATHS.fullmatch(address) else None
