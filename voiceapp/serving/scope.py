"""What an ASGI scope says of who comes, and how a WebSocket is refused before it is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs

from voiceapp.errors import VoiceAppError
from voiceapp.serving.refusals import refusals, shown
from voiceapp.types import JsonObject, Send


def headers_of(scope: JsonObject) -> dict[str, str]:
    """Return the headers of an ASGI scope by their names in lower case."""
    found = scope.get("headers") or []
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in found}


def query_of(scope: JsonObject) -> dict[str, str]:
    """Return the parameters of an ASGI scope's address; of those that come twice the last one."""
    raw: bytes = scope.get("query_string") or b""
    return {name: values[-1] for name, values in parse_qs(raw.decode("latin-1")).items()}


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return what ``Authorization: Bearer`` brings, if anything."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def can_refuse_by_http(scope: JsonObject) -> bool:
    """Whether the server lets an application answer a WebSocket's upgrade by HTTP; Daphne does not."""
    return "websocket.http.response" in (scope.get("extensions") or {})


async def refuse_upgrade(
    scope: JsonObject, send: Send, refusal: VoiceAppError, body: JsonObject, hint: str = ""
) -> None:
    """Refuse a WebSocket with an HTTP status and a JSON body; by closing it where the server lacks that.

    The operator reads the refusal's code, with a ``hint`` where there is more to be known.
    """
    path = str(scope.get("path", ""))
    more = f" {hint}" if hint else ""
    refusals().note(f"{path} {refusal.code}", f"Refused a WebSocket at {shown(path)}: {refusal.code}.{more}")
    if not can_refuse_by_http(scope):
        await send({"type": "websocket.close", "code": refusal.close_code, "reason": refusal.code})
        return
    data = json.dumps(body, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": data})
