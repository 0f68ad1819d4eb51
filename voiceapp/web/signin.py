"""One-time sign-in links, such as ``up`` prints."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from voiceapp.web.models import SignInLink

LIFETIME: Final = timedelta(hours=24)
"""Long enough for a server that is started in the evening and opened in the morning."""


def make_token(user: User) -> str:
    """Return a token that signs ``user`` in once; earlier ones of the same user stop working."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.filter(user=user).delete()
    SignInLink.objects.create(digest=_digest(token), user=user, expires_at=timezone.now() + LIFETIME)
    return token


def knows_token(token: str) -> bool:
    """Whether the token would sign somebody in; it is not spent."""
    link = SignInLink.objects.filter(digest=_digest(token)).select_related("user").first()
    return link is not None and _opens(link)


def _opens(link: SignInLink) -> bool:
    return link.expires_at > timezone.now() and link.user.is_active


def take_token(token: str) -> User | None:
    """Return the user whom the token signs in and spend it; ``None`` where it is unknown, spent or old."""
    link = SignInLink.objects.filter(digest=_digest(token)).select_related("user").first()
    if link is None:
        return None
    # Of two requests at once, one deletes the row.
    taken, _ = SignInLink.objects.filter(pk=link.pk).delete()
    return link.user if taken and _opens(link) else None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def administrators() -> QuerySet[User]:
    """Return the administrators, the one who was made first at the head; blocks."""
    return User.objects.filter(is_superuser=True, is_active=True).order_by("pk")


def first_administrator() -> User | None:
    """Return the administrator who was made first, if there is one; blocks."""
    return administrators().first()


def make_user(name: str) -> User:
    """Make a user without a password, an administrator where there is none yet; blocks.

    Raises ``ValidationError`` where that is no name for one.
    """
    rules = not administrators().exists()
    user = User(username=name, is_staff=rules, is_superuser=rules)
    user.set_unusable_password()
    user.full_clean()
    user.save()
    return user
