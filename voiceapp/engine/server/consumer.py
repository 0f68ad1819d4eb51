"""The engine's sockets: ``/openai/v1/realtime`` (GA) and ``/openai/realtime`` (preview).

A plain ASGI application: messages reach the session without Channels' dispatch, which costs a hop to another
thread for each.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from voiceapp.assistants.assistant import Thinking
from voiceapp.engine.inference import loading
from voiceapp.engine.server import credentials
from voiceapp.engine.server.connection import Connection
from voiceapp.engine.server.faults import FaultScript, FaultScriptError
from voiceapp.engine.session.config import Kind
from voiceapp.protocol.dialects import Dialect
from voiceapp.serving.scope import can_refuse_by_http, headers_of, in_turns, query_of, refuse_upgrade
from voiceapp.text import providers
from voiceapp.tools.mcp.client import McpClient
from voiceapp.types import Receive, Send

logger = logging.getLogger(__name__)

GA_PATH: Final = "/openai/v1/realtime"
PREVIEW_PATH: Final = "/openai/realtime"
_REFUSED: Final = 4001
_RECOGNISER: Final = "moonshine-tiny-en"


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
    kind: Kind
    preset: dict[str, Any] | None
    """The session that the client's secret brings."""
    thinker: providers.Thinker


async def realtime_socket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Serve one WebSocket of a Realtime client."""
    receive = in_turns(receive)
    await receive()
    headers, query = headers_of(scope), query_of(scope)
    # Only what a log line can hold: the id comes from outside.
    request_id = headers.get("x-ms-client-request-id", "")[:64]
    try:
        wish = _read_wish(scope["path"], query, await _admit(headers, query, scope))
        faults = _read_faults(query)
    except _Refusal as refusal:
        logger.info("Engine: refused with %d %s (request %r)", refusal.status, refusal.code, request_id)
        body = {"error": {"code": refusal.code, "message": refusal.message}}
        await refuse_upgrade(scope, send, refusal.status, body, close_code=_REFUSED, reason=refusal.code)
        return
    loading.start()
    logger.info("Engine: %s session for model %r (request %r)", wish.dialect.value, wish.model, request_id)
    offered = scope.get("subprotocols", ())
    accept: dict[str, Any] = {"type": "websocket.accept"}
    if "realtime" in offered:
        accept["subprotocol"] = "realtime"
    await send(accept)
    connection = Connection(
        receive,
        send,
        dialect=wish.dialect,
        provider=await providers.provider(settings.VOICE, wish.thinker),
        model=wish.model,
        kind=wish.kind,
        preset=wish.preset,
        faults=faults,
        mcp=McpClient(private_allowed=settings.VOICE.private_addresses),
        may_close_1001=can_refuse_by_http(scope),
    )
    await connection.run()


async def _admit(
    headers: dict[str, str], query: dict[str, str], scope: dict[str, Any]
) -> dict[str, Any] | None:
    try:
        return await credentials.admit(credentials.offered(headers, query, scope.get("subprotocols", ())))
    except credentials.AccessDenied as denied:
        raise _Refusal(401, denied.code, str(denied)) from None


def _read_wish(path: str, query: dict[str, str], preset: dict[str, Any] | None) -> _Wish:
    if preset is not None:
        # Whoever made the secret has decided what it is for.
        query = {"model": preset.get("model", ""), "deployment": preset.get("model", ""), **query}
        query["intent"] = preset["type"]
    intent = query.get("intent", "conversation")
    if intent not in ("conversation", "realtime", "transcription"):
        raise _Refusal(400, "invalid_intent", "The intent is either conversation or transcription.")
    thinker = _thinker(query if preset is None else {})
    kind: Kind = "transcription" if intent == "transcription" else "realtime"
    if path.rstrip("/") == GA_PATH:
        return _Wish(Dialect.GA, _model(query, "model", kind), kind, preset, thinker)
    if path.rstrip("/") != PREVIEW_PATH or not query.get("api-version"):
        raise _Refusal(
            404, "not_found", "Use /openai/v1/realtime?model= or /openai/realtime?api-version=&deployment=."
        )
    contract = query.get("dialect") == Dialect.CONTRACT.value
    dialect = Dialect.CONTRACT if contract else Dialect.PREVIEW
    return _Wish(dialect, _model(query, "deployment", kind), kind, preset, thinker)


def _thinker(query: dict[str, str]) -> providers.Thinker:
    """Return who shall think; only holders of the engine's key may choose."""
    try:
        kind = Thinking(query.get("thinking", ""))
        user_id = int(query.get("user") or 0)
    except ValueError:
        kinds = ", ".join(filter(None, (kind.value for kind in Thinking)))
        raise _Refusal(400, "invalid_thinking", f"thinking is one of {kinds}, and user a number.") from None
    return providers.Thinker(kind, user_id, query.get("thread", "")[:64])


def _read_faults(query: dict[str, str]) -> FaultScript:
    text, allowed = query.get("faults", ""), settings.VOICE.engine_faults
    if allowed in ("", "0"):
        if text:
            message = "Faults can be ordered only with VOICEAPP_ENGINE_FAULTS=1."
            raise _Refusal(400, "faults_disabled", message)
    elif allowed != "1":
        text = text or allowed
    try:
        return FaultScript.parse(text)
    except FaultScriptError as error:
        raise _Refusal(400, "invalid_faults", str(error)) from None


def _model(query: dict[str, str], parameter: str, kind: Kind) -> str:
    if name := query.get(parameter):
        return name
    if kind == "transcription":
        return _RECOGNISER
    raise _Refusal(400, f"missing_{parameter}", f"Name the {parameter}: &{parameter}=NAME.")
