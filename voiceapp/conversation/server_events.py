"""What each event of the Realtime service does to a conversation: functions, and the table of them; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from msgspec import UNSET

from voiceapp.assistants.mcp_servers import scrub
from voiceapp.conversation import client_events, negotiation
from voiceapp.conversation.actions import Action, Save, SendBrowser, SendSpeech, notice
from voiceapp.conversation.answers.responses import response_notice, response_record
from voiceapp.conversation.calls.functions import PendingCall
from voiceapp.conversation.calls.mcp import McpEvent
from voiceapp.conversation.history import history, looks
from voiceapp.conversation.items import TextEvent
from voiceapp.conversation.lifecycle import State
from voiceapp.conversation.parts import Parts
from voiceapp.conversation.turn import COMMIT_EMPTY
from voiceapp.protocol import events
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.types import JsonObject

_SETTLED_HERE = frozenset({
    "conversation_already_has_active_response", "response_cancel_not_active", "session_expired",
})  # fmt: skip
"""Errors that concern only the relay: it queues, has nothing to cancel, or dials again."""

AFTER_ERROR_MS = 2_000.0
"""How long a response may still go on, or end, after the service has told of a fault of its own."""

SPEECH_LOST = "The voice service was away for too long: some of what you said was lost. Say it again."

_STOPS = (events.OutputAudioBufferClear, events.ResponseCancel)

Handler = Callable[[Parts, Any, str, float], list[Action]]


def forward(parts: Parts, event: Event | UnknownEvent, text: str, now: float) -> list[Action]:
    """Hand on what concerns only the page, whatever it is."""
    return [] if parts.lifecycle.state is State.ENDED else [SendBrowser(text)]


def _audio(parts: Parts, event: events.ResponseOutputAudioDelta, text: str, now: float) -> list[Action]:
    actions = parts.speaker.play(event, parts.negotiation.output_format, now)
    if actions and (waited_ms := parts.turn.latency(now)) is not None:
        parts.latency_ms[event.response_id] = waited_ms
    return actions


def _session_created(parts: Parts, event: events.SessionCreated, text: str, now: float) -> list[Action]:
    if parts.configured:
        return []
    parts.configured = True
    parts.lifecycle.enter(State.CONFIGURING)
    parts.negotiation.session_created(event.session)
    creates = history(list(parts.items.by_id.values()))
    parts.restoring = {str(create["item"]["id"]): looks(create["item"]) for create in creates}
    parts.restored.clear()
    return [
        SendBrowser(negotiation.without_instructions(event)),
        *parts.negotiation.host(),
        parts.own.send(parts.negotiation.session_update(), "configure"),
        *(parts.own.send(create, "history") for create in creates),
    ]


def _session_updated(parts: Parts, event: events.SessionUpdated, text: str, now: float) -> list[Action]:
    agreed = parts.negotiation.session_updated(event.session)
    if parts.negotiation.refusal:
        return [notice("configuration_refused", parts.negotiation.refusal, "error")]
    output = parts.negotiation.output_agreed(event.session)
    updates = [parts.own.send(update, "configure") for update in parts.negotiation.tools_update()]
    updates += [parts.own.send(update, "output") for update in parts.negotiation.output_update()]
    agreement: list[Action] = [
        agreed,
        SendBrowser(negotiation.without_instructions(event)),
        *output,
        *updates,
    ]
    if parts.lifecycle.state is State.READY:
        # Only the settings are others; what waits for a confirmation has been sent.
        parts.keep_speech()
        return agreement
    parts.lifecycle.enter(State.READY)
    return [*agreement, *parts.calls.connection_made(now), *_catch_up(parts, now)]


def _catch_up(parts: Parts, now: float) -> list[Action]:
    """Do what the page asked for while there was no service, then ask for what the lost one owed.

    One answer is enough, and it has to know what was typed meanwhile.
    """
    actions = list[Action]()
    if parts.unconfirmed.missing:
        actions.append(notice("speech_lost", SPEECH_LOST, "warning"))
    waiting = parts.unconfirmed.take()
    stopped = any(isinstance(entry, _STOPS) for entry in waiting)
    owed, parts.owes_response = parts.owes_response and not stopped, False
    for entry in waiting:
        if isinstance(entry, bytes):
            parts.unconfirmed.speech(entry)
            actions.append(SendSpeech(entry))
        else:
            actions += client_events.take(parts, entry, now)
    parts.keep_speech()
    if not parts.sequencer.idle:
        return actions
    if not owed:
        return [*actions, *parts.follow_up()]
    parts.calls.response_began()
    return [*actions, *parts.ask()]


def _error(parts: Parts, event: events.Error, text: str, now: float) -> list[Action]:
    code = event.error.get("code")
    event_id = event.error.get("event_id")
    if isinstance(event_id, str):
        # A service that went on by itself after an MCP call has answered what this one asked for.
        answered = parts.own.purposes.get(event_id) == "mcp_response"
        refused = parts.sequencer.refused(event_id, None if answered else code)
        if refused is not None:
            ours = parts.own.take(event_id) is not None
            word = [] if refused.settled or answered else [_not_begun(event, text, ours=ours)]
            return [*parts.send(refused.due), *word]
        purpose = parts.own.take(event_id)
        if purpose is not None:
            return _own_refused(parts, purpose, event_id, event.error)
    if code in _SETTLED_HERE:
        return []
    parts.turn.commit_refused(code)
    if code == COMMIT_EMPTY:
        parts.unconfirmed.commit_refused()
    if event_id is None and event.error.get("type") == "server_error" and parts.awaited:
        # It may stand in place of the response's end: not for long is one waited for.
        parts.progress_ms = min(parts.progress_ms, now - parts.silence_ms + AFTER_ERROR_MS)
    return [SendBrowser(scrub(text, parts.assistant.mcp_servers))]


def _own_refused(parts: Parts, purpose: str, event_id: str, error: JsonObject) -> list[Action]:
    """Act on the refusal of an event of ours, which the page knows nothing of."""
    if purpose == "configure":
        refusal, update = parts.negotiation.refused(error)
        if parts.lifecycle.state is State.READY:
            # What the service took before holds.
            parts.negotiation.refusal = ""
        asked = [parts.own.send(update, "configure")] if update else []
        return [refusal, *parts.negotiation.host(), *asked]
    if purpose == "output":
        return parts.negotiation.output_refused()
    if purpose == "tool_output":
        return [*parts.calls.output_refused(event_id, error), *parts.follow_up()]
    return []


def _not_begun(event: events.Error, text: str, *, ours: bool) -> SendBrowser:
    """Return what the page is told of a refused response: the error, or a sentence if it asked for none."""
    failed = {"status": "failed", "status_details": {"error": event.error}}
    sentence = response_notice(failed)
    return notice(*sentence) if ours and sentence else SendBrowser(text)


def _item_added(parts: Parts, event: events.ConversationItemAdded, text: str, now: float) -> list[Action]:
    if not event.item.get("id"):
        return []
    if parts.is_restored(event.item):
        # The echo of an earlier turn that a new connection was told of; the page has it.
        return []
    if parts.items.get(event.item["id"]) is None:
        parts.unconfirmed.echoed(event.item)
    if parts.items.has_output(event.item):
        return [SendBrowser(text)]
    parts.items.note(event.item, event.previous_item_id, now)
    return parts.calls.item_seen(event.item, text, now)


def _item_done(parts: Parts, event: events.ConversationItemDone, text: str, now: float) -> list[Action]:
    if not event.item.get("id"):
        # Nothing can be said of it, neither here nor by the page.
        return []
    if parts.is_restored(event.item):
        parts.restoring.pop(event.item["id"], None)
        return []
    if parts.items.get(event.item["id"]) is None:
        parts.unconfirmed.echoed(event.item)
    if parts.items.has_output(event.item):
        return [SendBrowser(text)]
    saves = parts.items.done(event.item, event.previous_item_id, now)
    return [*parts.calls.item_seen(event.item, text, now), *saves, *parts.follow_up()]


def _item_retrieved(
    parts: Parts, event: events.ConversationItemRetrieved, text: str, now: float
) -> list[Action]:
    return [parts.calls.item_shown(event.item, text)]


def _item_deleted(parts: Parts, event: events.ConversationItemDeleted, text: str, now: float) -> list[Action]:
    parts.items.remove(event.item_id)
    return [SendBrowser(text)]


def _transcribed(
    parts: Parts, event: events.ConversationItemInputAudioTranscriptionCompleted, text: str, now: float
) -> list[Action]:
    speechless = event.item_id in parts.turn.speechless
    if not event.transcript.strip():
        parts.turn.wordless(event.item_id)
    return [
        SendBrowser(text),
        *parts.items.transcribed(event.item_id, event.transcript, now, speechless=speechless),
    ]


def _not_transcribed(
    parts: Parts, event: events.ConversationItemInputAudioTranscriptionFailed, text: str, now: float
) -> list[Action]:
    return [SendBrowser(text), *parts.items.transcript(event.item_id, "", "failed", now)]


def _response_created(parts: Parts, event: events.ResponseCreated, text: str, now: float) -> list[Action]:
    lost = list[Action]()
    # A service that goes on by itself after each call would go round without being asked.
    unasked = parts.sequencer.asked is None and not parts.turn_owed
    ends = unasked and parts.calls.rounds.exceeded and not parts.sequencer.stopped
    if not parts.sequencer.is_beside(event.response):
        lost = parts.lost_before(str(event.response.get("id") or ""), now)
        parts.turn.response_began()
        # The outputs of earlier calls are in this response's context already.
        parts.calls.response_began()
    begun = [*lost, *parts.send(parts.sequencer.created(event.response)), SendBrowser(text)]
    return [*begun, *parts.send(parts.stop(parts.sequencer.active))] if ends else begun


def _output_item(
    parts: Parts, event: events.ResponseOutputItemAdded | events.ResponseOutputItemDone, text: str, now: float
) -> list[Action]:
    item_id = str(event.item.get("id") or "")
    if item_id and item_id not in parts.items.deleted:
        # Some services say nothing else of an answer's items.
        item = parts.items.get(item_id) or parts.items.note(event.item, UNSET, now)
        item.response_id = event.response_id
    return [*parts.calls.item_seen(event.item, text, now, event.output_index), *parts.follow_up()]


def _mcp(parts: Parts, event: McpEvent, text: str, now: float) -> list[Action]:
    return [*parts.calls.mcp_event(event, text, now), *parts.follow_up()]


def _text(parts: Parts, event: TextEvent, text: str, now: float) -> list[Action]:
    parts.items.words(event)
    return [] if parts.speaker.is_cut(event.item_id, event.response_id) else [SendBrowser(text)]


def _audio_done(parts: Parts, event: events.ResponseOutputAudioDone, text: str, now: float) -> list[Action]:
    return [*parts.speaker.complete(event.item_id), SendBrowser(text)]


def _response_done(parts: Parts, event: events.ResponseDone, text: str, now: float) -> list[Action]:
    response, actions = event.response, list[Action]()
    for raw in response.get("output") or []:
        actions += [*parts.speaker.complete(str(raw.get("id", ""))), *parts.items.ended(raw, now)]
    if due := parts.sequencer.done(response):
        # It comes after the outputs of all calls so far, and so answers them as well.
        parts.calls.response_began()
    actions += [SendBrowser(text), *parts.send(due)]
    parts.answers += response.get("status") != "failed"
    latency_ms = parts.latency_ms.pop(str(response.get("id", "")), None)
    actions.append(Save(response_record(response, latency_ms)))
    if sentence := response_notice(response):
        actions.append(notice(*sentence))
    return [*actions, *parts.follow_up()]


def _speech_started(
    parts: Parts, event: events.InputAudioBufferSpeechStarted, text: str, now: float
) -> list[Action]:
    parts.turn.speech_started()
    parts.sequencer.turn_began()
    parts.calls.rounds.turn_began()
    parts.keep_speech()
    # One turn is spoken at a time; the item that it becomes is announced when it is over.
    parts.items.speech_began = {event.item_id: now}
    interrupts = (parts.negotiation.turn_detection or {}).get("interrupt_response") is not False
    cut = parts.speaker.interrupt(parts.sequencer.active, now) if interrupts else []
    return [SendBrowser(text), *cut]


def _committed(parts: Parts, event: events.InputAudioBufferCommitted, text: str, now: float) -> list[Action]:
    parts.turn.committed(event.item_id)
    parts.unconfirmed.committed()
    parts.sequencer.turn_began()
    parts.calls.rounds.turn_began()
    parts.keep_speech()
    return [SendBrowser(text)]


def _speech_stopped(
    parts: Parts, event: events.InputAudioBufferSpeechStopped, text: str, now: float
) -> list[Action]:
    parts.turn.speech_stopped(now)
    return [SendBrowser(text)]


def _arguments_done(
    parts: Parts, event: events.ResponseFunctionCallArgumentsDone, text: str, now: float
) -> list[Action]:
    item = parts.items.get(event.item_id)
    name = event.name if isinstance(event.name, str) else (item.name if item else "")
    if item is not None:
        item.arguments, item.name = event.arguments, name
    call = PendingCall(event.call_id, event.item_id, name, event.arguments, event.response_id, now)
    made = parts.calls.call_made(call, event.output_index, anew=event.response_id == parts.sequencer.active)
    return [SendBrowser(text), *made, *parts.follow_up()]


def _arguments_delta(
    parts: Parts, event: events.ResponseFunctionCallArgumentsDelta, text: str, now: float
) -> list[Action]:
    item = parts.items.get(event.item_id)
    return [SendBrowser(text), *parts.calls.arguments_delta(event, item.name if item else "")]


_CONNECTED: dict[type[Event | UnknownEvent], Handler] = {
    events.SessionCreated: _session_created,
    events.SessionUpdated: _session_updated,
    events.Error: _error,
    events.ConversationItemAdded: _item_added,
    events.ConversationItemDone: _item_done,
    events.ConversationItemRetrieved: _item_retrieved,
    events.ConversationItemDeleted: _item_deleted,
    events.ConversationItemInputAudioTranscriptionCompleted: _transcribed,
    events.ConversationItemInputAudioTranscriptionFailed: _not_transcribed,
    events.ResponseCreated: _response_created,
    events.ResponseOutputItemAdded: _output_item,
    events.ResponseOutputItemDone: _output_item,
    events.ResponseOutputAudioDelta: _audio,
    events.ResponseOutputAudioDone: _audio_done,
    events.ResponseFunctionCallArgumentsDelta: _arguments_delta,
    events.ResponseFunctionCallArgumentsDone: _arguments_done,
    events.ResponseDone: _response_done,
    events.InputAudioBufferCommitted: _committed,
    events.InputAudioBufferSpeechStarted: _speech_started,
    events.InputAudioBufferSpeechStopped: _speech_stopped,
    **dict.fromkeys(get_args(TextEvent), _text),
    **dict.fromkeys(get_args(McpEvent), _mcp),
}

PROGRESS: frozenset[type[Event | UnknownEvent]] = frozenset(
    cls for name, cls in events.SERVER_EVENTS.items() if name.startswith("response.")
)
"""What shows that a response goes on."""

HANDLERS: dict[State, dict[type[Event | UnknownEvent], Handler]] = {
    # A service may speak as soon as it is dialled, and out of turn: what it says counts in each of these.
    State.WAITING: _CONNECTED,
    State.CONFIGURING: _CONNECTED,
    State.READY: _CONNECTED,
    State.ENDED: {},
}
"""State × event of the service → what it does; any other event goes to the page, or nowhere at the end."""
