"""A live session: one conversation, one service, at most one page; it outlives the page's socket.

It owns the conversation's state, the connection to the service, the recorder and every task of the
session, and it ends in one place, ``_finish``, whatever the cause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Protocol

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.config import VoiceConfig
from voiceapp.conversation import actions
from voiceapp.conversation.actions import Action, to_browser
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import VoiceAppError
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.records.recording.recorder import Recorder, recordings_folder
from voiceapp.records.store import store
from voiceapp.relay import introductions
from voiceapp.relay.keeper import Keeper
from voiceapp.relay.session import earlier as past
from voiceapp.relay.session.capabilities import Abilities, with_captions_of
from voiceapp.relay.session.ending import REPLACED, SLOW, Ending
from voiceapp.relay.session.microphone import Microphone
from voiceapp.relay.session.outbox import Outbox
from voiceapp.relay.session.tools import ToolRuns
from voiceapp.relay.session.transcoding import Legs
from voiceapp.relay.upstream.link import Line
from voiceapp.relay.upstream.target import Target
from voiceapp.tools.registry import registry
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

TICK_S = 0.25
"""How exact deadlines are: a cut that nobody reports settles after 250 to 500 ms."""

_told: set[str] = set()
MAX_TOLD = 100
"""Unknown types of events that are logged, each once."""

STALL_S = 10.0
"""How long an attached page may leave a full window unacknowledged."""


class _Ended(Exception):
    """Leaves the task group once the session is to end."""


class Page(Protocol):
    """One socket of the page, as the session sees it."""

    def release(self, close_code: int, reason: str) -> None:
        """Close the socket once the page has read what is due."""


class LiveSession:
    """See the module. All methods run on the event loop; none of them waits but ``run``.

    ``target_of`` gives the service of whoever the call is handed to, ``target`` where it is left out.
    """

    def __init__(
        self,
        opened: store.OpenedSession,
        user_id: int,
        target: Target,
        config: VoiceConfig,
        legs: Legs | None = None,
        target_of: Callable[[AssistantConfig], Target] | None = None,
    ) -> None:
        self.id = opened.session_id
        self.user_id = user_id
        self.target = target
        self.config = config
        self._target_of = target_of or (lambda _: target)
        self.assistant = with_captions_of(opened.assistant, captions=target.captions)
        self.legs = legs or Legs(self.assistant.input_format, self.assistant.output_format)
        self.microphone = Microphone(self.legs.input)
        self.outbox = Outbox()
        self._loop = asyncio.get_running_loop()
        self._moved = opened.taken_over_ms is not None
        self._started = self._loop.time() - (opened.taken_over_ms or 0) / 1000
        self.last_seq = 0
        self.abilities = Abilities(self, config.max_session_s * 1000)
        self._tools = self._tools_of(self.assistant)
        self.conversation = Conversation(
            self.assistant,
            (f"relay_{n}" for n in count(1)),
            transcription_model=target.transcription_model,
            tools=self._tools.definitions(),
            ask_first=self._tools.ask_first(),
            approval_ms=config.approval_s * 1000,
        )
        self._earlier = opened.earlier
        self.conversation.restore(past.kept_items(opened.earlier))
        answers = (self.assistant.turn_detection or {}).get("create_response") is not False
        self.conversation.owes_response = self._moved and answers and past.owes_answer(opened.earlier)
        self._keep = Keeper(self.id, lambda told: self.outbox.put_text(told.text)).keep
        folder, formats = recordings_folder(config.data_dir), (self.legs.input, self.legs.output)
        begins_ms = opened.taken_over_ms or 0
        self._recorder = Recorder(folder, self.id, *formats, begins_ms) if config.record_audio else None
        self._line = Line(self.id, target, config, self)
        self._announced = False
        self._heard_at = self._detached_at = self._flowing_at = self._loop.time()
        self._page: Page | None = None
        self._ending: asyncio.Future[Ending] = self._loop.create_future()
        self._group: asyncio.TaskGroup
        self._hosting: asyncio.Task[None] | None = None
        self.finished = asyncio.Event()
        self.alone = asyncio.Event()
        self._cause: VoiceAppError | None = None

    # -- life ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live until something ends the session, then settle everything."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._keep_line())
                group.create_task(self._keep_time())
                await self._ending
                raise _Ended
        except* _Ended:
            pass
        except* Exception as errors:
            logger.error("session %s failed", self.id, exc_info=errors)
            self.end(Ending.FAULT)
        finally:
            self.end(Ending.DRAIN)
            await asyncio.shield(asyncio.ensure_future(self._finish(self._ending.result())))

    def end(self, ending: Ending, error: VoiceAppError | None = None) -> None:
        """Ask the session to end; the first cause counts. ``error`` says more of it."""
        if not self._ending.done():
            self._cause = error
            self._ending.set_result(ending)

    @property
    def ending(self) -> Ending | None:
        """Why the session ended or is ending, if it is."""
        return self._ending.result() if self._ending.done() else None

    async def _finish(self, ending: Ending) -> None:
        """The one place where a session ends."""
        now = self.now()
        self.last_seq = self.outbox.last_seq
        try:
            self.perform(self.conversation.finish(now))
            self.perform([*self.abilities.farewell(ending), to_browser(self._farewell(ending))])
            await self._line.aclose()
            recording = await self._recorder.aclose() if self._recorder else None
            await store.close_session(
                self.id,
                reason=ending.reason,
                expected=ending not in (Ending.FAULT, Ending.UPSTREAM_LOST, Ending.UPSTREAM_REFUSED),
                duration_ms=int(now),
                recording=recording,
            )
        except VoiceAppError as error:
            # The store closes the session by itself once it can, and repairs it at the next start.
            logger.error("session %s could not be closed in order (%s)", self.id, error.code)
        finally:
            self.finished.set()
            if self._page is not None:
                self._page.release(ending.close_code, ending.reason)

    def _farewell(self, ending: Ending) -> JsonObject:
        cause = self._cause
        return {
            "type": "session.ended",
            "reason": ending.reason,
            "code": cause.code if cause else ending.reason,
            "message": cause.message if cause else ending.words,
        }

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.perform(self.conversation.tick(self.now()))
            self.abilities.tick()
            now = self._loop.time()
            if self._page is not None and self.stalled:
                self._page.release(*SLOW)
            if self._page is None and now - self._detached_at > self.config.grace_s:
                self.end(Ending.PAGE_GONE)
            elif now - self._heard_at > self.config.idle_s and not self.abilities.waiting:
                self.end(Ending.IDLE)
            elif now - self._started > self.config.max_session_s:
                self.end(Ending.CAP)

    @property
    def stalled(self) -> bool:
        """Whether the attached page has not acknowledged a full window for too long, or lags too far."""
        now = self._loop.time()
        if not self.outbox.blocked:
            self._flowing_at = now
        return self.outbox.overfull or now - self._flowing_at > STALL_S

    def now(self) -> float:
        """Return the milliseconds since the session began."""
        return (self._loop.time() - self._started) * 1000

    # -- the service --------------------------------------------------------------------------------

    async def _keep_line(self) -> None:
        lost = await self._line.keep()
        self.end(Ending.UPSTREAM_LOST if self._announced else Ending.UPSTREAM_REFUSED, lost)

    def receive(self, event: Event | UnknownEvent, text: str) -> None:
        """Take an event of the service and its JSON."""
        if isinstance(event, UnknownEvent) and event.type not in _told and len(_told) < MAX_TOLD:
            _told.add(event.type)
            logger.info("events of the unknown type %.100r are forwarded as they are", event.type)
        try:
            was_ready = self.conversation.agreement.ready
            self.perform(self.conversation.receive_server(event, text, self.now()))
            if self.conversation.agreement.ready and not was_ready:
                self._begin()
        except Exception:
            # This runs in the transport's callback, which would swallow it.
            logger.exception("session %s failed", self.id)
            self.end(Ending.FAULT)

    def _begin(self) -> None:
        """The service listens: tell the page, the first time, and send what was said meanwhile."""
        if not self._announced:
            self._announced = True
            self._heard_at = self._loop.time()
            self.perform(self._first_words())
        for frame in self.microphone.kept():
            self._to_upstream(frame)

    def _first_words(self) -> list[Action]:
        earlier, self._earlier = self._earlier, ()
        if self._moved:
            # The page has been resumed already; only the service is another.
            return [to_browser({"type": "session.renewed"})]
        return [to_browser(self.description()), *past.told(earlier)]

    def speak_as(self, assistant: AssistantConfig) -> None:
        """Go on with another assistant, over a new connection to the service."""
        if self._hosting is not None:
            # What is still listed for the one before is not for this one.
            self._hosting.cancel()
        self.target = self._target_of(assistant)
        self.assistant = with_captions_of(assistant, captions=self.target.captions)
        self._tools = self._tools_of(assistant)
        self.conversation.hand_over(self.assistant, self._tools.definitions(), self._tools.ask_first())
        self.perform([introductions.takes_over(self.assistant)])
        self._line.dial_anew(self.target)

    def description(self) -> JsonObject:
        """Return ``session.ready``."""
        turns = self.conversation.agreement.turn_detection
        told = introductions.ready(str(self.id), self.assistant, self.legs, self.config)
        return {**told, "turn_detection": turns, "upstream": self.target.kind.value}

    # -- the page -----------------------------------------------------------------------------------

    def attach(self, page: Page) -> None:
        """Let a page's socket take over."""
        if self._page is not None:
            self._page.release(*REPLACED)
        self._page = page
        self.alone.clear()
        self._heard_at = self._flowing_at = self._loop.time()

    def resume(self, page: Page, seq: int) -> JsonObject:
        """Let a page come back that has everything up to ``seq``; return ``session.resumed`` for it."""
        self.attach(page)
        after, lost = self.outbox.rewind(seq)
        return introductions.resumed(str(self.id), after, self.microphone.frames, lost=lost)

    def take_over(self, seq: int, frames: int, *, lost: bool) -> JsonObject:
        """Go on for a page that another process served; return ``session.resumed``, see there."""
        self.outbox = Outbox(after=seq)
        self.microphone.frames = frames
        return introductions.resumed(str(self.id), seq, frames, lost=lost, moved=True)

    def detach(self, page: Page) -> None:
        """A page's socket is gone; the session waits for the next one."""
        if self._page is page:
            self._page = None
            self.alone.set()
            self._detached_at = self._loop.time()

    @property
    def attached(self) -> bool:
        """Whether a page's socket is there."""
        return self._page is not None

    def attached_to(self, page: Page) -> bool:
        """Whether ``page`` is the one that this session talks to."""
        return self._page is page

    def hear(self, frame: bytes) -> None:
        """Take a frame of the page's microphone, in its input format; raises ``AudioFormatError``."""
        self.microphone.count(frame)
        if self._recorder is not None:
            self._recorder.microphone(frame, self.now())
        if self.conversation.agreement.turn_detection is None:
            self.conversation.items.doubt.hear(frame, self.legs.input)
        if self.conversation.agreement.ready:
            self._to_upstream(frame)
        else:
            self.microphone.keep(frame)

    def _to_upstream(self, data: bytes) -> None:
        self._line.send_audio(self.legs.to_service(data))

    def client_event(self, event: Event | UnknownEvent) -> None:
        """Take a Realtime client event of the page."""
        self._heard_at = self._loop.time()
        self.perform(self.conversation.receive_client(event, self.now()))

    def playback_report(self, item_id: str, played_ms: float, *, final: bool) -> None:
        """Take what the page's speaker has played of an item."""
        self.perform(self.conversation.playback_report(item_id, played_ms, final=final, now=self.now()))

    def tell(self, *told: Action) -> None:
        """Send the page something that is not of the conversation, such as an error event."""
        self.perform(list(told))

    # -- actions ------------------------------------------------------------------------------------

    def perform(self, due: list[Action]) -> None:
        """Do what the conversation asks for."""
        for action in due:
            match action:
                case actions.SendAudio():
                    samples = self.legs.to_page(action.samples)
                    self._to_speaker(action.index, action.item_id, samples)
                case actions.SendBrowser():
                    self.outbox.put_text(action.text)
                case actions.SendUpstream():
                    self._line.send(action.fields)
                case _:
                    self._perform_rare(action)
        if self._page is None and self.outbox.overfull:
            self.outbox.drop_oldest()

    def _perform_rare(self, action: Action) -> None:
        """Do what comes a few times in a turn, and not with every frame."""
        match action:
            case actions.EndAudio():
                if rest := self.legs.rest_to_page():
                    self._to_speaker(action.index, action.item_id, rest)
            case actions.CutAudio():
                if self._recorder is not None:
                    self._recorder.cut(action.item_id, action.played_ms)
            case actions.FormatsAgreed():
                self._agree(action)
            case actions.SaveItem():
                self._heard_at = self._loop.time()
                self._keep(action.item)
            case actions.FinishedResponse() | actions.FinishedCall():
                self._keep(action)
            case actions.CallTool():
                # A task of its own: a slow tool delays nothing but its own answer.
                if self.ending is None:
                    self._group.create_task(self._call_tool(action))
            case actions.HostServers():
                hosting = self._tools.host(self.conversation, self.perform)
                self._hosting = self._group.create_task(hosting)

    def _tools_of(self, assistant: AssistantConfig) -> ToolRuns:
        doors = self.abilities.of_call
        return ToolRuns(registry, self.id, self.user_id, assistant, self.config, self.tell, doors)

    async def _call_tool(self, call: actions.CallTool) -> None:
        output, status = await self._tools.run(call)
        self._heard_at = self._loop.time()
        self.perform(self.conversation.tool_returned(call.call_id, output, status=status, now=self.now()))

    def _to_speaker(self, index: int, item_id: str, samples: bytes) -> None:
        self._heard_at = self._loop.time()
        self.outbox.put_audio(index, samples)
        if self._recorder is not None:
            self._recorder.assistant(item_id, samples, self.now())

    def _agree(self, agreed: actions.FormatsAgreed) -> None:
        self.legs.agree(agreed.input, agreed.output)
        if (agreed.input, agreed.output) != (self.assistant.input_format, self.assistant.output_format):
            logger.warning("session %s: the service uses other audio formats than asked for", self.id)
