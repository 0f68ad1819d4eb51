"""Who may open the page's socket; and the address at which a page asks why it may not.

Whoever is refused is refused before the upgrade, so that no stranger holds a socket. Browsers hide the
answer from the page, which learns only that there was no connection (1006). So it asks here, by HTTP.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from channels.exceptions import StopConsumer
from django.conf import settings
from django.http.request import validate_host

from voiceapp.errors import Refusal
from voiceapp.protocol.page import CloseCode, about
from voiceapp.relay.browser.login import Login, login_of
from voiceapp.serving.exchange import Exchange, serve
from voiceapp.serving.handshake import MAX_HEAD_BYTES, head_size, head_too_large
from voiceapp.serving.refusals import shown
from voiceapp.serving.scope import headers_of, refuse_upgrade
from voiceapp.types import JsonObject, Receive, Scope, Send

WHY: Final = "/ws/voice/why"


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a page may open the socket, in answer to the page's question by HTTP."""

    code: Annotated[
        int | None, about("the close code that a refusal would have, or its HTTP status; null: it may")
    ]
    message: Annotated[str, about("why it may not, as a sentence for people; empty: it may")]


def admit(scope: Scope) -> Login:
    """Return who opened the socket, or would open one, of a scope with ``user`` and ``session``.

    Raises ``Refusal``: ``foreign_origin``, ``not_signed_in``.
    """
    if not origin_allowed(scope):
        raise _refusal("foreign_origin", CloseCode.FOREIGN_ORIGIN)
    login = login_of(scope)
    if login is None:
        raise _refusal("not_signed_in", CloseCode.NOT_SIGNED_IN)
    return login


async def admit_or_refuse(scope: Scope, send: Send) -> Login:
    """Return who opened the socket; refuse anybody else before the upgrade and raise ``StopConsumer``."""
    try:
        return admit(scope)
    except Refusal as refusal:
        body: JsonObject = {"code": refusal.code, "message": refusal.message}
        await refuse_upgrade(scope, send, refusal, body, hint_of(scope, refusal))
        raise StopConsumer from None


def _refusal(code: str, close_code: CloseCode) -> Refusal:
    return Refusal(code, close_code.words, status=403, close_code=close_code)


def hint_of(scope: Scope, refusal: Refusal) -> str:
    """Return what the operator can do about a refusal, if anything."""
    if refusal.close_code != CloseCode.FOREIGN_ORIGIN:
        return ""
    headers = headers_of(scope)
    return (
        f"A page of {shown(headers.get('origin', ''))} called the host {shown(headers.get('host', ''))}. "
        "Should it be allowed, name them in VOICEAPP_TRUSTED_ORIGINS and VOICEAPP_ALLOWED_HOSTS."
    )


def origin_allowed(scope: Scope) -> bool:
    """Whether the socket was opened by a page of this site (or of a trusted origin)."""
    headers: dict[bytes, bytes] = dict(scope.get("headers") or [])
    origin, host = headers.get(b"origin", b"").decode("latin-1"), headers.get(b"host", b"").decode("latin-1")
    if not origin or origin == "null":
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        address = urlsplit(origin)
    except ValueError:
        return False
    known = validate_host(host.rsplit(":", 1)[0] if not host.endswith("]") else host, settings.ALLOWED_HOSTS)
    return address.scheme in ("http", "https") and address.netloc == host and known


async def why(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a page that asks whether it may open the socket: by ``POST``, as that comes with an origin."""
    await serve(scope, receive, send, _answer)


async def _answer(exchange: Exchange) -> None:
    body: JsonObject = msgspec.to_builtins(_admission(exchange.scope))
    await exchange.answer(200, body, [("cache-control", "no-store")])


def _admission(scope: Scope) -> Admission:
    try:
        if head_size(scope["headers"]) > MAX_HEAD_BYTES:
            raise head_too_large()
        admit(scope)
    except Refusal as refusal:
        code = refusal.status if refusal.status == 431 else int(refusal.close_code)
        return Admission(code=code, message=refusal.message)
    return Admission(code=None, message="")
