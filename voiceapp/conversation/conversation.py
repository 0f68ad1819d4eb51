"""The client half of a Realtime session as a state machine; pure.

Events of both sides go in, actions come out (``voiceapp.conversation.actions``). Times are milliseconds on
the session's clock and are passed in, as are ids. It knows which items there are and in which order, which
response is active, what was heard of each answer, and which of the service's errors concern only it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import UNSET

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation import client_events, server_events
from voiceapp.conversation.actions import Action
from voiceapp.conversation.answers.responses import lost_response
from voiceapp.conversation.answers.speaker import Speaker
from voiceapp.conversation.calls.flow import CallFlow
from voiceapp.conversation.items import Items
from voiceapp.conversation.lifecycle import Lifecycle, State
from voiceapp.conversation.negotiation import Negotiation
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.parts import Parts
from voiceapp.conversation.records import ItemRecord
from voiceapp.conversation.unconfirmed import Unconfirmed
from voiceapp.protocol import events
from voiceapp.protocol.dialects import Dialect
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.protocol.page import CallPreview
from voiceapp.tools.functions import AskFirst
from voiceapp.types import JsonObject


class Conversation:  # noqa: PLR0904 - its verbs, in place of reaching into it
    """All state of one conversation between a page and a service.

    The relay calls its verbs and never reaches into its parts. ``ids`` gives the ids of events that are the
    relay's own, ``ask_first`` is as in ``CallFlow``. ``silence_ms``: how long nothing may come of a response.
    ``microphone`` is the format of the page's frames.
    """

    def __init__(
        self,
        assistant: AssistantConfig,
        ids: Iterator[str],
        *,
        transcription_model: str = "",
        tools: list[JsonObject] | None = None,
        ask_first: Mapping[str, AskFirst] | None = None,
        approval_ms: float = 60_000.0,
        silence_ms: float = 30_000.0,
        microphone: AudioFormat = AudioFormat.PCM16,
    ) -> None:
        self._transcription_model = transcription_model
        self._approval_ms = approval_ms
        own, lifecycle = OwnEvents(ids), Lifecycle()
        items = Items(captions=assistant.transcription is not None, speaker=assistant.name)
        self._parts = Parts(
            assistant=assistant,
            own=own,
            items=items,
            speaker=Speaker(items, own),
            negotiation=Negotiation(assistant, transcription_model, tools or []),
            calls=self._calls_of(assistant, own, lifecycle, items, ask_first),
            lifecycle=lifecycle,
            unconfirmed=Unconfirmed(microphone),
            silence_ms=silence_ms,
        )

    def _calls_of(
        self,
        assistant: AssistantConfig,
        own: OwnEvents,
        lifecycle: Lifecycle,
        items: Items,
        ask_first: Mapping[str, AskFirst] | None,
    ) -> CallFlow:
        servers, rounds = assistant.mcp_servers, assistant.max_tool_rounds
        return CallFlow(own, lifecycle, items, servers, self._approval_ms, ask_first, rounds)

    def hand_over(
        self,
        assistant: AssistantConfig,
        tools: list[JsonObject],
        ask_first: Mapping[str, AskFirst],
        *,
        silence_ms: float,
    ) -> None:
        """Give another assistant the word; the next connection is configured for it."""
        parts = self._parts
        if self.ready:
            parts.unconfirmed.connection_lost(spoken=parts.speech_open)
        parts.silence_ms = silence_ms
        parts.assistant = assistant
        spoken = parts.negotiation.spoken
        parts.negotiation = Negotiation(assistant, self._transcription_model, tools, spoken=spoken)
        # Two that hand over to each other for ever are rounds as well.
        made = min(parts.calls.rounds.made, assistant.max_tool_rounds)
        parts.calls = self._calls_of(assistant, parts.own, parts.lifecycle, parts.items, ask_first)
        parts.calls.rounds.made = made
        parts.items.captions = assistant.transcription is not None
        parts.items.speaker = assistant.name
        parts.owes_response = True
        # What is said from now on is for the next one, so it waits for the next connection.
        parts.lifecycle.enter(State.WAITING)

    def restore(self, records: Iterable[ItemRecord], *, owes_response: bool = False) -> None:
        """Take what was said before, in another session or process; calls among it are not run again.

        ``owes_response``: the last of it still waits for its answer, which is asked for.
        """
        parts = self._parts
        parts.items.restore(records)
        parts.calls.functions.answered |= parts.items.call_ids
        parts.owes_response = owes_response

    @property
    def assistant(self) -> AssistantConfig:
        """Who speaks."""
        return self._parts.assistant

    # -- what the relay may ask ---------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How far the conversation and its service are."""
        return self._parts.lifecycle.state

    @property
    def ready(self) -> bool:
        """Whether the service took the settings, so that audio and events go through."""
        return self._parts.lifecycle.state is State.READY

    @property
    def turn_detection(self) -> JsonObject | None:
        """How turns are found, as the service says; ``None`` where the user says when one is over."""
        return self._parts.negotiation.turn_detection

    @property
    def expires_at(self) -> float | None:
        """When the service ends the connection, in seconds since the epoch, where it says so."""
        return self._parts.negotiation.expires_at

    @property
    def answers(self) -> int:
        """How many responses the service has ended, and did not fail at."""
        return self._parts.answers

    @property
    def refusal(self) -> str:
        """Why the service takes no settings at all, in a sentence; empty where it may yet."""
        return self._parts.negotiation.refusal

    @property
    def user_speaks(self) -> bool:
        """Whether the user is speaking, as far as the service has heard."""
        return self._parts.turn.speaking

    @property
    def user_turns(self) -> int:
        """How often the user has spoken or typed."""
        return self._parts.items.user_turns

    def quiet(self, now: float) -> bool:
        """Whether nothing is being said, thought, played or transcribed, so that a change goes unnoticed."""
        parts = self._parts
        if parts.turn.open(now) or parts.items.transcripts_due or parts.speaker.playback.playing(now):
            return False
        return not parts.calls.pending and parts.sequencer.idle

    def alive(self, now: float) -> bool:
        """Whether somebody speaks, listens, is asked or is waited for."""
        parts = self._parts
        if parts.turn.speaking or parts.calls.pending or parts.awaited or parts.items.transcripts_due:
            return True
        return parts.speaker.playback.listened(now)

    def answer_began(self, call_id: str) -> bool:
        """Whether any sound of the response that made this call, and is not answered yet, has come."""
        call = self._parts.calls.functions.pending.get(call_id)
        return call is not None and self._parts.speaker.began(call.response_id)

    # -- from both sides ----------------------------------------------------------------------------

    def connected(self, dialect: Dialect) -> None:
        """There is a connection, on which ``session.created`` is due; services of preview call no MCP."""
        self._parts.negotiation.has_mcp &= dialect is not Dialect.PREVIEW
        self._parts.lifecycle.enter(State.CONFIGURING)

    def receive_server(self, event: Event | UnknownEvent, text: str, now: float) -> list[Action]:
        """Take one event of the service (GA shape); ``text`` is the same event as JSON."""
        # Looked up here, as this is done for every delta of audio.
        parts, kind = self._parts, type(event)
        if kind in server_events.PROGRESS:
            parts.progress_ms = now
        handlers = server_events.HANDLERS[parts.lifecycle.state]
        return handlers.get(kind, server_events.forward)(parts, event, text, now)

    def receive_client(self, event: Event | UnknownEvent, now: float) -> list[Action]:
        """Take one Realtime client event of the page."""
        return client_events.receive(self._parts, event, now)

    def hear(self, frame: bytes) -> bool:
        """Take a frame of the page's microphone; return whether the service can take it now."""
        parts = self._parts
        kept = parts.unconfirmed
        if parts.negotiation.turn_detection is None:
            parts.turn.hear(frame, kept.audio_format)
        # As ``Unconfirmed.speech`` does, without a call for each frame.
        kept.entries.append(frame)
        kept.size_bytes += len(frame)
        if kept.size_bytes > kept.limit_bytes:
            kept.trim()
        return parts.lifecycle.state is State.READY

    def announce(self, text: str, item_id: str, now: float) -> list[Action]:
        """Have the model say something, in the conversation and in its turn.

        The item is known here before the service echoes it, so that it survives a lost connection.
        """
        content = [{"type": "input_text", "text": text}]
        item = {"id": item_id, "type": "message", "role": "system", "content": content}
        self._parts.items.note({**item, "status": "completed"}, UNSET, now)
        create = self._parts.own.send({"type": "conversation.item.create", "item": item}, "announcement")
        return [create, *self.receive_client(events.ResponseCreate(), now)]

    def playback_report(self, item_id: str, played_ms: float, *, final: bool, now: float) -> list[Action]:
        """Take the page's report of how much of an item its speaker has played."""
        return self._parts.speaker.report(item_id, played_ms, final=final, now=now)

    def speak_answers(self, *, on: bool) -> list[Action]:
        """Have answers spoken, or only written, from the next one on; the page is told once they are."""
        negotiation = self._parts.negotiation
        negotiation.spoken.wanted = on
        if not self.ready:
            # The settings that are under way, or those of the next connection, are followed by this one.
            return []
        updates = negotiation.output_update()
        if not updates:
            return [negotiation.output_message()]
        return [self._parts.own.send(update, "output") for update in updates]

    # -- tools --------------------------------------------------------------------------------------

    def tools_listed(self, tools: list[JsonObject], ask_first: dict[str, AskFirst]) -> list[Action]:
        """Take functions that came after the session began; ``ask_first`` as in ``CallFlow``."""
        parts = self._parts
        parts.negotiation.tools += tools
        parts.calls.ask_first |= ask_first
        if not self.ready:
            return []
        return [parts.own.send(update, "configure") for update in parts.negotiation.tools_update()]

    def tool_previewed(
        self, call_id: str, preview: CallPreview | None, *, harmless: bool, now: float
    ) -> list[Action]:
        """Take what a call would do, as ``CallFlow.previewed`` does."""
        return self._parts.calls.previewed(call_id, preview, now, harmless=harmless)

    def tool_returned(self, call_id: str, output: str, *, status: str, now: float) -> list[Action]:
        """Take a tool's output; the model is asked to go on once every pending call is answered."""
        return [
            *self._parts.calls.call_returned(call_id, output, status=status, now=now),
            *self._parts.follow_up(),
        ]

    def finish_call_silently(self, call_id: str) -> None:
        """Do not ask the model to go on once this call is answered: somebody else has the word, or nobody."""
        self._parts.calls.functions.silent.add(call_id)

    # -- time and endings ---------------------------------------------------------------------------

    def tick(self, now: float) -> list[Action]:
        """Do what is due by now."""
        parts = self._parts
        due = [*parts.speaker.tick(now), *parts.items.tick(now), *parts.calls.tick(now)]
        if parts.response_overdue(now):
            due += parts.give_up_response(now)
        return [*due, *parts.follow_up()]

    def let_play(self) -> None:
        """The page has all that was sent and plays it to its end, though nobody will hear of it here."""
        self._parts.speaker.let_play()

    def finish(self, now: float) -> list[Action]:
        """The session ends: settle what is open, so that nothing said is lost."""
        parts = self._parts
        parts.lifecycle.enter(State.ENDED)
        typed = parts.items.unechoed(parts.unconfirmed.typed(), now)
        return [*parts.speaker.finish(now), *typed, *parts.items.finish(now), *parts.calls.finish(now)]

    def forget(self) -> None:
        """Give back the memory of what was said, once all of it is kept."""
        self._parts.items.by_id.clear()
        self._parts.unconfirmed.take()

    def disconnected(self, now: float) -> list[Action]:
        """The service's connection is gone; a new one starts from ``session.created`` with the history.

        An answer of which nothing was heard is asked for again; one that had begun, or had called a tool,
        ends where it is.
        """
        parts = self._parts
        active = parts.sequencer.active
        begun = active is not None and (parts.speaker.began(active) or active in parts.calls.responses)
        parts.owes_response |= parts.sequencer.owed and not begun
        # What was spoken, and what the service answers by itself, is owed as well.
        parts.owes_response |= parts.turn_owed and active is None
        actions = [*parts.speaker.complete_all(), *parts.calls.connection_lost(now)]
        if active is not None:
            latency_ms = parts.latency_ms.pop(active, None)
            actions += lost_response(active, parts.own.next_id(), latency_ms)
        parts.sequencer.reset()
        parts.own.clear()
        if self.ready:
            parts.unconfirmed.connection_lost(spoken=parts.speech_open)
        parts.turn.connection_lost()
        parts.negotiation.connection_lost()
        parts.speaker.connection_lost(now)
        parts.configured = False
        parts.lifecycle.enter(State.WAITING)
        return [*actions, *parts.items.finish(now)]
