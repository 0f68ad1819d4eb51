"""The parts of one conversation, and what the handlers of both sides do with several of them; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation import page_policy
from voiceapp.conversation.actions import Action, SendBrowser, SendUpstream, notice
from voiceapp.conversation.answers.responses import ResponseSequencer, cancel_event, lost_response
from voiceapp.conversation.answers.speaker import Speaker
from voiceapp.conversation.calls.flow import CallFlow
from voiceapp.conversation.items import Items
from voiceapp.conversation.lifecycle import Lifecycle
from voiceapp.conversation.negotiation import Negotiation
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.page_policy import Typed
from voiceapp.conversation.turn import UserTurn
from voiceapp.protocol import codec
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.types import JsonObject


@dataclass(slots=True, kw_only=True)
class Parts:
    """What a conversation knows.

    ``owes_response``: a response was asked for that never came, so that it is asked for again. ``held`` are
    the page's events that wait for a service. ``restoring`` has the ids of earlier items that this connection
    was given and has not echoed yet. ``latency_ms`` is how long the user waited for each response's sound.
    """

    assistant: AssistantConfig
    own: OwnEvents
    items: Items
    speaker: Speaker
    negotiation: Negotiation
    calls: CallFlow
    lifecycle: Lifecycle
    silence_ms: float
    """How long nothing may come of a response before it counts as lost."""
    sequencer: ResponseSequencer = field(default_factory=ResponseSequencer)
    turn: UserTurn = field(default_factory=UserTurn)
    typed: Typed = field(default_factory=Typed)
    latency_ms: dict[str, int] = field(default_factory=dict)
    restoring: set[str] = field(default_factory=set)
    owes_response: bool = False
    held: list[Event | UnknownEvent] = field(default_factory=list)
    answers: int = 0
    """Responses that the service has ended, and did not fail at."""
    configured: bool = False
    """Whether this connection was told the settings and what was said before."""
    progress_ms: float = 0.0
    """When a response was asked for, or something of it came, the last time."""

    def follow_up(self) -> list[Action]:
        """Ask for one response when all calls are answered and nothing else is under way."""
        if self.sequencer.active is not None or not (purpose := self.calls.take_follow_up()):
            return []
        return self.ask(purpose)

    def ask(self, purpose: str = "response") -> list[Action]:
        """Ask for a response of our own accord, in its turn."""
        create = self.own.stamp({"type": "response.create"}, purpose)
        return self.send(self.sequencer.create(create) or [])

    def response_overdue(self, now: float) -> bool:
        """Whether nothing has come for too long of the response that is active or asked for.

        The service may take its time over calls of its own, which have a limit of theirs.
        """
        if self.sequencer.active is None and self.sequencer.asked is None:
            self.progress_ms = now
            return False
        return now - self.progress_ms > self.silence_ms and not self.calls.pending

    def give_up_response(self, now: float) -> list[Action]:
        """End a response whose end is lost, in words, and go on with what waits."""
        response_id = self.sequencer.active
        actions: list[Action] = []
        if response_id:
            actions += self.send([cancel_event(response_id)])
            latency_ms = self.latency_ms.pop(response_id, None)
            actions += [*self.speaker.complete_all(), *self.items.interrupted(response_id, now)]
            actions += lost_response(response_id, self.own.next_id(), latency_ms, "response_timeout")
        self.progress_ms = now
        due = self.sequencer.give_up()
        actions.append(
            notice("response_lost", "The service did not finish its answer. Ask again.", "warning")
        )
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
