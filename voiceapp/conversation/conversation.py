"""The client half of a Realtime session as a state machine; pure.

Events of both sides go in, actions come out (``voiceapp.conversation.actions``). Times are milliseconds on
the session's clock and are passed in, as are ids. It knows which items there are and in which order, which
response is active, what was heard of each answer, and which of the service's errors concern only it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.mcp_servers import scrub
from voiceapp.conversation import history as session_config
from voiceapp.conversation import negotiation, page_policy, responses
from voiceapp.conversation.actions import Action, KeptItem, SendBrowser, SendUpstream, notice, to_browser
from voiceapp.conversation.calls.flow import CallFlow
from voiceapp.conversation.calls.functions import PendingCall
from voiceapp.conversation.calls.mcp import McpEvent
from voiceapp.conversation.items import Items, TextEvent
from voiceapp.conversation.negotiation import Agreement
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.responses import ResponseSequencer, is_out_of_band
from voiceapp.conversation.speaker import Speaker
from voiceapp.conversation.turn import SpokenTurn
from voiceapp.protocol import codec, events
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.types import JsonObject

_SETTLED_HERE = frozenset({
    "conversation_already_has_active_response", "response_cancel_not_active", "session_expired",
})  # fmt: skip
"""Errors that concern only the relay: it queues, has nothing to cancel, or dials again."""

_STOPS = (events.OutputAudioBufferClear, events.ResponseCancel)
MAX_HELD = 32
"""Events of the page that are kept while there is no service to take them."""


@dataclass
class Conversation:
    """All state of one conversation between a page and a service."""

    assistant: AssistantConfig
    ids: Iterator[str]
    transcription_model: str = ""
    tools: list[JsonObject] = field(default_factory=list)
    ask_first: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    approval_ms: float = 60_000.0
    sequencer: ResponseSequencer = field(default_factory=ResponseSequencer)

    def __post_init__(self) -> None:
        self.items = Items(captions=self.assistant.transcription is not None)
        self.typed, self.own = page_policy.Typed(), OwnEvents(self.ids)
        self._set_up()
        self.speaker = Speaker(self.items, self.own)
        self.turn = SpokenTurn()
        self.latency_ms: dict[str, int] = {}
        self.restoring: set[str] = set()
        self.owes_response = False
        self.held: list[Event | UnknownEvent] = []

    def _set_up(self) -> None:
        self.agreement = Agreement(self.assistant, self.transcription_model, self.tools)
        self.calls = CallFlow(self.own, self.assistant.mcp_servers, self.approval_ms, self.ask_first)

    def hand_over(
        self, assistant: AssistantConfig, tools: list[JsonObject], ask_first: Mapping[str, tuple[str, str]]
    ) -> None:
        """Give another assistant the word; the next connection is configured for it."""
        self.assistant, self.tools, self.ask_first = assistant, tools, ask_first
        self._set_up()
        self.items.captions = assistant.transcription is not None
        self.owes_response = True

    def restore(self, kept: list[KeptItem]) -> None:
        """Take what was said before, in another session or process; calls among it are not run again."""
        self.items.restore(kept)
        self.calls.functions.answered |= {item.call_id for item in kept if item.call_id}

    # -- from the service ---------------------------------------------------------------------------

    def receive_server(self, event: Event | UnknownEvent, text: str, now: float) -> list[Action]:
        """Take one event of the service (GA shape); ``text`` is the same event as JSON."""
        if isinstance(event, events.ResponseOutputAudioDelta):
            return self._audio(event, now)
        handler = _SERVER.get(type(event))
        if handler is None:
            return [SendBrowser(text)]
        return handler(self, event, text, now)

    def _audio(self, event: events.ResponseOutputAudioDelta, now: float) -> list[Action]:
        actions = self.speaker.play(event, self.agreement.output_format, now)
        if actions and (waited_ms := self.turn.latency(now)) is not None:
            self.latency_ms[event.response_id] = waited_ms
        return actions

    def _session_created(self, event: events.SessionCreated, text: str, now: float) -> list[Action]:
        self.agreement.opened(event.session)
        history = session_config.history(list(self.items.by_id.values()))
        self.restoring = {str(create["item"]["id"]) for create in history}
        return [
            to_browser(negotiation.without_instructions(codec.to_fields(event))),
            *self.agreement.host(),
            self.own.send(self.agreement.wish(), "configure"),
            *(self.own.send(create, "history") for create in history),
        ]

    def _session_updated(self, event: events.SessionUpdated, text: str, now: float) -> list[Action]:
        return [
            self.agreement.updated(event.session),
            to_browser(negotiation.without_instructions(codec.to_fields(event))),
            *(self.own.send(news, "configure") for news in self.agreement.news()),
            *self.calls.connected(now),
            *self._catch_up(now),
        ]

    def _catch_up(self, now: float) -> list[Action]:
        """Do what the page asked for while there was no service, then ask for what the lost one owed.

        One answer is enough, and it has to know what was typed meanwhile.
        """
        held, self.held = self.held, []
        stopped = any(isinstance(event, _STOPS) for event in held)
        owed, self.owes_response = self.owes_response and not stopped, False
        actions = [action for event in held for action in self.receive_client(event, now)]
        if not self.sequencer.idle:
            return actions
        if not owed:
            return [*actions, *self._follow_up()]
        self.calls.response_began()
        return [*actions, *self._ask()]

    def _error(self, event: events.Error, text: str, now: float) -> list[Action]:
        code = event.error.get("code")
        event_id = event.error.get("event_id")
        if isinstance(event_id, str):
            # A service that went on by itself after an MCP call has answered what this one asked for.
            answered = self.own.purposes.get(event_id) == "mcp_response"
            next_up = self.sequencer.refused(event_id, None if answered else code)
            if next_up is not None:
                mine = self.own.take(event_id)
                told = mine is not None or code == "conversation_already_has_active_response"
                return [*self._send(next_up), *([] if told else [SendBrowser(text)])]
            purpose = self.own.take(event_id)
            if purpose == "configure":
                told, wish = self.agreement.refused(event.error)
                asked = [self.own.send(wish, "configure")] if wish else []
                return [told, *self.agreement.host(), *asked]
            if purpose is not None:
                return []
        if code in _SETTLED_HERE:
            return []
        self.items.doubt.refused(code)
        return [SendBrowser(scrub(text, self.assistant.mcp_servers))]

    # -- items --------------------------------------------------------------------------------------

    def _item_added(self, event: events.ConversationItemAdded, text: str, now: float) -> list[Action]:
        if event.item.get("id") in self.restoring:
            # The echo of an earlier turn that a new connection was told of; the page has it.
            return []
        self.items.note(event.item, event.previous_item_id, now)
        return self.calls.item(event.item, text, now)

    def _item_done(self, event: events.ConversationItemDone, text: str, now: float) -> list[Action]:
        if event.item.get("id") in self.restoring:
            self.restoring.remove(event.item["id"])
            return []
        saves = self.items.done(event.item, event.previous_item_id, now)
        return [*self.calls.item(event.item, text, now), *saves, *self._follow_up()]

    def _item_retrieved(self, event: events.ConversationItemRetrieved, text: str, now: float) -> list[Action]:
        return [self.calls.seen(event.item, text)]

    def _item_deleted(self, event: events.ConversationItemDeleted, text: str, now: float) -> list[Action]:
        self.items.remove(event.item_id)
        return [SendBrowser(text)]

    def _transcribed(
        self, event: events.ConversationItemInputAudioTranscriptionCompleted, text: str, now: float
    ) -> list[Action]:
        return [SendBrowser(text), *self.items.transcribed(event.item_id, event.transcript, now)]

    def _not_transcribed(
        self, event: events.ConversationItemInputAudioTranscriptionFailed, text: str, now: float
    ) -> list[Action]:
        return [SendBrowser(text), *self.items.transcript(event.item_id, "", "failed", now)]

    # -- responses ----------------------------------------------------------------------------------

    def _response_created(self, event: events.ResponseCreated, text: str, now: float) -> list[Action]:
        if not is_out_of_band(event.response):
            self.turn.answered()
            # The outputs of earlier calls are in this response's context already.
            self.calls.response_began()
        return [*self._send(self.sequencer.created(event.response)), SendBrowser(text)]

    def _output_item(
        self, event: events.ResponseOutputItemAdded | events.ResponseOutputItemDone, text: str, now: float
    ) -> list[Action]:
        item = self.items.get(event.item.get("id"))
        if item is not None:
            item.response_id = event.response_id
        return [*self.calls.item(event.item, text, now, event.output_index), *self._follow_up()]

    def _mcp(self, event: McpEvent, text: str, now: float) -> list[Action]:
        return [*self.calls.event(event, text, now), *self._follow_up()]

    def _text(self, event: TextEvent, text: str, now: float) -> list[Action]:
        self.items.words(event)
        return [] if self.speaker.is_cut(event.item_id, event.response_id) else [SendBrowser(text)]

    def _audio_done(self, event: events.ResponseOutputAudioDone, text: str, now: float) -> list[Action]:
        return [*self.speaker.complete(event.item_id), SendBrowser(text)]

    def _response_done(self, event: events.ResponseDone, text: str, now: float) -> list[Action]:
        response, actions = event.response, list[Action]()
        for raw in response.get("output") or []:
            actions += self.speaker.complete(str(raw.get("id", "")))
        if due := self.sequencer.done(response):
            # It comes after the outputs of all calls so far, and so answers them as well.
            self.calls.response_began()
        actions += [SendBrowser(text), *self._send(due)]
        latency_ms = self.latency_ms.pop(str(response.get("id", "")), None)
        actions.append(responses.finished_response(response, latency_ms))
        if told := responses.response_notice(response):
            actions.append(notice(*told))
        return [*actions, *self._follow_up()]

    # -- turns and barge-in -------------------------------------------------------------------------

    def _speech_started(
        self, event: events.InputAudioBufferSpeechStarted, text: str, now: float
    ) -> list[Action]:
        self.turn.began()
        # One turn is spoken at a time; the item that it becomes is announced when it is over.
        self.items.speech_began = {event.item_id: now}
        interrupts = (self.agreement.turn_detection or {}).get("interrupt_response") is not False
        cut = self.speaker.interrupt(self.sequencer.active, now) if interrupts else []
        return [SendBrowser(text), *cut]

    def _committed(self, event: events.InputAudioBufferCommitted, text: str, now: float) -> list[Action]:
        self.items.doubt.became(event.item_id)
        return [SendBrowser(text)]

    def _speech_stopped(
        self, event: events.InputAudioBufferSpeechStopped, text: str, now: float
    ) -> list[Action]:
        self.turn.stopped(now)
        return [SendBrowser(text)]

    # -- from the page ------------------------------------------------------------------------------

    def receive_client(self, event: Event | UnknownEvent, now: float) -> list[Action]:
        """Take one Realtime client event of the page."""
        if told := self.typed.refusal(event):
            return [self._refuse(*told, event)]
        if page_policy.is_approval(event):
            answered = self.calls.answer(event.item, now)
            if isinstance(answered, tuple):
                return [self._refuse(*answered, event)]
            return [*answered, *self._follow_up()]
        if not self.agreement.ready:
            if len(self.held) >= MAX_HELD:
                return [self._refuse("not_ready", "The voice service is not there yet.", event)]
            self.held.append(event)
            return []
        match event:
            case events.OutputAudioBufferClear():
                return [*self._send(self.sequencer.cancel()), *self.speaker.cut(now)]
            case events.ResponseCancel():
                wanted = event.response_id if isinstance(event.response_id, str) else None
                return self._send(self.sequencer.cancel(wanted))
            case events.ResponseCreate():
                due = self.sequencer.create(self.own.named(codec.to_fields(event)))
                if due is None:
                    return [self._refuse("too_many_responses", "Too many responses are waiting.", event)]
                return self._send(due)
        self.items.doubt.page_sent(event)
        return [SendUpstream(codec.to_fields(event))]

    def playback_report(self, item_id: str, played_ms: float, *, final: bool, now: float) -> list[Action]:
        """Take the page's report of how much of an item its speaker has played."""
        return self.speaker.report(item_id, played_ms, final=final, now=now)

    # -- tools --------------------------------------------------------------------------------------

    def _arguments_done(
        self, event: events.ResponseFunctionCallArgumentsDone, text: str, now: float
    ) -> list[Action]:
        item = self.items.get(event.item_id)
        name = event.name if isinstance(event.name, str) else (item.name if item else "")
        if item is not None:
            item.arguments, item.name = event.arguments, name
        call = PendingCall(event.call_id, event.item_id, name, event.arguments, event.response_id, now)
        return [SendBrowser(text), *self.calls.made(call, event.output_index), *self._follow_up()]

    def _arguments_delta(
        self, event: events.ResponseFunctionCallArgumentsDelta, text: str, now: float
    ) -> list[Action]:
        item = self.items.get(event.item_id)
        return [SendBrowser(text), *self.calls.more(event, item.name if item else "")]

    def tools_listed(self, tools: list[JsonObject], ask_first: dict[str, tuple[str, str]]) -> list[Action]:
        """Take functions that came after the session began; ``ask_first`` as in ``CallFlow``."""
        self.agreement.tools += tools
        self.calls.ask_first |= ask_first
        return [self.own.send(news, "configure") for news in self.agreement.news()]

    def tool_returned(self, call_id: str, output: str, *, status: str, now: float) -> list[Action]:
        """Take a tool's output; the model is asked to go on once every pending call is answered."""
        return [*self.calls.returned(call_id, output, status=status, now=now), *self._follow_up()]

    def _follow_up(self) -> list[Action]:
        """Ask for one response when all calls are answered and nothing else is under way."""
        if self.sequencer.active is not None or not (purpose := self.calls.take_follow_up()):
            return []
        return self._ask(purpose)

    # -- time and endings ---------------------------------------------------------------------------

    def tick(self, now: float) -> list[Action]:
        """Do what is due by now."""
        due = [*self.speaker.tick(now), *self.items.tick(now), *self.calls.tick(now)]
        return [*due, *self._follow_up()]

    def finish(self, now: float) -> list[Action]:
        """The session ends: settle what is open, so that nothing said is lost."""
        return [*self.speaker.finish(now), *self.items.finish(now), *self.calls.finish(now)]

    def quiet(self, now: float) -> bool:
        """Whether nothing is being said, thought, played or transcribed, so that a change goes unnoticed."""
        spoken = self.turn.open(now) or self.items.transcripts_due or self.speaker.playback.playing(now)
        return not spoken and not self.calls.pending and self.sequencer.idle

    def disconnected(self, now: float) -> list[Action]:
        """The service's connection is gone; a new one starts from ``session.created`` with the history.

        An answer of which nothing was heard is asked for again; one that had begun, or had called a tool,
        ends where it is.
        """
        active = self.sequencer.active
        begun = active is not None and (self.speaker.began(active) or active in self.calls.responses)
        self.owes_response |= not self.sequencer.idle and not begun
        actions = [*self.speaker.complete_all(), *self.calls.lost(now)]
        if active is not None:
            latency_ms = self.latency_ms.pop(active, None)
            actions += responses.lost_response(active, self.own.next_id(), latency_ms)
        self.sequencer.reset()
        self.own.clear()
        self.turn.lost()
        self.items.doubt.lost()
        self.agreement.lost()
        return [*actions, *self.items.finish(now)]

    # -- small parts --------------------------------------------------------------------------------

    def _ask(self, purpose: str = "response") -> list[Action]:
        create = self.own.stamp({"type": "response.create"}, purpose)
        return self._send(self.sequencer.create(create) or [])

    def _send(self, fields: list[JsonObject]) -> list[Action]:
        for event in fields:
            if event["type"] == "response.cancel":
                self.speaker.drop(event["response_id"])
        return [SendUpstream(event) for event in fields]

    def _refuse(self, code: str, message: str, refused: Event | UnknownEvent) -> SendBrowser:
        event_id = page_policy.event_id(refused)
        event = codec.error_event(self.own.next_id(), code=code, message=message, client_event_id=event_id)
        return SendBrowser(codec.encode(event).decode())


_Handler = Callable[[Conversation, Any, str, float], list[Action]]

_SERVER: dict[type[Event | UnknownEvent], _Handler] = {
    events.SessionCreated: Conversation._session_created,
    events.SessionUpdated: Conversation._session_updated,
    events.Error: Conversation._error,
    events.ConversationItemAdded: Conversation._item_added,
    events.ConversationItemDone: Conversation._item_done,
    events.ConversationItemRetrieved: Conversation._item_retrieved,
    events.ConversationItemDeleted: Conversation._item_deleted,
    events.ConversationItemInputAudioTranscriptionCompleted: Conversation._transcribed,
    events.ConversationItemInputAudioTranscriptionFailed: Conversation._not_transcribed,
    events.ResponseCreated: Conversation._response_created,
    events.ResponseOutputItemAdded: Conversation._output_item,
    events.ResponseOutputItemDone: Conversation._output_item,
    events.ResponseOutputAudioDone: Conversation._audio_done,
    events.ResponseFunctionCallArgumentsDelta: Conversation._arguments_delta,
    events.ResponseFunctionCallArgumentsDone: Conversation._arguments_done,
    events.ResponseDone: Conversation._response_done,
    events.InputAudioBufferCommitted: Conversation._committed,
    events.InputAudioBufferSpeechStarted: Conversation._speech_started,
    events.InputAudioBufferSpeechStopped: Conversation._speech_stopped,
    **dict.fromkeys(get_args(TextEvent), Conversation._text),
    **dict.fromkeys(get_args(McpEvent), Conversation._mcp),
}
