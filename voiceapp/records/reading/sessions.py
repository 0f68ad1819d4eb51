"""Kept sessions as pages, commands and reviews ask for them; nothing is written here.

What returns rows gives those that their reader may see; all of it blocks but what is ``async``.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.utils import timezone

from voiceapp.language.zones import zone_of
from voiceapp.records.display import TITLE_LENGTH
from voiceapp.records.models import Session, Sessions
from voiceapp.records.reading.transcript import TranscriptLine, lines
from voiceapp.records.store.rows import storable


class SessionToReview(NamedTuple):
    """What is made of a session that is over.

    Its lines, who thought in it (a ``Thinking``), whose it is, and when it began, in its user's time zone.
    """

    lines: list[TranscriptLine]
    thinking: str
    user_id: int
    began: datetime


def own_sessions(user: User) -> Sessions:
    """Return a user's own sessions, with their titles."""
    return Session.objects.filter(user=user).with_first_words()


def own_session(user: User, session_id: UUID) -> Session | None:
    """Return one of a user's own sessions, with its title."""
    return own_sessions(user).filter(id=session_id).first()


def ended_session(user: User, session_id: UUID) -> Session | None:
    """Return one of a user's own sessions that is over, with its assistant: another can go on from it."""
    own = own_sessions(user).select_related("assistant")
    return own.filter(id=session_id, ended_at__isnull=False).first()


def session_before(session: Session) -> Session | None:
    """Return the session of the same user that this one continues, if any."""
    if session.continued_from_id is None:
        return None
    return own_session(session.user, session.continued_from_id)


def sessions_after(session: Session) -> Sessions:
    """Return the sessions of the same user that continue this one."""
    return own_sessions(session.user).filter(continued_from=session)


async def recording_for(reader: AbstractBaseUser | AnonymousUser, session_id: UUID) -> str | None:
    """Return where a session's recording is, below the data folder, for who may hear it.

    Empty where there is none; ``None`` for everybody but its user and administrators who may see sessions.
    """
    session = await Session.objects.filter(id=session_id).afirst()
    if session is None or not isinstance(reader, User) or not reader.is_active:
        return None
    sees_all = reader.is_staff and await reader.ahas_perm("records.view_session")
    return session.recording if session.user_id == reader.pk or sees_all else None


def to_review(session_id: UUID) -> SessionToReview | None:
    """Return what a model is given of a session, if there is such a one."""
    session = Session.objects.filter(id=session_id).first()
    if session is None:
        return None
    thinking = str(session.configuration.get("thinking") or "")
    zone = zone_of(session.time_zone) or timezone.get_default_timezone()
    return SessionToReview(lines(session), thinking, session.user_id, session.started_at.astimezone(zone))


def has_title(user_id: int, title: str, *, but: UUID) -> bool:
    """Whether another session of a user has this very title."""
    # As it would be kept: PostgreSQL refuses to be asked for what it cannot hold.
    heading = storable(title.replace("\0", ""))[:TITLE_LENGTH]
    return Session.objects.filter(user_id=user_id, heading=heading).exclude(id=but).exists()


def ended_sessions(*, without_heading: bool) -> list[UUID]:
    """Return the sessions that are over and hold something, the oldest first."""
    ended = Session.objects.filter(ended_at__isnull=False, item_count__gt=0).order_by("started_at")
    if without_heading:
        ended = ended.filter(heading="")
    return list(ended.values_list("id", flat=True))
