"""From a page's first message to its session: a new one, one that continues another, or one come back to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec

from voiceapp.assistants.assistant import AssistantConfig, Thinking
from voiceapp.audio.formats import AudioFormat
from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import SendBrowser, to_browser
from voiceapp.errors import VoiceAppError
from voiceapp.records.store import store, takeover
from voiceapp.relay.browser.login import Login
from voiceapp.relay.process.handover import handover
from voiceapp.relay.process.sessions import registry
from voiceapp.relay.session import earlier
from voiceapp.relay.session.attachment import Browser
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.relay.session.plan import SessionPlan
from voiceapp.relay.session.timers import MovingTimer
from voiceapp.relay.upstream import target as targets
from voiceapp.types import JsonObject

NOT_FOUND, TOO_MANY, BAD_START, STOPPING = 4004, 4009, 4010, 4015

_CLOSES = {
    "assistant_unknown": NOT_FOUND,
    "session_not_found": NOT_FOUND,
    "too_many_sessions": TOO_MANY,
    "server_stopping": STOPPING,
}
_coming: WeakValueDictionary[tuple[UUID, int], asyncio.Lock] = WeakValueDictionary()
"""Held while the page of a session, and of a user, comes back to it."""


class Start(msgspec.Struct, kw_only=True):
    """The page's first message, ``session.start``."""

    type: str
    assistant: str | None = None
    voice: str | None = None
    continues: UUID | None = msgspec.field(default=None, name="continue")
    resume: _Resume | None = None
    audio: _Audio | None = None


class _Resume(msgspec.Struct):
    session_id: UUID
    seq: int
    frames: int = 0


class _Audio(msgspec.Struct):
    input: str | JsonObject | None = None
    output: str | JsonObject | None = None


class Refused(Exception):
    """No session for this page: the socket's close code, and a notice's code and words."""

    def __init__(self, close_code: int, code: str, message: str) -> None:
        super().__init__(message)
        self.close_code, self.code, self.message = close_code, code, message


@dataclass(frozen=True)
class Visitor:
    """Who asks for a session, with which socket, at which address of this server."""

    page: Browser
    login: Login
    config: VoiceConfig
    own_address: tuple[str, int] | None


def read_start(text: str) -> Start:
    """Return the first message; raises ``Refused`` where it is none."""
    try:
        start = msgspec.json.decode(text, type=Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        start = None
    if start is None or start.type != "session.start":
        raise Refused(BAD_START, "bad_start", "The first message must be a valid session.start.")
    return start


async def begin(start: Start, visitor: Visitor) -> tuple[LiveSession, SendBrowser | None]:
    """Return the page's session, attached, and what the page is told before everything else.

    Raises ``Refused``.
    """
    try:
        if start.resume is not None:
            return await _come_back(start.resume, start, visitor)
        return await _new(start, visitor), None
    except VoiceAppError as error:
        raise Refused(_CLOSES.get(error.code, BAD_START), error.code, error.message) from error


async def _come_back(
    resume: _Resume, start: Start, visitor: Visitor
) -> tuple[LiveSession, SendBrowser | None]:
    session_id, user_id = resume.session_id, visitor.login.user_id
    # A page whose line breaks while it comes back comes again before the first time is through.
    async with _coming.setdefault((session_id, user_id), asyncio.Lock()):
        found = registry.find(session_id, user_id)
        if found is not None and handover.available() and await takeover.is_lost(session_id):
            # This process hung, and another one went on with it meanwhile.
            found.end(EndReason.MOVED)
        if found is not None and found.ending is None:
            return found, to_browser(found.resume(visitor.page, resume.seq))
        # One that still ends here would end the one that goes on.
        await registry.ended(session_id, user_id)
        return await _take_over(resume, start, visitor)


async def _take_over(
    resume: _Resume, start: Start, visitor: Visitor
) -> tuple[LiveSession, SendBrowser | None]:
    """Go on here with a session of another process: it lets go, or is gone, or does not answer."""
    user_id = visitor.login.user_id
    formats = _formats(start.audio)
    owner, gone = await takeover.owner_of(resume.session_id, user_id)
    if not gone and (owner == takeover.own_name() or not handover.available()):
        raise VoiceAppError("This conversation has ended.", code="session_not_found")
    # Held before the other process lets go of it, so that it is not lost for want of room here.
    with registry.room(user_id, visitor.config):
        target = targets.choose(visitor.config, visitor.own_address)
        released = (
            None
            if gone
            else await handover.ask(owner, resume.session_id, user_id, EndReason.MOVED, resume.seq)
        )
        opened = await takeover.take(resume.session_id, user_id, owner)
        try:
            session = _live(opened, formats, target, visitor)
        except VoiceAppError:
            takeover.give_back(opened.session_id)
            raise
        lost = released is None or released.seq != resume.seq
        resumed = session.take_over(resume.seq, released.frames if released else resume.frames, lost=lost)
        session.capabilities.timers.adopt(released.timers if released else [])
        registry.start(session, visitor.login.key)
    session.perform(list(earlier.history_messages(opened.earlier[-1:], same_session=True)))
    return session, to_browser(resumed)


def _live(
    opened: store.OpenedSession,
    formats: tuple[AudioFormat | None, AudioFormat | None],
    target: targets.Target,
    visitor: Visitor,
) -> LiveSession:
    address, user_id = visitor.own_address, visitor.login.user_id
    plan = SessionPlan(
        opened=opened,
        user_id=user_id,
        config=visitor.config,
        target_of=partial(_target, target, visitor.config, address, user_id, opened.session_id),
        input_format=formats[0],
        output_format=formats[1],
    )
    session = LiveSession(plan)
    session.attach(visitor.page)
    handover.listen()
    return session


def _target(
    usual: targets.Target,
    config: VoiceConfig,
    own_address: tuple[str, int] | None,
    user_id: int,
    session_id: UUID,
    assistant: AssistantConfig,
) -> targets.Target:
    """Return the service that runs an assistant: the embedded one where it says who thinks."""
    if assistant.thinking is Thinking.AS_SET:
        return usual
    thread_id = str(session_id)
    return targets.thinking(config, own_address, assistant.thinking, user_id=user_id, thread_id=thread_id)


async def _new(start: Start, visitor: Visitor) -> LiveSession:
    user_id, config = visitor.login.user_id, visitor.config
    formats = _formats(start.audio)
    timers: list[MovingTimer] = []
    if start.continues is not None:
        # A wish that cannot be fulfilled must not end the conversation that is held.
        await store.check_opening(
            user_id, assistant_slug=start.assistant, voice=start.voice, continues=start.continues
        )
        # What was said in it has to be kept before it can be read, and one of the two is enough.
        timers = await _let_go(start.continues, user_id)
    with registry.room(user_id, config):
        target = targets.choose(config, visitor.own_address)
        opened = await store.open_session(
            user_id=user_id,
            assistant_slug=start.assistant,
            upstream=target.kind.value,
            voice=start.voice,
            continues=start.continues,
        )
        try:
            session = _live(opened, formats, target, visitor)
        except VoiceAppError:
            store.never_begun(opened.session_id)
            raise
        session.capabilities.timers.adopt(timers)
        registry.start(session, visitor.login.key)
    return session


async def _let_go(session_id: UUID, user_id: int) -> list[MovingTimer]:
    """End a session that is to be continued, here or elsewhere, if it lives; return its timers."""
    here = await registry.let_go(session_id, user_id, EndReason.CONTINUED)
    if here is not None:
        return here.capabilities.timers.hand_on()
    owner, gone = await takeover.owner_of(session_id, user_id, over=True)
    if not owner or gone or not handover.available():
        return []
    released = await handover.ask(owner, session_id, user_id, EndReason.CONTINUED)
    return released.timers if released else []


def _formats(audio: _Audio | None) -> tuple[AudioFormat | None, AudioFormat | None]:
    if audio is None:
        return None, None
    return (
        None if audio.input is None else AudioFormat.parse(audio.input),
        None if audio.output is None else AudioFormat.parse(audio.output),
    )
