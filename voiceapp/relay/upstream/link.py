"""A session's link to its service: dialled, dialled again when lost, renewed before the service's cap."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from typing import Protocol
from uuid import UUID

from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import Action, SendBrowser, notice
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import UpstreamError, UpstreamRefused, UpstreamTimeout
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.protocol.page import SessionRenewed
from voiceapp.relay.upstream.connection import Upstream, open_upstream
from voiceapp.relay.upstream.target import Target
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

RECONNECTS = 3
"""Connections in a row that may be lost without an answer on any of them."""
LASTING_S = 60.0
"""A connection that lasted so long is no such one, also without an answer."""
PATIENCE_S = 30.0
"""How long a lost service is called again while it is away: as long as a session waits for its page."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.4, 5.0
"""Pauses between calls: each is twice the one before, and up to a quarter longer or shorter by chance."""

STARTING_NOTICE_S = 1.0
"""How long dialling may take before the page is told that it takes time."""

RENEW_BEFORE_S = 120.0
"""How long before the service's cap a session may move to a new connection, at a quiet moment."""
RENEW_AT_LAST_S = 5.0
"""How long before the cap it moves whatever is going on."""
RENEW_SHARE = 0.25
"""Neither of these is more of a connection's life: a short one would be renewed as soon as it began."""
RENEW_CHECK_S = 0.5
RENEW_AGAIN_S = 5.0
"""How long after a renewal that failed the next one is tried, unless the service says later."""


class Clock(Protocol):
    """The session's clock."""

    def now(self) -> float:
        """Return the milliseconds since the session began."""


class Owner(Protocol):
    """The session that a link belongs to."""

    conversation: Conversation

    @property
    def clock(self) -> Clock:
        """The session's clock."""

    def perform(self, due: list[Action]) -> None:
        """Do what the conversation asks for."""

    def receive(self, event: Event | UnknownEvent, text: str) -> None:
        """Take an event of the service."""


class UpstreamLink:
    """Owns the connection of one session; ``keep`` is its life.

    The session owns the link, and is handed to ``keep``: a link that held its session would keep both in
    memory after their end.
    """

    def __init__(self, session_id: UUID, target: Target, config: VoiceConfig) -> None:
        self._session_id = session_id
        self.target = target
        self._timeout_s = config.connect_timeout_s
        self._upstream: Upstream | None = None
        self._opened_at = self._opened_loop_s = 0.0
        self._opened_answers = 0
        self._connected_once = False
        self._failures = self._renewals = 0
        self._renew_not_before = self._dialled_at = 0.0
        self._lost: asyncio.Future[UpstreamError | None]

    def send(self, fields: JsonObject) -> None:
        """Send a client event; without a connection there is nobody who could want it."""
        if self._upstream is not None:
            self._upstream.send(fields)

    def send_audio(self, samples: bytes) -> None:
        """Append samples to the service's input buffer."""
        if self._upstream is not None:
            self._upstream.send_audio(samples)

    def dial_anew(self, target: Target) -> None:
        """Leave the present connection for a new one to ``target``, as the session was set up anew."""
        self.target = target
        if not self._lost.done():
            self._lost.set_result(None)

    def hold(self, waits: bool) -> None:
        """Read nothing from the service while it ``waits``, or go on."""
        if self._upstream is not None:
            self._upstream.hold(waits)

    async def aclose(self) -> None:
        """Close the connection, if there is one."""
        await self._close()

    async def keep(self, owner: Owner) -> UpstreamError:
        """Keep the service at hand; return why it cannot be had any more."""
        while True:
            refused = await self._call(owner)
            if refused is not None and not await self._called_again(owner, refused):
                return refused
            error = await self._until_lost(owner)
            if error is None:
                continue
            owner.perform(owner.conversation.disconnected(owner.clock.now()))
            # One that is given up may still be open, and is not spoken to any more.
            await self._close()
            if self._proved_itself(owner):
                self._failures = 0
            self._failures += 1
            if error.final or self._failures > RECONNECTS:
                return error
            owner.perform([notice("upstream_reconnecting", CALLING_AGAIN)])
            await asyncio.sleep(_pause(self._failures))

    def _proved_itself(self, owner: Owner) -> bool:
        """Whether the connection was of use: an answer came over it, or it has lasted."""
        if owner.conversation.answers > self._opened_answers:
            return True
        return asyncio.get_running_loop().time() - self._opened_loop_s > LASTING_S

    async def _close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            await upstream.aclose()

    async def _call(self, owner: Owner) -> UpstreamError | None:
        """Connect; return why that was refused, without its traceback, which would hold who waits for it."""
        try:
            await self._dial(owner)
        except UpstreamError as refused:
            return refused.with_traceback(None)
        return None

    async def _called_again(self, owner: Owner, refused: UpstreamError) -> bool:
        """Call a service that is away until it answers; return whether it did in time.

        One that was never there, or says what calling again cannot mend, is not called again.
        """
        if not self._connected_once:
            return False
        time_of_loop = asyncio.get_running_loop().time
        patient_until = time_of_loop() + PATIENCE_S
        attempt = self._failures
        while True:
            attempt += 1
            pause = max(_pause(attempt), refused.retry_after_s)
            if refused.final or time_of_loop() + pause > patient_until:
                return False
            owner.perform([notice("upstream_reconnecting", CALLING_AGAIN)])
            await asyncio.sleep(pause)
            again = await self._call(owner)
            if again is None:
                return True
            refused = again

    async def _dial(self, owner: Owner, *, renewing: bool = False) -> bool:
        """Connect, and let go of the connection before, if there is one.

        Where ``renewing``, the one before is kept, and nothing done, if it was busy again by the time that
        the new one was there: what is on its way over it would be lost.
        """
        starting: list[Action] = [notice("upstream_starting", STARTING)]
        hint = asyncio.get_running_loop().call_later(STARTING_NOTICE_S, owner.perform, starting)
        if renewing:
            # There is a service meanwhile.
            hint.cancel()
        dialled_at = asyncio.get_running_loop().time()
        try:
            upstream, first = await self._open()
        finally:
            hint.cancel()
        if renewing and not self._lost.done() and not self._renewal_due(owner):
            self._renew_not_before = asyncio.get_running_loop().time() + RENEW_AGAIN_S
            await upstream.aclose()
            return False
        self._renewals = self._renewals + 1 if renewing and not self._proved_itself(owner) else 0
        before, self._upstream = self._upstream, upstream
        self._opened_at, self._opened_loop_s = time.time(), asyncio.get_running_loop().time()
        self._opened_answers = owner.conversation.answers
        self._connected_once = True
        self._dialled_at = dialled_at
        lost = self._lost = asyncio.get_running_loop().create_future()

        def receive(event: Event | UnknownEvent, text: str) -> None:
            # What the connection before this one still says belongs to nobody.
            if self._upstream is upstream:
                owner.receive(event, text)

        def on_lost(error: UpstreamError) -> None:
            if not lost.done():
                lost.set_result(error)

        owner.perform(owner.conversation.disconnected(owner.clock.now()))
        # A gateway may speak another dialect than its address promises.
        owner.conversation.connected(upstream.dialect)
        upstream.start(first, receive, on_lost)
        if before is not None:
            await before.aclose()
        return True

    async def _open(self) -> tuple[Upstream, bytes]:
        while True:
            target = self.target
            upstream, first = await open_upstream(target, self._timeout_s)
            if target is self.target:
                return upstream, first
            # Another assistant, who has another service, was given the word meanwhile.
            await upstream.aclose()

    async def _until_lost(self, owner: Owner) -> UpstreamError | None:
        """Wait until the connection is lost, or not wanted any more (``None``).

        Moves to a new one before the service's cap ends it.
        """
        loop = asyncio.get_running_loop()
        ready_by = self._dialled_at + self._timeout_s
        while True:
            if self._lost.done():
                return self._lost.result()
            await asyncio.wait({self._lost}, timeout=RENEW_CHECK_S)
            refused = bool(owner.conversation.refusal)
            if owner.conversation.ready and not refused:
                ready_by = math.inf
            elif not self._lost.done() and (refused or loop.time() > ready_by):
                return self._not_ready(owner)
            if not self._lost.done() and self._renewal_due(owner):
                try:
                    if await self._dial(owner, renewing=True):
                        ready_by = self._dialled_at + self._timeout_s
                        owner.perform([SendBrowser(SessionRenewed())])
                except UpstreamError as error:
                    logger.warning("session %s: no new connection yet (%s)", self._session_id, error.code)
                    self._renew_not_before = loop.time() + max(RENEW_AGAIN_S, error.retry_after_s)

    def _not_ready(self, owner: Owner) -> UpstreamError:
        """Return why a connection is given up on which the session was never configured."""
        if refusal := owner.conversation.refusal:
            return UpstreamRefused(refusal, code="configuration_refused", final=True)
        message = f"The service did not take the session's settings within {self._timeout_s:g} seconds."
        return UpstreamTimeout(message, code="upstream_timeout")

    def _renewal_due(self, owner: Owner) -> bool:
        conversation = owner.conversation
        expires_at = conversation.expires_at
        if expires_at is None or not conversation.ready or self._renewals >= RECONNECTS:
            return False
        end_part = (expires_at - self._opened_at) * RENEW_SHARE
        if end_part <= 0:
            # Over before it began: the service's clock is another.
            return False
        # By the loop's clock, which nobody sets while a connection lasts.
        open_s = asyncio.get_running_loop().time() - self._opened_loop_s
        left = expires_at - self._opened_at - open_s
        quiet = conversation.quiet(owner.clock.now())
        quiet &= asyncio.get_running_loop().time() >= self._renew_not_before
        return left < min(RENEW_AT_LAST_S, end_part) or (left < min(RENEW_BEFORE_S, end_part) and quiet)


STARTING = "The voice service is getting ready…"
CALLING_AGAIN = "The voice service was lost. Calling it again…"


def _pause(attempt: int) -> float:
    """Return how long to wait before calling again, in seconds."""
    pause: float = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LAST_PAUSE_S)
    # Many sessions that lost the same service must not call it in one moment.
    return pause * random.uniform(0.75, 1.25)  # noqa: S311
