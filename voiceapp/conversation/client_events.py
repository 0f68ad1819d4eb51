"""What each event of the page does to a conversation: functions, and the table of them; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from voiceapp.conversation import page_policy
from voiceapp.conversation.actions import Action, SendUpstream
from voiceapp.conversation.lifecycle import State
from voiceapp.conversation.parts import Parts
from voiceapp.protocol import codec, events
from voiceapp.protocol.events import Event, UnknownEvent

Handler = Callable[[Parts, Any, float], list[Action]]


def receive(parts: Parts, event: Event | UnknownEvent, now: float) -> list[Action]:
    """Take one Realtime client event of the page."""
    if refusal := parts.typed.refusal(event):
        return [parts.refuse(*refusal, event)]
    if page_policy.is_approval(event):
        return _approval(parts, event, now)
    if isinstance(event, events.ConversationItemCreate) and not isinstance(event.item.get("id"), str):
        # By it the service's echo is known, and with it that the message has arrived.
        event = msgspec.structs.replace(event, item={**event.item, "id": f"item_{parts.own.next_id()}"})
    return take(parts, event, now)


def take(parts: Parts, event: Event | UnknownEvent, now: float) -> list[Action]:
    """Take one that the page may send."""
    handlers = HANDLERS[parts.lifecycle.state]
    handler = handlers.get(type(event)) or handlers[UnknownEvent]
    return handler(parts, event, now)


def _approval(parts: Parts, event: events.ConversationItemCreate, now: float) -> list[Action]:
    answered = parts.calls.answer(event.item, now)
    if isinstance(answered, tuple):
        return [parts.refuse(*answered, event)]
    return [*answered, *parts.follow_up()]


def _hold(parts: Parts, event: Event | UnknownEvent, now: float) -> list[Action]:
    if parts.unconfirmed.hold(event):
        return []
    return [parts.refuse("not_ready", "The voice service is not there yet.", event)]


def _stop_playing(parts: Parts, event: events.OutputAudioBufferClear, now: float) -> list[Action]:
    active = parts.sequencer.active
    return [*parts.send(parts.stop()), *parts.speaker.interrupt(active, now)]


def _cancel_response(parts: Parts, event: events.ResponseCancel, now: float) -> list[Action]:
    response_id = event.response_id if isinstance(event.response_id, str) else None
    return parts.send(parts.stop(response_id))


def _create_response(parts: Parts, event: events.ResponseCreate, now: float) -> list[Action]:
    due = parts.sequencer.create(parts.own.named(codec.to_fields(event)))
    if due is None:
        return [parts.refuse("too_many_responses", "Too many responses are waiting.", event)]
    return parts.send(due)


def _add_item(parts: Parts, event: events.ConversationItemCreate, now: float) -> list[Action]:
    parts.calls.rounds.turn_began()
    return _send_on(parts, event, now)


def _send_on(parts: Parts, event: Event | UnknownEvent, now: float) -> list[Action]:
    parts.turn.event_sent(event)
    parts.unconfirmed.sent(event)
    return [SendUpstream(codec.to_fields(event))]


def _drop(parts: Parts, event: Event | UnknownEvent, now: float) -> list[Action]:
    return []


HANDLERS: dict[State, dict[type[Event | UnknownEvent], Handler]] = {
    State.WAITING: {UnknownEvent: _hold},
    State.CONFIGURING: {UnknownEvent: _hold},
    State.READY: {
        events.OutputAudioBufferClear: _stop_playing,
        events.ResponseCancel: _cancel_response,
        events.ResponseCreate: _create_response,
        events.ConversationItemCreate: _add_item,
        UnknownEvent: _send_on,
    },
    State.ENDED: {UnknownEvent: _drop},
}
"""State × event of the page → what it does; ``UnknownEvent`` stands for all that are not named."""
