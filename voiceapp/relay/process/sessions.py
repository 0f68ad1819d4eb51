"""All live sessions of this process: the one place that starts, finds and drains them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session as LoginSession
from django.db import Error as DatabaseTrouble
from django.utils import timezone

from voiceapp.config import VoiceConfig
from voiceapp.errors import Refusal
from voiceapp.protocol.page import CloseCode
from voiceapp.records.store import takeover
from voiceapp.records.threads import with_database
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.signals import session_ended
from voiceapp.types import Part

logger = logging.getLogger(__name__)

DRAIN_S = 20.0
"""How long a drain waits for sessions to be kept; process managers give 30 s."""

FAREWELL_S = 5.0
"""How long a drain waits for pages to read how their session ended."""

WATCH_S = 1.0
"""How often it is checked that those who talk are still signed in (a logout ends a call within 2 s), and that
their sessions are still this process's own."""


class LiveSessions:
    """See the module."""

    def __init__(self) -> None:
        self._sessions: dict[UUID, LiveSession] = {}
        self._opening: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._logins: dict[LiveSession, str] = {}
        self._watch: asyncio.Task[None] | None = None
        self._coming_back: WeakValueDictionary[tuple[UUID, int], asyncio.Lock] = WeakValueDictionary()
        self.draining = False

    def coming_back(self, session_id: UUID, user_id: int) -> asyncio.Lock:
        """Return the lock that is held while the page of a session, and of a user, comes back to it."""
        return self._coming_back.setdefault((session_id, user_id), asyncio.Lock())

    def live(self) -> list[LiveSession]:
        """Return all that live."""
        return list(self._sessions.values())

    def __len__(self) -> int:
        """Return how many live."""
        return len(self._sessions)

    @contextmanager
    def room(self, user_id: int, config: VoiceConfig) -> Iterator[None]:
        """Hold a place for a session that is being opened, and then begins within.

        Raises ``Refusal`` (``too_many_sessions``, ``server_stopping``) where none may begin.
        """
        if self.draining:
            raise Refusal(
                "server_stopping",
                "The server is being restarted. Try again soon.",
                status=503,
                close_code=CloseCode.STOPPING,
            )
        if len(self._sessions) + len(self._opening) >= config.max_sessions:
            sentence = "Too many people talk at the moment. Try again soon."
            raise Refusal("too_many_sessions", sentence, close_code=CloseCode.TOO_MANY)
        own = [session for session in self._sessions.values()
               if session.user_id == user_id and session.ending is None]  # fmt: skip
        held = self._opening.count(user_id) + len(own)
        if held >= config.max_sessions_per_user and (away := [one for one in own if not one.attached]):
            # A page that vanished may never come back, and its user is here now.
            max(away, key=lambda session: session.browser.away_s).end(EndReason.PAGE_GONE)
            held -= 1
        if held >= config.max_sessions_per_user:
            sentence = "You have too many conversations open. Close another page first."
            raise Refusal("too_many_sessions", sentence, close_code=CloseCode.TOO_MANY)
        self._opening.append(user_id)
        try:
            yield
        finally:
            self._opening.remove(user_id)

    def start(self, session: LiveSession, login_key: str) -> None:
        """Let a session live in a task of its own."""
        self._sessions[session.id] = session
        self._logins[session] = login_key
        task = asyncio.get_running_loop().create_task(self._run(session), name=f"session {session.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.draining:
            # It was being opened when the drain began.
            session.end(EndReason.DRAIN)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._watch_logins(), name="logins")

    async def _run(self, session: LiveSession) -> None:
        try:
            await session.run()
        finally:
            # Its page may have come back from elsewhere meanwhile.
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]
            self._logins.pop(session, None)
            await session_ended.asend(type(self), session_id=session.id)

    def find(self, session_id: UUID, user_id: int) -> LiveSession | None:
        """Return a user's own live session that has not begun to end."""
        session = self._own(session_id, user_id)
        return None if session is None or session.ending is not None else session

    async def ended(self, session_id: UUID, user_id: int) -> None:
        """Wait until a user's own session that is ending here, if there is one, is kept."""
        session = self._own(session_id, user_id)
        if session is not None:
            await session.finished.wait()

    async def let_go(
        self, session_id: UUID, user_id: int, ending: EndReason, seq: int | None = None
    ) -> LiveSession | None:
        """End a user's own live session and wait until it is kept; ``None`` where none is here.

        ``seq`` is the last message that the page has, where it goes on elsewhere with what it has.
        """
        session = self._own(session_id, user_id)
        if session is not None:
            if seq == session.outbox.last_seq and session.ending is None:
                session.conversation.let_play()
            session.end(ending)
            await session.finished.wait()
        return session

    def _own(self, session_id: UUID, user_id: int) -> LiveSession | None:
        session = self._sessions.get(session_id)
        return None if session is None or session.user_id != user_id else session

    async def drain(self) -> None:
        """End every session, telling its page, and wait until all are kept."""
        self.draining = True
        if self._watch is not None:
            self._watch.cancel()
        ending = self.live()
        for session in ending:
            session.end(EndReason.DRAIN)
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=DRAIN_S)
            for task in late:
                logger.error("%s did not end in time", task.get_name())
                task.cancel()
        # The sessions are kept; what is left is that their pages read so.
        reading = {
            asyncio.ensure_future(session.browser.alone.wait()) for session in ending if session.attached
        }
        if reading:
            _, unread = await asyncio.wait(reading, timeout=FAREWELL_S)
            for waiting in unread:
                waiting.cancel()

    async def _watch_logins(self) -> None:
        while self._sessions:
            await asyncio.sleep(WATCH_S)
            try:
                # A call of its own: nothing of a session that ends is held over the pause.
                await self._check_logins()
            except DatabaseTrouble:
                # A database that is away for a moment signs nobody out.
                logger.exception("sign-ins could not be checked")

    async def _check_logins(self) -> None:
        """End the sessions whose users are signed out, or that are another process's by now."""
        gone, taken = await with_database(
            _changes,
            {(session.user_id, key) for session, key in self._logins.items()},
            {session.id for session in self._logins if session.ending is None},
        )
        for session, key in self._logins.items():
            if (session.user_id, key) in gone:
                session.end(EndReason.SIGNED_OUT)
            elif session.id in taken:
                session.end(EndReason.MOVED)


def _changes(asked: set[tuple[int, str]], session_ids: set[UUID]) -> tuple[set[tuple[int, str]], set[UUID]]:
    """Return the logins that are over, and the sessions that another process has taken over.

    A login is over when it was signed out, has expired, or its user may no longer sign in.
    """
    keys = {key for _, key in asked}
    taken = takeover.lost(session_ids)
    live = LoginSession.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    known = set(live.values_list("session_key", flat=True))
    users = get_user_model().objects.filter(pk__in={user_id for user_id, _ in asked}, is_active=True)
    active = set(users.values_list("pk", flat=True))
    return {(user_id, key) for user_id, key in asked if key not in known or user_id not in active}, taken


sessions: Final = Part[LiveSessions]("table of live sessions")
