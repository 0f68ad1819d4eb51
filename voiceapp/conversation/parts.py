"""The parts of one conversation, and what the handlers of both sides do with several of them; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation import page_policy
from voiceapp.conversation.actions import Action, SendBrowser, SendUpstream, notice
from voiceapp.conversation.answers.responses import ResponseSequencer, cancel_event, lost_response
from voiceapp.conversation.answers.speaker import Speaker
from voiceapp.conversation.calls.flow import CallFlow
from voiceapp.conversation.history import looks
from voiceapp.conversation.items import Items
from voiceapp.conversation.lifecycle import Lifecycle
from voiceapp.conversation.negotiation import Negotiation
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.page_policy import Typed
from voiceapp.conversation.turn import UserTurn
from voiceapp.conversation.unconfirmed import Unconfirmed
from voiceapp.protocol import codec
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.types import JsonObject

NOT_FINISHED = "The service did not finish its answer. Ask again."
NOT_BEGUN = "The service did not begin to answer. Ask again."


@dataclass(slots=True, kw_only=True)
class Parts:
    """What a conversation knows.

    ``owes_response``: a response was asked for that never came, so that it is asked for again.
    ``restoring`` has the earlier items that this connection was given and has not echoed yet, by their ids,
    with their ``looks``; ``restored`` the ids of the echoes of those to which it gave ids of its own.
    ``latency_ms`` is how long the user waited for each response's sound.
    """

    assistant: AssistantConfig
    own: OwnEvents
    items: Items
    speaker: Speaker
    negotiation: Negotiation
    calls: CallFlow
    lifecycle: Lifecycle
    unconfirmed: Unconfirmed
    silence_ms: float
    """How long nothing may come of a response before it counts as lost."""
    sequencer: ResponseSequencer = field(default_factory=ResponseSequencer)
    turn: UserTurn = field(default_factory=UserTurn)
    typed: Typed = field(default_factory=Typed)
    latency_ms: dict[str, int] = field(default_factory=dict)
    restoring: dict[str, tuple[str, ...]] = field(default_factory=dict)
    restored: set[str] = field(default_factory=set)
    owes_response: bool = False
    answers: int = 0
    """Responses that the service has ended, and did not fail at."""
    configured: bool = False
    """Whether this connection was told the settings and what was said before."""
    progress_ms: float = 0.0
    """When a response was asked for, or something of it came, the last time."""

    def is_restored(self, item: JsonObject) -> bool:
        """Whether an item is the echo of one that this connection was given, under whatever id."""
        item_id = str(item.get("id"))
        if item_id in self.restoring or item_id in self.restored:
            return True
        if not self.restoring or self.items.get(item_id) is not None:
            return False
        oldest = next(iter(self.restoring))
        if self.restoring[oldest] != looks(item):
            return False
        del self.restoring[oldest]
        self.restored.add(item_id)
        return True

    def follow_up(self) -> list[Action]:
        """Ask for one response when all calls are answered and nothing else is under way."""
        if self.sequencer.active is not None or not (purpose := self.calls.take_follow_up()):
            return []
        return self.ask(purpose)

    def ask(self, purpose: str = "response") -> list[Action]:
        """Ask for a response of our own accord, in its turn.

        Where the rounds of tools are spent it is one without them; there is none once the model called
        all the same.
        """
        rounds = self.calls.rounds
        actions: list[Action] = [*rounds.notices()]
        if rounds.exceeded:
            return actions
        without = {"response": {"tool_choice": "none"}} if rounds.spent else {}
        create = self.own.stamp({"type": "response.create", **without}, purpose)
        return [*actions, *self.send(self.sequencer.create(create) or [])]

    def keep_speech(self) -> None:
        """Keep what may be speech for the next connection: all, where the user says when a turn is over."""
        self.unconfirmed.keep_speech(self.speech_open)

    @property
    def speech_open(self) -> bool:
        """Whether a turn is being spoken, or may be: always where the user says when one is over."""
        return self.turn.uncommitted or self.negotiation.turn_detection is None

    def stop(self, response_id: str | None = None) -> list[JsonObject]:
        """Want no more of a response, or of whatever is under way; return what to send."""
        due = self.sequencer.cancel(response_id, expected=self.turn_owed)
        if response_id is None:
            self.turn.unanswered = False
        return due

    @property
    def turn_owed(self) -> bool:
        """Whether something was spoken that the service answers of its own accord, and has not begun to."""
        return self.turn.unanswered and self.negotiation.answers_turns

    @property
    def awaited(self) -> bool:
        """Whether something is to come of a response."""
        return self.sequencer.active is not None or self.sequencer.asked is not None or self.turn_owed

    def response_overdue(self, now: float) -> bool:
        """Whether nothing has come for too long of the response that is active, asked for or due.

        The service may take its time over calls of its own, which have a limit of theirs.
        """
        if not self.awaited:
            self.progress_ms = now
            return False
        return now - self.progress_ms > self.silence_ms and not self.calls.pending

    def lost_before(self, next_id: str, now: float) -> list[Action]:
        """End the active response where another one begins: its own end is lost."""
        response_id = self.sequencer.active
        if not response_id or response_id == next_id:
            return []
        latency_ms = self.latency_ms.pop(response_id, None)
        ended = [*self.speaker.complete_all(), *self.items.interrupted(response_id, now)]
        return [*ended, *lost_response(response_id, self.own.next_id(), latency_ms, "response_lost")]

    def give_up_response(self, now: float) -> list[Action]:
        """End a response whose end is lost, in words, and go on with what waits."""
        response_id = self.sequencer.active
        actions: list[Action] = []
        if response_id:
            actions += self.send([cancel_event(response_id)])
            latency_ms = self.latency_ms.pop(response_id, None)
            actions += [*self.speaker.complete_all(), *self.items.interrupted(response_id, now)]
            actions += lost_response(response_id, self.own.next_id(), latency_ms, "response_timeout")
        self.progress_ms, self.turn.unanswered = now, False
        if not self.sequencer.stopped:
            actions.append(notice("response_lost", NOT_FINISHED if response_id else NOT_BEGUN, "warning"))
        due = self.sequencer.give_up()
        return [*actions, *self.send(due), *self.follow_up()]

    def send(self, fields: list[JsonObject]) -> list[Action]:
        """Send what the sequencer gave; of a response that is being cancelled nothing more is heard."""
        for event in fields:
            if event["type"] == "response.cancel":
                self.speaker.drop(event["response_id"])
        return [SendUpstream(event) for event in fields]

    def refuse(self, code: str, message: str, refused: Event | UnknownEvent) -> SendBrowser:
        """Answer an event of the page by an ``error`` event that names its id."""
        event_id = page_policy.event_id(refused)
        event = codec.error_event(self.own.next_id(), code=code, message=message, client_event_id=event_id)
        return SendBrowser(event)
