"""Sessions that go from one server process to another: who has one, and the one step in which it is taken.

A session belongs to the process that stands in its row. Taking it over is a single conditional update, so of
several processes that try only one gets it; the one before notices that the row is no longer its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import UpstreamKind, voice_config
from voiceapp.datafolder.processes import of_this_process
from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import Session
from voiceapp.records.store import history
from voiceapp.records.store.entries import OpenedSession
from voiceapp.records.store.writer import StoreUnavailable, writer

MOVED: Final = "moved"
"""Reason with which a process ends a session that another one goes on with."""
ASK_S: Final = 1.0
"""How long a page that comes back waits for the database's word on whose its session is."""
LATE_S: Final = 60.0
"""How long after the grace period a session that was let go may still be taken."""


def own_name() -> str:
    """Return the name under which this process stands in the rows of its sessions."""
    return of_this_process(voice_config().data_dir).name()


async def owner_of(session_id: UUID, user_id: int, *, over: bool = False) -> tuple[str, bool]:
    """Return the process that a user's own session belongs to, and whether it is known to be gone.

    The name is empty where the session may be taken at once. Raises ``VoiceAppError`` with the code
    ``session_not_found`` where it is unknown, somebody else's, or over; ``over``: that it may be.
    """
    return await writer().call(lambda: _owner(session_id, user_id, over))


def _owner(session_id: UUID, user_id: int, over: bool) -> tuple[str, bool]:
    session = history.own_session(session_id, user_id)
    if session.ended_at is None:
        return session.process, of_this_process(voice_config().data_dir).gone(session.process)
    if not over and not Session.objects.filter(_let_go(), id=session_id).exists():
        raise _not_found()
    return "", True


async def take(session_id: UUID, user_id: int, owner: str) -> OpenedSession:
    """Make a session this process's own, if it still is ``owner``'s or was let go, and open it again.

    Raises ``VoiceAppError`` with the code ``session_not_found`` where it is neither.
    """
    try:
        return await writer().call(lambda: _take(session_id, user_id, owner))
    except (asyncio.CancelledError, StoreUnavailable):
        # It may yet be taken, and then nobody here goes on with it.
        give_back(session_id)
        raise


def give_back(session_id: UUID) -> None:
    """Let go of a session that was taken and cannot go on here, so that its page may come again."""
    writer().post(lambda: _give_back(session_id))


def _give_back(session_id: UUID) -> None:
    values = {"ended_at": timezone.now(), "end_reason": MOVED, "expected": True}
    Session.objects.filter(id=session_id, process=own_name(), ended_at=None).update(**values)


def _take(session_id: UUID, user_id: int, owner: str) -> OpenedSession:
    with transaction.atomic():
        free = Q(ended_at=None, process=owner) | _let_go()
        taken = Session.objects.filter(free, id=session_id, user_id=user_id).update(
            process=own_name(), ended_at=None, end_reason="", end_code="", end_message="", expected=None
        )
        if not taken:
            raise _not_found()
        session = history.own_session(session_id, user_id)
        assistant = session.assistant_config()
        if session.assistant is not None:
            assistant = assistant.with_secrets_of(session.assistant.config())
        if assistant.thinking is not Thinking.AS_SET:
            Session.objects.filter(id=session_id).update(upstream=UpstreamKind.EMBEDDED.value)
    since = timezone.now() - session.started_at
    return OpenedSession(
        session_id=session_id,
        assistant=assistant,
        earlier=history.passages(session),
        taken_over_ms=max(1, round(since.total_seconds() * 1000)),
        time_zone=session.time_zone,
    )


def _let_go() -> Q:
    """Sessions that a process let go, or that were left by one that died, and whose page may still come."""
    oldest = timezone.now() - timedelta(seconds=voice_config().grace_s + LATE_S)
    left = Q(end_reason=MOVED) | Q(end_reason="server_stopped", expected=False)
    return left & Q(ended_at__gt=oldest)


async def is_lost(session_id: UUID) -> bool:
    """Whether a session that runs here is another process's by now, or over; not where nobody can tell."""
    try:
        return bool(await writer().call(lambda: lost({session_id}), timeout_s=ASK_S))
    except StoreUnavailable:
        return False


def lost(session_ids: Iterable[UUID]) -> set[UUID]:
    """Return those of this process's sessions that are no longer its own; blocks."""
    asked = set(session_ids)
    mine = Session.objects.filter(id__in=asked, process=own_name(), ended_at=None)
    return asked - set(mine.values_list("id", flat=True))


def _not_found() -> VoiceAppError:
    return Refusal("session_not_found", "This conversation has ended.", close_code=CloseCode.NOT_FOUND)
