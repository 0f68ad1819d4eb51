"""Where a server asks for secrets to give to its browsers: GA's address and the preview's two."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Final

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from voiceapp.config import voice_config
from voiceapp.engine.server.client_secrets import MAX_S, MIN_S, USUAL_S, ClientSecrets, described
from voiceapp.engine.server.connection import new_id
from voiceapp.engine.server.credentials import ADVICE, holds_key, offered
from voiceapp.engine.session import fields, validation
from voiceapp.errors import ProtocolError
from voiceapp.protocol.dialects import Dialect, Half, from_ga, to_ga
from voiceapp.types import JsonObject

_PREVIEW_S: Final = 60
_REQUEST: Final = fields.checked(
    "client_secrets",
    {
        "expires_after": fields.checked(
            "client_secrets.expires_after",
            {
                "anchor": validation.one_of("created_at"),
                "seconds": validation.number(MIN_S, MAX_S, whole=True),
            },
        ),
        "session": validation.any_object,
    },
)


@csrf_exempt
@require_POST
async def client_secrets(request: HttpRequest) -> JsonResponse:
    """Answer ``{expires_after: {anchor, seconds}, session}`` with ``{value, expires_at, session}``."""
    try:
        _authorise(request)
        asked = _body(request)
        for name in asked:
            if name not in ("expires_after", "session"):
                raise validation.refuse("unknown_parameter", f"Unknown parameter: '{name}'.", name)
        wanted = _REQUEST(asked, "body")
        session = wanted.get("session", {"type": "realtime"})
        seconds = wanted.get("expires_after", {}).get("seconds", USUAL_S)
        value, expires_at, shown = await _make(session, seconds)
    except ProtocolError as error:
        return _refusal(error)
    return JsonResponse({"value": value, "expires_at": expires_at, "session": shown})


@csrf_exempt
@require_POST
async def preview_session(request: HttpRequest, kind: str) -> JsonResponse:
    """Answer a preview session with the whole of it and its ``client_secret`` of one minute.

    ``kind`` is ``session`` or ``transcription_session``.
    """
    try:
        _authorise(request)
        update = {"type": f"{kind}.update", "session": _body(request)}
        (asked,) = to_ga(update, Dialect.PREVIEW, Half.CLIENT)
        value, expires_at, shown = await _make(asked["session"], _PREVIEW_S)
    except ProtocolError as error:
        return _refusal(error)
    created = {"type": "session.created", "session": shown}
    (event,) = from_ga(created, Dialect.PREVIEW, Half.SERVER)
    return JsonResponse({**event["session"], "client_secret": {"value": value, "expires_at": expires_at}})


async def _make(session: JsonObject, seconds: int) -> tuple[str, int, JsonObject]:
    shown = described(session, new_id("sess"))
    now_s = time.time()
    expires_at = int(now_s) + seconds
    kept = ClientSecrets(voice_config().data_dir)
    return await asyncio.to_thread(kept.create, session, expires_at, now_s), expires_at, shown


def _authorise(request: HttpRequest) -> None:
    headers = {name.lower(): value for name, value in request.headers.items()}
    given = offered(headers, request.GET.dict())
    # A secret must not make others: it would live for ever.
    if not holds_key(given):
        raise validation.refuse("invalid_api_key" if given else "missing_api_key", ADVICE, None)


def _body(request: HttpRequest) -> JsonObject:
    try:
        asked: JsonObject = validation.any_object(json.loads(request.body or b"{}"), "body")
    except (ValueError, RecursionError):
        raise validation.refuse("invalid_json", "The body is no JSON.", None) from None
    return asked


def _refusal(error: ProtocolError) -> JsonResponse:
    body = {
        "message": error.message,
        "type": "invalid_request_error",
        "code": error.code,
        "param": error.param,
    }
    return JsonResponse({"error": body}, status=401 if error.code.endswith("api_key") else 400)
