"""The engine's sockets: ``/openai/v1/realtime`` (GA) and ``/openai/realtime`` (preview).

A client that asks for ``realtime=v1`` in ``OpenAI-Beta``, or by the subprotocol, gets the preview at both.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from channels.exceptions import StopConsumer

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import voice_config
from voiceapp.engine.inference.loading import models
from voiceapp.engine.server import credentials
from voiceapp.engine.server.connection import Connection
from voiceapp.engine.server.faults import FaultScript, FaultScriptError
from voiceapp.engine.session.config import Kind
from voiceapp.errors import Refusal
from voiceapp.protocol.dialects import Dialect
from voiceapp.serving.consumer import SocketConsumer
from voiceapp.serving.refusals import shown
from voiceapp.serving.scope import can_refuse_by_http, headers_of, query_of, refuse_upgrade
from voiceapp.text import providers
from voiceapp.tools.mcp.client import McpClient
from voiceapp.types import JsonObject, Scope

logger = logging.getLogger(__name__)

GA_PATH: Final = "/openai/v1/realtime"
PREVIEW_PATH: Final = "/openai/realtime"
_BETA: Final = "realtime=v1"
_BETA_SUBPROTOCOL: Final = "openai-beta.realtime-v1"
_SUBPROTOCOLS: Final = ("realtime", _BETA_SUBPROTOCOL)
"""Those that may be chosen, the first that is offered; a browser hangs up where none of its own is."""
_REFUSED: Final = 4001
_RECOGNISER: Final = "moonshine-tiny-en"


@dataclass(frozen=True, slots=True)
class _Request:
    """What a client asks for in its request."""

    dialect: Dialect
    model: str
    kind: Kind
    preset: dict[str, Any] | None
    """The session that the client's secret brings."""
    thinker: providers.Thinker


class RealtimeConsumer(SocketConsumer):
    """One WebSocket of a Realtime client."""

    fault_code = 1011

    _connection: Connection | None = None

    async def websocket_connect(self, message: JsonObject) -> None:
        """Open a session as the request asks for it, or refuse."""
        headers, query = headers_of(self.scope), query_of(self.scope)
        # Only what a log line can hold: the id comes from outside.
        request_id = headers.get("x-ms-client-request-id", "")[:64]
        subprotocols = self.scope.get("subprotocols", ())
        given = credentials.offered(headers, query, subprotocols)
        try:
            beta = _wants_beta(self.scope)
            request = _read_request(self.scope["path"], query, await credentials.admit(given), beta=beta)
            faults = _read_faults(query)
        except Refusal as refusal:
            body = {"error": {"code": refusal.code, "message": refusal.message}}
            hint = f"HTTP {refusal.status}, request {shown(request_id)}." if request_id else ""
            await refuse_upgrade(self.scope, self.send, refusal, body, hint)
            raise StopConsumer from None
        models().start()
        logger.info(
            "Engine: %s session for model %r (request %r)", request.dialect.value, request.model, request_id
        )
        chosen = next((name for name in _SUBPROTOCOLS if name in subprotocols), None)
        await self.send({"type": "websocket.accept", "subprotocol": chosen})
        self._connection = Connection(
            self.base_send,
            self.start,
            dialect=request.dialect,
            provider=await providers.provider(voice_config(), request.thinker),
            model=request.model,
            kind=request.kind,
            preset=request.preset,
            faults=faults,
            mcp=McpClient(private_allowed=voice_config().private_addresses),
            may_close_1001=can_refuse_by_http(self.scope),
        )
        self._connection.open()

    async def websocket_receive(self, message: JsonObject) -> None:
        """Take an event of the client's."""
        if self._connection is not None:
            await self._connection.receive(message)

    async def websocket_disconnect(self, message: JsonObject) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _wants_beta(scope: Scope) -> bool:
    """Whether a client asks for the preview's dialect by the header or the subprotocol of its time."""
    # The header lists what a client wants of several services, and may come several times.
    headers = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"openai-beta"]
    asked = [one.strip().lower() for one in ",".join(headers).split(",")]
    return _BETA in asked or _BETA_SUBPROTOCOL in scope.get("subprotocols", ())


def _read_request(path: str, query: dict[str, str], preset: dict[str, Any] | None, *, beta: bool) -> _Request:
    if preset is not None:
        # Whoever made the secret has decided what it is for.
        query = {"model": preset.get("model", ""), "deployment": preset.get("model", ""), **query}
        query["intent"] = preset["type"]
    intent = query.get("intent", "conversation")
    if intent not in ("conversation", "realtime", "transcription"):
        raise _refusal(400, "invalid_intent", "The intent is either conversation or transcription.")
    thinker = _thinker(query if preset is None else {})
    kind: Kind = "transcription" if intent == "transcription" else "realtime"
    if path.rstrip("/") == GA_PATH:
        spelling = Dialect.PREVIEW if beta else Dialect.GA
        return _Request(spelling, _model(query, "model", kind), kind, preset, thinker)
    if path.rstrip("/") != PREVIEW_PATH or not query.get("api-version"):
        raise _refusal(
            404, "not_found", "Use /openai/v1/realtime?model= or /openai/realtime?api-version=&deployment=."
        )
    contract = query.get("dialect") == Dialect.CONTRACT.value
    dialect = Dialect.CONTRACT if contract else Dialect.PREVIEW
    return _Request(dialect, _model(query, "deployment", kind), kind, preset, thinker)


def _thinker(query: dict[str, str]) -> providers.Thinker:
    """Return who shall think; only holders of the engine's key may choose."""
    try:
        kind = Thinking(query.get("thinking", ""))
        user_id = int(query.get("user") or 0)
    except ValueError:
        kinds = ", ".join(filter(None, (kind.value for kind in Thinking)))
        raise _refusal(400, "invalid_thinking", f"thinking is one of {kinds}, and user a number.") from None
    return providers.Thinker(kind, user_id, query.get("thread", "")[:64])


def _read_faults(query: dict[str, str]) -> FaultScript:
    text, allowed = query.get("faults", ""), voice_config().engine_faults
    if allowed in ("", "0"):
        if text:
            message = "Faults can be ordered only with VOICEAPP_ENGINE_FAULTS=1."
            raise _refusal(400, "faults_disabled", message)
    elif allowed != "1":
        text = text or allowed
    try:
        return FaultScript.parse(text)
    except FaultScriptError as error:
        raise _refusal(400, "invalid_faults", str(error)) from None


def _model(query: dict[str, str], parameter: str, kind: Kind) -> str:
    if name := query.get(parameter):
        return name
    if kind == "transcription":
        return _RECOGNISER
    raise _refusal(400, f"missing_{parameter}", f"Name the {parameter}: &{parameter}=NAME.")


def _refusal(status: int, code: str, message: str) -> Refusal:
    return Refusal(code, message, status=status, close_code=_REFUSED)
