"""The parts of one conversation, and what the handlers of both sides do with several of them; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation import page_policy
from voiceapp.conversation.actions import Action, SendBrowser, SendUpstream
from voiceapp.conversation.answers.responses import ResponseSequencer
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
    sequencer: ResponseSequencer = field(default_factory=ResponseSequencer)
    turn: UserTurn = field(default_factory=UserTurn)
    typed: Typed = field(default_factory=Typed)
    latency_ms: dict[str, int] = field(default_factory=dict)
    restoring: set[str] = field(default_factory=set)
    owes_response: bool = False
    held: list[Event | UnknownEvent] = field(default_factory=list)

    def follow_up(self) -> list[Action]:
        """Ask for one response when all calls are answered and nothing else is under way."""
        if self.sequencer.active is not None or not (purpose := self.calls.take_follow_up()):
            return []
        return self.ask(purpose)

    def ask(self, purpose: str = "response") -> list[Action]:
        """Ask for a response of our own accord, in its turn."""
        create = self.own.stamp({"type": "response.create"}, purpose)
        return self.send(self.sequencer.create(create) or [])

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
