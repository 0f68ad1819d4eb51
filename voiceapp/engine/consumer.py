"""The engine's sockets: ``/openai/v1/realtime`` (GA) and ``/openai/realtime`` (preview).

A plain ASGI application: messages reach the session without Channels' dispatch, which costs a hop to another
thread for each.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from django.conf import settings

from voiceapp.engine import models, thinking
from voiceapp.engine.connection import Connection
from voiceapp.protocol.dialects import Dialect

log = logging.getLogger(__name__)

GA_PATH: Final = "/openai/v1/realtime"
PREVIEW_PATH: Final = "/openai/realtime"
_REFUSED: Final = 4001


class _Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a client asks for in its request."""

    dialect: Dialect
    model: str


async def realtime_socket(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Any]],
    send: Callable[[Any], Awaitable[None]],
) -> None:
    """Serve one WebSocket of a Realtime client."""
    await receive()
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
    # Only what a log line can hold: the id comes from outside.
    request_id = headers.get("x-ms-client-request-id", "")[:64]
    try:
        _authorise(headers, query, scope.get("subprotocols", ()))
        wish = _read_wish(scope["path"], query)
    except _Refusal as refusal:
        log.info("Engine: refused with %d %s (request %r)", refusal.status, refusal.code, request_id)
        await _refuse(scope, send, refusal)
        return
    models.start()
    log.info("Engine: %s session for model %r (request %r)", wish.dialect.value, wish.model, request_id)
    offered = scope.get("subprotocols", ())
    accept: dict[str, Any] = {"type": "websocket.accept"}
    if "realtime" in offered:
        accept["subprotocol"] = "realtime"
    await send(accept)
    connection = Connection(
        receive,
        send,
        dialect=wish.dialect,
        provider=await thinking.provider(settings.VOICE),
        model=wish.model,
        may_close_1001=_speaks_http(scope),
    )
    await connection.run()


def _authorise(headers: dict[str, str], query: dict[str, str], subprotocols: Any) -> None:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    given = [headers.get("api-key", ""), query.get("api-key", "")]
    if scheme.lower() == "bearer":
        given.append(bearer.strip())
    # Browsers cannot set headers; the SDKs for them put the key among the subprotocols.
    prefix = "openai-insecure-api-key."
    given += [name.removeprefix(prefix) for name in subprotocols if name.startswith(prefix)]
    key = settings.VOICE.engine_api_key.encode()
    matches = [hmac.compare_digest(one.encode(), key) for one in given if one]
    if not key or not any(matches):
        raise _Refusal(
            401,
            "invalid_api_key" if matches else "missing_api_key",
            "Access denied: give the engine's key as api-key header, as Bearer token or as api-key "
            "parameter.",
        )


def _read_wish(path: str, query: dict[str, str]) -> _Wish:
    if query.get("intent") == "transcription":
        raise _Refusal(400, "invalid_intent", "This engine offers conversations, not transcription sessions.")
    if path == GA_PATH:
        if not query.get("model"):
            raise _Refusal(400, "missing_model", "Name the model: /openai/v1/realtime?model=NAME.")
        return _Wish(Dialect.GA, query["model"])
    if path != PREVIEW_PATH or not query.get("api-version"):
        raise _Refusal(
            404, "not_found", "Use /openai/v1/realtime?model= or /openai/realtime?api-version=&deployment=."
        )
    if not query.get("deployment"):
        raise _Refusal(400, "missing_deployment", "Name the deployment: &deployment=NAME.")
    contract = query.get("dialect") == Dialect.CONTRACT.value
    return _Wish(Dialect.CONTRACT if contract else Dialect.PREVIEW, query["deployment"])


def _speaks_http(scope: dict[str, Any]) -> bool:
    """Whether the server lets an application answer an upgrade by HTTP; Daphne does not."""
    return "websocket.http.response" in (scope.get("extensions") or {})


async def _refuse(scope: dict[str, Any], send: Callable[[Any], Awaitable[None]], refusal: _Refusal) -> None:
    """Refuse the upgrade with a status and a JSON body, or by closing where the server can do no better."""
    if not _speaks_http(scope):
        await send({"type": "websocket.close", "code": _REFUSED, "reason": refusal.code})
        return
    body = json.dumps({"error": {"code": refusal.code, "message": refusal.message}}).encode()
    await send(
        {
            "type": "websocket.http.response.start",
            "status": refusal.status,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "websocket.http.response.body", "body": body})
