"""Who opened a socket, by the session cookie of the site.

Channels' middleware would do, but it wraps every message of a socket for its whole life.
"""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from voiceapp.records.threads import with_database


@dataclass(frozen=True)
class Login:
    """A signed-in user and the key of the sign-in, by which a later logout is noticed."""

    user_id: int
    key: str


async def login_of(scope: dict[str, Any]) -> Login | None:
    """Return who opened the socket of an ASGI scope, or ``None`` for a stranger."""
    key = _cookie(scope)
    return await with_database(_login, key) if key else None


def _cookie(scope: dict[str, Any]) -> str:
    for name, value in scope.get("headers") or []:
        if name == b"cookie":
            try:
                morsel = SimpleCookie(value.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
            except CookieError:
                continue
            if morsel is not None:
                return morsel.value
    return ""


def _login(key: str) -> Login | None:
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request)
    return Login(int(user.pk), key) if user.is_authenticated else None
