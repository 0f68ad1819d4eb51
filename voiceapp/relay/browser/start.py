"""From a page's first message to its session: a new one, one that continues another, or one come back to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from voiceapp.assistants.assistant import AssistantConfig, Thinking
from voiceapp.audio.formats import AudioFormat
from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import notice
from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.language.zones import MAX_ZONE_CHARS, place_of, zone_of
from voiceapp.protocol import page
from voiceapp.protocol.page import CloseCode, Resume, SessionResumed, SessionStart, WantedFormats
from voiceapp.records.display import inert
from voiceapp.records.store import store, takeover
from voiceapp.records.store.entries import OpenedSession
from voiceapp.relay.browser.login import Login
from voiceapp.relay.process.handover import handover
from voiceapp.relay.process.sessions import sessions
from voiceapp.relay.session import earlier
from voiceapp.relay.session.attachment import Browser
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.relay.session.plan import SessionPlan
from voiceapp.relay.session.timers import MovingTimer
from voiceapp.relay.upstream import target as targets


@dataclass(frozen=True)
class StartRequest:
    """Who asks for a session, with which socket, at which address of this server."""

    browser: Browser
    login: Login
    config: VoiceConfig
    own_address: tuple[str, int] | None


def read_start(text: str) -> SessionStart:
    """Return the first message; raises ``Refusal`` where it is none."""
    start = page.read_start(text)
    if start is None:
        sentence = "The first message must be a valid session.start."
        raise Refusal("bad_start", sentence, close_code=CloseCode.BAD_START)
    return start


async def begin(start: SessionStart, request: StartRequest) -> tuple[LiveSession, SessionResumed | None]:
    """Return the page's session, attached, and what the page is told before everything else.

    Raises ``Refusal``.
    """
    try:
        if start.resume is not None:
            return await _come_back(start.resume, start, request)
        return await _new(start, request), None
    except Refusal:
        raise
    except VoiceAppError as error:
        raise Refusal(error.code, error.message, close_code=error.close_code) from error


async def _come_back(
    resume: Resume, start: SessionStart, request: StartRequest
) -> tuple[LiveSession, SessionResumed]:
    session_id, user_id = resume.session_id, request.login.user_id
    # A page whose connection breaks while it comes back comes again before the first time is through.
    async with sessions().coming_back(session_id, user_id):
        found = sessions().find(session_id, user_id)
        if found is not None and handover().available() and await takeover.is_lost(session_id):
            # This process hung, and another one went on with it meanwhile.
            found.end(EndReason.MOVED)
        if found is not None and found.ending is None:
            return found, found.resume(request.browser, resume.seq)
        # One that still ends here would end the one that goes on.
        await sessions().ended(session_id, user_id)
        return await _take_over(resume, start, request)


async def _take_over(
    resume: Resume, start: SessionStart, request: StartRequest
) -> tuple[LiveSession, SessionResumed]:
    """Go on here with a session of another process: it lets go, or is gone, or does not answer."""
    user_id = request.login.user_id
    formats = _formats(start.audio)
    owner, gone = await takeover.owner_of(resume.session_id, user_id)
    if not gone and (owner == takeover.own_name() or not handover().available()):
        raise Refusal("session_not_found", "This conversation has ended.", close_code=CloseCode.NOT_FOUND)
    # Held before the other process lets go of it, so that it is not lost for want of room here.
    with sessions().room(user_id, request.config):
        target = targets.choose(request.config, request.own_address)
        released = (
            None
            if gone
            else await handover().ask(owner, resume.session_id, user_id, EndReason.MOVED, resume.seq)
        )
        opened = await takeover.take(resume.session_id, user_id, owner)
        try:
            session = _live(opened, formats, target, request)
        except VoiceAppError:
            takeover.give_back(opened.session_id)
            raise
        lost = released is None or released.seq != resume.seq
        resumed = session.take_over(resume.seq, released.frames if released else resume.frames, lost=lost)
        session.capabilities.timers.adopt(released.timers if released else [])
        sessions().start(session, request.login.key)
    session.perform(list(earlier.history_messages(opened.earlier[-1:], same_session=True)))
    return session, resumed


def _live(
    opened: OpenedSession,
    formats: tuple[AudioFormat | None, AudioFormat | None],
    target: targets.Target,
    request: StartRequest,
) -> LiveSession:
    address, user_id = request.own_address, request.login.user_id
    plan = SessionPlan(
        opened=opened,
        user_id=user_id,
        config=request.config,
        target_of=partial(_target, target, request.config, address, user_id, opened.session_id),
        input_format=formats[0],
        output_format=formats[1],
        staff=request.login.is_staff,
    )
    session = LiveSession(plan)
    session.attach(request.browser)
    handover().listen()
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


async def _new(start: SessionStart, request: StartRequest) -> LiveSession:
    user_id, config = request.login.user_id, request.config
    formats = _formats(start.audio)
    timers: list[MovingTimer] = []
    zone = zone_of(start.time_zone or "")
    if start.continues is not None:
        # A wish that cannot be fulfilled must not end the conversation that is held.
        await store.check_opening(
            user_id, assistant_slug=start.assistant, voice=start.voice, continues=start.continues
        )
        # What was said in it has to be kept before it can be read, and one of the two is enough.
        timers = await _let_go(start.continues, user_id)
    with sessions().room(user_id, config):
        target = targets.choose(config, request.own_address)
        opened = await store.open_session(
            user_id=user_id,
            assistant_slug=start.assistant,
            upstream=target.kind.value,
            voice=start.voice,
            continues=start.continues,
            time_zone=zone.key if zone else "",
        )
        try:
            session = _live(opened, formats, target, request)
        except VoiceAppError:
            store.never_begun(opened.session_id)
            raise
        session.capabilities.timers.adopt(timers)
        sessions().start(session, request.login.key)
    if start.time_zone is not None and zone is None:
        session.tell(notice("time_zone_unknown", _zone_unknown(start.time_zone, session.plan.zone), "info"))
    return session


def _zone_unknown(name: str, earlier: ZoneInfo | None) -> str:
    used = place_of(earlier.key if earlier else timezone.get_default_timezone_name())
    return f"No time zone is named “{inert(name[:MAX_ZONE_CHARS])}” here: times are those of {used}."


async def _let_go(session_id: UUID, user_id: int) -> list[MovingTimer]:
    """End a session that is to be continued, here or elsewhere, if it lives; return its timers."""
    here = await sessions().let_go(session_id, user_id, EndReason.CONTINUED)
    if here is not None:
        return here.capabilities.timers.hand_on()
    owner, gone = await takeover.owner_of(session_id, user_id, over=True)
    if not owner or gone or not handover().available():
        return []
    released = await handover().ask(owner, session_id, user_id, EndReason.CONTINUED)
    return released.timers if released else []


def _formats(audio: WantedFormats | None) -> tuple[AudioFormat | None, AudioFormat | None]:
    if audio is None:
        return None, None
    return (
        None if audio.input is None else AudioFormat.parse(audio.input),
        None if audio.output is None else AudioFormat.parse(audio.output),
    )
