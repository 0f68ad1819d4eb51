"""A live session: one conversation, one service, at most one page; it outlives the page's socket.

It owns the conversation's state, the connection to the service, the recorder and every task of the
session, and it ends in one place, ``_finish``, whatever the cause.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from itertools import count
from uuid import UUID

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation import actions
from voiceapp.conversation.actions import Action, SendBrowser, notice
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ItemRecord, Record
from voiceapp.errors import VoiceAppError
from voiceapp.protocol.events import Event, InputAudioBufferAppend, UnknownEvent
from voiceapp.protocol.page import (
    PageAssistant,
    SessionAssistant,
    SessionRenewed,
    SessionResumed,
)
from voiceapp.records.recording.recorder import Recorder, recordings_folder
from voiceapp.records.store import store
from voiceapp.relay.session import earlier
from voiceapp.relay.session.attachment import Attachment, Browser
from voiceapp.relay.session.capabilities import SessionCapabilities
from voiceapp.relay.session.clock import SessionClock
from voiceapp.relay.session.ending import REPLACED, SLOW, EndReason
from voiceapp.relay.session.life import Life
from voiceapp.relay.session.microphone import Microphone
from voiceapp.relay.session.outbox import Outbox
from voiceapp.relay.session.plan import SessionPlan
from voiceapp.relay.session.tools import ToolRuns
from voiceapp.relay.session.transcoding import Transcoding
from voiceapp.relay.upstream.link import UpstreamLink
from voiceapp.tools.registry import registry

logger = logging.getLogger(__name__)

TICK_S = 0.25
"""How exact deadlines are: a cut that nobody reports settles after 250 to 500 ms."""


class LiveSession:
    """See the module. All methods run on the event loop; none of them waits but ``run``."""

    def __init__(self, plan: SessionPlan) -> None:
        opened, config = plan.opened, plan.config
        target = plan.target_of(opened.assistant)
        assistant = plan.as_run(opened.assistant, target)
        self.plan = plan
        self.clock = SessionClock(plan.begins_ms)
        self.life = Life()
        self.browser = Attachment()
        self.link = UpstreamLink(self.id, target, config)
        self.outbox = Outbox(self.link.hold)
        self.transcoding = Transcoding(
            plan.input_format or assistant.input_format, plan.output_format or assistant.output_format
        )
        self.microphone = Microphone(self.transcoding.input)
        self.capabilities = SessionCapabilities(self.clock.now, config.max_session_s * 1000, plan.zone)
        self.tools = self._tools_of(assistant)
        # Nobody else can use the ids of the relay's own events, so that errors about them find their way.
        prefix = secrets.token_hex(4)
        self.conversation = Conversation(
            assistant,
            (f"relay_{prefix}_{n}" for n in count(1)),
            transcription_model=target.transcription_model,
            tools=self.tools.definitions(),
            ask_first=self.tools.ask_first(),
            approval_ms=config.approval_s * 1000,
            silence_ms=target.silence_s * 1000,
            microphone=self.transcoding.input,
        )
        answers = (assistant.turn_detection or {}).get("create_response") is not False
        self.conversation.restore(
            earlier.records(opened.earlier),
            owes_response=plan.moved and answers and earlier.owes_answer(opened.earlier),
        )
        folder, formats = (
            recordings_folder(config.data_dir),
            (self.transcoding.input, self.transcoding.output),
        )
        self.recorder = Recorder(folder, self.id, *formats, plan.begins_ms) if config.record_audio else None

    @property
    def id(self) -> UUID:
        """The session's id."""
        return self.plan.opened.session_id

    @property
    def user_id(self) -> int:
        """Whose session it is."""
        return self.plan.user_id

    # -- life ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live until something ends the session, then settle everything."""
        try:
            for fault in await self.life.run(self._keep_connected(), self._keep_time()):
                logger.error("session %s failed", self.id, exc_info=fault)
        finally:
            self.end(EndReason.DRAIN)
            await asyncio.shield(asyncio.ensure_future(self._finish(self.life.end_reason or EndReason.DRAIN)))

    def end(self, reason: EndReason, error: VoiceAppError | None = None) -> None:
        """Ask the session to end; the first cause counts. ``error`` says more of it."""
        self.life.end(reason, error)

    @property
    def ending(self) -> EndReason | None:
        """Why the session ended or is ending, if it is."""
        return self.life.end_reason

    @property
    def finished(self) -> asyncio.Event:
        """Set when all is settled and kept."""
        return self.life.finished

    async def _finish(self, reason: EndReason) -> None:
        """The one place where a session ends."""
        now = self.clock.now()
        self.life.last_seq = self.outbox.last_seq
        try:
            self.perform(self.conversation.finish(now))
            ended = self.life.goodbye
            message = self.plan.ended(ended, self.link.target) if reason.upstreams else ended
            self.perform([*self.capabilities.farewell(reason), SendBrowser(message)])
            await self.link.aclose()
            recording = await self.recorder.aclose() if self.recorder else None
            await store.close_session(
                self.id,
                reason=reason.reason,
                expected=reason.expected,
                duration_ms=int(now),
                recording=recording,
                code=ended.code,
                message=ended.message,
            )
        except VoiceAppError as error:
            # The store closes the session by itself once it can, and repairs it at the next start.
            logger.error("session %s could not be closed in order (%s)", self.id, error.code)
        finally:
            self.finished.set()
            if self.browser.browser is not None:
                self.browser.browser.release(reason.close_code, reason.reason)
            else:
                self._forget()

    def _forget(self) -> None:
        """Give back what takes memory, once the page has read it, whoever still asks how the session ended.

        Nothing that the session owns holds it, so that all of it is freed with the last who does.
        """
        self.outbox.clear()
        self.conversation.forget()
        self.plan = self.plan.without_past()

    async def _keep_time(self) -> None:
        config, clock = self.plan.config, self.clock
        while True:
            await asyncio.sleep(TICK_S)
            self.perform(self.conversation.tick(clock.now()))
            self.capabilities.tick(self)
            if self._alive():
                clock.touch()
            attached = self.browser.browser
            if attached is not None and self._stalled:
                attached.release(*SLOW)
            if self.browser.away_s > config.grace_s:
                self.end(EndReason.PAGE_GONE)
            elif clock.idle_s > config.idle_s:
                self.end(EndReason.IDLE)
            elif clock.now() > config.max_session_s * 1000:
                self.end(EndReason.CAP)

    def _alive(self) -> bool:
        """Whether somebody speaks, listens, is asked or is waited for: such a session is not idle."""
        conversation = self.conversation
        # Where the user says when a turn is over, the microphone is open only while they speak.
        spoken = self.microphone.heard_since() and conversation.turn_detection is None
        return spoken or conversation.alive(self.clock.now()) or self.capabilities.waiting

    @property
    def _stalled(self) -> bool:
        """Whether the attached page has not acknowledged a full window for too long, or lags too far."""
        outbox = self.outbox
        unread = self.browser.stalled(blocked=outbox.blocked, acknowledged_seq=outbox.acknowledged_seq)
        return unread or outbox.overfull

    # -- the service --------------------------------------------------------------------------------

    async def _keep_connected(self) -> None:
        lost = await self.link.keep(self)
        self.end(EndReason.UPSTREAM_LOST if self.life.announced else EndReason.UPSTREAM_REFUSED, lost)

    def receive(self, event: Event | UnknownEvent, text: str) -> None:
        """Take an event of the service and its JSON."""
        try:
            self.perform(self.conversation.receive_server(event, text, self.clock.now()))
            if not self.life.announced and self.conversation.ready:
                self._announce()
        except Exception:
            # This runs in the transport's callback, which would swallow it.
            logger.exception("session %s failed", self.id)
            self.end(EndReason.FAULT)

    def _announce(self) -> None:
        """The service listens, for the first time: tell the page."""
        self.life.announced = True
        self.clock.touch()
        if self.plan.moved:
            # The page has been resumed already; only the service is another.
            self.perform([SendBrowser(SessionRenewed())])
        else:
            conversation, formats = self.conversation, (self.transcoding.input, self.transcoding.output)
            ready = self.plan.ready(
                conversation.assistant, formats, conversation.turn_detection, self.link.target.kind
            )
            self.perform([SendBrowser(ready), *earlier.history_messages(self.plan.opened.earlier)])

    def hand_over(self, assistant: AssistantConfig) -> None:
        """Go on with another assistant, over a new connection to the service."""
        self.life.stop_hosting()
        target = self.plan.target_of(assistant)
        assistant = self.plan.as_run(assistant, target)
        self.tools = self._tools_of(assistant)
        self.conversation.hand_over(
            assistant,
            self.tools.definitions(),
            self.tools.ask_first(),
            silence_ms=target.silence_s * 1000,
        )
        handed_over = SessionAssistant(
            assistant=PageAssistant(slug=assistant.slug, name=assistant.name),
            turn_detection=assistant.turn_detection,
            transcription=assistant.transcription is not None,
        )
        self.perform([SendBrowser(handed_over)])
        self.link.dial_anew(target)

    # -- the page -----------------------------------------------------------------------------------

    def attach(self, browser: Browser) -> None:
        """Let a page's socket take over."""
        if self.browser.browser is not None:
            self.browser.browser.release(*REPLACED)
        self.browser.attach(browser)
        self.clock.touch()

    def resume(self, browser: Browser, seq: int) -> SessionResumed:
        """Let a page come back that has everything up to ``seq``; return what it is answered."""
        self.attach(browser)
        after, lost = self.outbox.rewind(seq)
        frames = self.microphone.frames
        return SessionResumed(seq=after, session_id=self.id, lost=lost, frames=frames, moved=False)

    def take_over(self, seq: int, frames: int, *, lost: bool) -> SessionResumed:
        """Go on for a page that another process served; return what it is answered."""
        self.outbox = Outbox(self.link.hold, after=seq)
        self.microphone.frames = frames
        return SessionResumed(seq=seq, session_id=self.id, lost=lost, frames=frames, moved=True)

    def detach(self, browser: Browser) -> None:
        """A page's socket is gone; the session waits for the next one."""
        self.browser.detach(browser)
        if self.finished.is_set() and not self.attached:
            self._forget()

    @property
    def attached(self) -> bool:
        """Whether a page's socket is there."""
        return self.browser.browser is not None

    def attached_to(self, browser: Browser) -> bool:
        """Whether ``browser`` is the socket that this session talks to."""
        return self.browser.browser is browser

    def hear(self, frame: bytes) -> None:
        """Take a frame of the page's microphone, in its input format; raises ``AudioFormatError``."""
        self.microphone.count(frame)
        if not frame:
            return
        if self.recorder is not None:
            self.recorder.microphone(frame, self.clock.now())
        if self.conversation.hear(frame) and (samples := self.transcoding.to_upstream(frame)):
            self.link.send_audio(samples)

    def client_event(self, event: Event | UnknownEvent) -> None:
        """Take a Realtime client event of the page; raises ``AudioFormatError`` for audio that is none."""
        self.clock.touch()
        if isinstance(event, InputAudioBufferAppend):
            # Audio takes one way, whichever way it came.
            self.hear(event.audio)
            return
        self.perform(self.conversation.receive_client(event, self.clock.now()))

    def playback_report(self, item_id: str, played_ms: float, *, final: bool) -> None:
        """Take what the page's speaker has played of an item."""
        now = self.clock.now()
        self.perform(self.conversation.playback_report(item_id, played_ms, final=final, now=now))

    def tell(self, *messages: Action) -> None:
        """Send the page something that is not of the conversation, such as an error event."""
        self.perform(list(messages))

    # -- actions ------------------------------------------------------------------------------------

    def perform(self, due: list[Action]) -> None:  # noqa: C901 - a table
        """Do what the conversation asks for; what comes most often is looked for first."""
        for action in due:
            match action:
                case actions.SendAudio():
                    samples = self.transcoding.to_browser(action.samples, action.item_id)
                    self._play(action.index, action.item_id, samples)
                case actions.SendBrowser():
                    self.outbox.put_text(action.text)
                case actions.SendUpstream():
                    if rest := self.transcoding.rest_before(action.fields):
                        self.link.send_audio(rest)
                    self.link.send(action.fields)
                case actions.SendSpeech():
                    if samples := self.transcoding.to_upstream(action.frame):
                        self.link.send_audio(samples)
                case actions.Save():
                    self._save(action.record)
                case actions.EndAudio():
                    if rest := self.transcoding.rest_to_browser(action.item_id):
                        self._play(action.index, action.item_id, rest)
                case actions.CutAudio():
                    self.transcoding.rest_to_browser(action.item_id)
                    if self.recorder is not None:
                        self.recorder.cut(action.item_id, action.played_ms)
                case actions.FormatsAgreed():
                    self._agree(action)
                case actions.CallTool():
                    # A task of its own: a slow tool delays nothing but its own answer.
                    self.life.start(self._call_tool(action))
                case actions.PreviewCall():
                    self.life.start(self._preview(action))
                case actions.HostServers():
                    self.life.host(self.tools.listings(self.conversation, self.perform))
        if self.browser.browser is None and self.outbox.overfull:
            self.outbox.drop_oldest()

    def _play(self, index: int, item_id: str, samples: bytes) -> None:
        clock = self.clock
        clock.heard_at = clock.time()
        self.outbox.put_audio(index, samples)
        if self.recorder is not None:
            self.recorder.assistant(item_id, samples, clock.now())

    def _save(self, record: Record) -> None:
        """Keep an item, a response or a call as it is now; never waits and never raises."""
        if isinstance(record, ItemRecord):
            self.clock.touch()
        try:
            store.save(self.id, record)
        except VoiceAppError as error:
            logger.error("session %s: a record could not be kept (%s)", self.id, error.code)
            self.tell(notice("not_kept", "This conversation cannot be kept at the moment.", "warning"))

    def _tools_of(self, assistant: AssistantConfig) -> ToolRuns:
        return ToolRuns(registry, self.id, self.user_id, assistant, self.plan.config, self.plan.zone)

    async def _preview(self, call: actions.PreviewCall) -> None:
        with self.capabilities.of_call(self, call.call_id) as capabilities:
            preview, harmless = await self.tools.preview(call, self.tell, capabilities)
        self.perform(
            self.conversation.tool_previewed(call.call_id, preview, harmless=harmless, now=self.clock.now())
        )

    async def _call_tool(self, call: actions.CallTool) -> None:
        with self.capabilities.of_call(self, call.call_id) as capabilities:
            output, status = await self.tools.run(call, self.tell, capabilities)
        self.clock.touch()
        now = self.clock.now()
        self.perform(self.conversation.tool_returned(call.call_id, output, status=status, now=now))

    def _agree(self, agreed: actions.FormatsAgreed) -> None:
        self.transcoding.agree(agreed.input, agreed.output)
        assistant = self.conversation.assistant
        if (agreed.input, agreed.output) != (assistant.input_format, assistant.output_format):
            logger.warning("session %s: the service uses other audio formats than asked for", self.id)
