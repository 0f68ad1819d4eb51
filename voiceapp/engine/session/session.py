"""The server half of a Realtime session as a state machine.

Pure: client events and facts from the workers go in, actions come out. It has no clock and no randomness: ids
come from ``new_id``, times from the audio clock and from whoever reports a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from voiceapp.engine.session import tool_validation, validation
from voiceapp.engine.session.actions import (
    Action,
    Close,
    EndIdle,
    ForgetTurn,
    Hear,
    Listen,
    ReplyFact,
    SendEvent,
    Speaking,
    Transcribe,
)
from voiceapp.engine.session.buffer import MAX_BYTES, InputBuffer
from voiceapp.engine.session.config import NOT_IN_A_CONVERSATION, Kind, SessionConfig
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.event_types import CLIENT_TYPES, TRANSCRIPTION_TYPES
from voiceapp.engine.session.items import ConversationItems, SessionItem, whole_samples
from voiceapp.engine.session.responses import Responder
from voiceapp.engine.session.transcripts import Segment, Transcripts
from voiceapp.errors import ProtocolError
from voiceapp.protocol import codec
from voiceapp.protocol import events as ev
from voiceapp.text.provider import ReplyRequest
from voiceapp.tools.mcp.messages import McpFact
from voiceapp.types import JsonObject

# Silence kept in front of a turn that has not begun yet, beyond the padding that it will be given.
_SPARE_MS: Final = 2_000


class EngineSession:
    """One client's session. Every public method returns what is to be done, in order."""

    def __init__(
        self,
        *,
        session_id: str,
        conversation_id: str,
        model: str,
        expires_at: int,
        new_id: Callable[[str], str],
        kind: Kind = "realtime",
        kind_is_fixed: bool = False,
        preset: JsonObject | None = None,
        has_mcp: bool = True,
    ) -> None:
        """``kind_is_fixed``: no update may turn a conversation into a transcription session.

        ``preset`` is an update that was checked before, and is in force from the beginning.
        ``has_mcp``: the client knows the events of MCP tools, and may use them.
        """
        self._config = SessionConfig(session_id, model, expires_at, kind)
        if preset is not None:
            self._config.update(preset, audio_was_spoken=False, may_change_kind=False)
        self._kind_is_fixed = kind_is_fixed
        self._has_mcp = has_mcp
        self._conversation_id = conversation_id
        self._items = ConversationItems()
        self._new_id = new_id
        self._buffer = InputBuffer(self._config.input_format)
        self._turn_item_id: str | None = None
        self._turn_start_ms = 0
        self._out: list[Action] = []
        context = Context(
            config=self._config,
            items=self._items,
            conversation_id=conversation_id,
            new_id=new_id,
            emit=self._emit,
            act=lambda action: self._out.append(action),
        )
        self._responder = Responder(context)
        self._transcripts = Transcripts(context, self._responder)

    # -- life -------------------------------------------------------------------------------------------

    def open(self, *, name_conversation: bool = False) -> list[Action]:
        """Greet the client with ``session.created``, and the conversation's id where that is customary."""
        self._emit(ev.SessionCreated, session=self._config.snapshot())
        if name_conversation and self._config.converses:
            named = {"id": self._conversation_id, "object": "realtime.conversation"}
            self._emit(ev.ConversationCreated, conversation=named)
        if self._has_mcp:
            self._responder.list_tools()
        self._out.append(Listen(self._config.input_format, self._config.turns))
        return self._take()

    def expire(self, minutes: int) -> list[Action]:
        """End a session that has lasted for as long as it may."""
        message = f"Your session hit the maximum duration of {minutes} minutes."
        self._error("session_expired", message, None, None)
        self._out.append(Close(1001, message))
        return self._take()

    # -- client events ----------------------------------------------------------------------------------

    def receive(self, event: ev.Event | ev.UnknownEvent) -> list[Action]:
        """Take a client event (GA names and shapes)."""
        try:
            if not self._has_mcp:
                tool_validation.no_mcp(event)
            self._receive(event)
        except ProtocolError as error:
            given = event.fields.get("event_id") if isinstance(event, ev.UnknownEvent) else None
            if isinstance(event, ev.ClientEvent):
                given = event.event_id
            self._error(error.code, error.message, error.param, given if isinstance(given, str) else None)
        return self._take()

    def refuse(self, error: ProtocolError, client_event_id: str | None = None) -> list[Action]:
        """Answer a message that could not be read as an event."""
        self._error(error.code, error.message, error.param, client_event_id)
        return self._take()

    def _receive(self, event: ev.Event | ev.UnknownEvent) -> None:  # noqa: C901 - a table
        kind = event.type if isinstance(event, ev.UnknownEvent) else event.type_name()
        allowed = CLIENT_TYPES if self._config.converses else TRANSCRIPTION_TYPES
        if kind not in allowed and kind != "transcription_session.update":
            raise validation.invalid_value(kind, allowed, "type")
        match event:
            case ev.ClientEvent(extra=extra) if extra:
                name = next(iter(extra))
                raise validation.refuse("unknown_parameter", f"Unknown parameter: '{name}'.", name)
            case ev.InputAudioBufferAppend():
                self._append(event.audio)
            case ev.InputAudioBufferCommit():
                self._commit()
            case ev.InputAudioBufferClear():
                self._clear()
            case ev.SessionUpdate():
                self._update(event.session)
            case ev.ConversationItemCreate():
                self._create_item(event)
            case ev.ConversationItemRetrieve():
                item = self._known_item(event.item_id, "retrieve", "retrieving")
                self._emit(ev.ConversationItemRetrieved, item=item.with_audio())
            case ev.ConversationItemTruncate():
                self._truncate(event)
            case ev.ConversationItemDelete():
                self._items.remove(self._known_item(event.item_id, "delete", "deleting"))
                self._emit(ev.ConversationItemDeleted, item_id=event.item_id)
            case ev.ResponseCreate():
                self._responder.create(event.response if isinstance(event.response, dict) else {})
            case ev.ResponseCancel():
                self._responder.cancel(event.response_id if isinstance(event.response_id, str) else None)
            case ev.TranscriptionSessionUpdate():
                if self._config.converses:
                    raise validation.refuse("invalid_value", NOT_IN_A_CONVERSATION, "type")
                self._update({"type": "transcription", **event.session})

    def _update(self, change: JsonObject) -> None:
        before = (self._config.input_format, self._config.turns)
        untouched = self._items.last_id is None and self._responder.idle
        self._config.update(
            change,
            audio_was_spoken=self._items.has_spoken(),
            may_change_kind=untouched and not self._kind_is_fixed,
        )
        after = (self._config.input_format, self._config.turns)
        if after != before:
            self._buffer.change_format(self._config.input_format)
            if after[1] is None or after[0] is not before[0]:
                self._turn_item_id = None
            self._out.append(Listen(*after))
        self._emit(ev.SessionUpdated, session=self._config.snapshot())
        self._responder.list_tools()

    # -- input audio ------------------------------------------------------------------------------------

    def _append(self, audio: bytes) -> None:
        if len(audio) > MAX_BYTES:
            raise validation.refuse(
                "string_above_max_length",
                f"Invalid 'audio': string too long. Expected at most {MAX_BYTES} bytes of audio.",
                "audio",
            )
        whole_samples(audio, "audio", self._config.input_format)
        self._buffer.append(audio)
        self._out.append(Hear(audio))

    def _commit(self) -> None:
        audio, start_ms, end_ms = self._buffer.commit()
        item_id = self._turn_item_id or self._new_id("item")
        self._turn_item_id = None
        self._add_user_audio(item_id, audio, start_ms, end_ms)
        self._out.append(ForgetTurn(round(end_ms)))

    def _clear(self) -> None:
        self._buffer.clear()
        self._turn_item_id = None
        self._out.append(ForgetTurn(round(self._buffer.end_ms)))
        self._emit(ev.InputAudioBufferCleared)

    def _add_user_audio(self, item_id: str, audio: bytes, start_ms: float, end_ms: float) -> None:
        previous = self._items.last_id
        self._emit(ev.InputAudioBufferCommitted, previous_item_id=previous, item_id=item_id)
        item = SessionItem(
            {"id": item_id, "type": "message", "status": "completed", "role": "user",
             "content": [{"type": "input_audio", "transcript": None}]}
        )  # fmt: skip
        self._items.insert(item, None)
        self._items.keep_audio(item, audio, self._config.input_format)
        self._tell_of_item(item, previous)
        self._out.append(Transcribe(item_id, round(start_ms), round(end_ms)))

    def heard(self, until_ms: int) -> None:
        """Detection has come to ``until_ms``; outside a turn, silence well before it is let go."""
        turns = self._config.turns
        if turns is not None and self._turn_item_id is None:
            self._buffer.forget(until_ms - turns.prefix_padding_ms - _SPARE_MS)

    def key_pressed(self, key: str, received_at: int) -> list[Action]:
        """A telephone key was heard; ``received_at`` is in seconds since 1970."""
        # Alone among the service's events it has no id.
        self._out.append(SendEvent(ev.InputAudioBufferDtmfEventReceived(event=key, received_at=received_at)))
        return self._take()

    def speech_started(self, audio_start_ms: int, detected_ms: int) -> list[Action]:
        """The user began to speak; ignored where the buffer was emptied since."""
        turns = self._config.turns
        if turns is not None and detected_ms > self._buffer.start_ms and self._turn_item_id is None:
            self._turn_item_id = self._new_id("item")
            self._turn_start_ms = audio_start_ms
            self._out.append(EndIdle())
            self._emit(
                ev.InputAudioBufferSpeechStarted, audio_start_ms=audio_start_ms, item_id=self._turn_item_id
            )
            if turns.interrupt_response:
                self._responder.interrupt()
        return self._take()

    def speech_stopped(self, audio_end_ms: int) -> list[Action]:
        """The user's turn is over."""
        turns, item_id = self._config.turns, self._turn_item_id
        if turns is None or item_id is None:
            return self._take()
        self._turn_item_id = None
        self._emit(ev.InputAudioBufferSpeechStopped, audio_end_ms=audio_end_ms, item_id=item_id)
        audio = self._buffer.take(self._turn_start_ms, audio_end_ms)
        self._add_user_audio(item_id, audio, self._turn_start_ms, audio_end_ms)
        if turns.create_response:
            self._responder.answer_turn()
        return self._take()

    def idle(self) -> list[Action]:
        """The user has said nothing for ``idle_timeout_ms`` after the last answer: speak to them again."""
        turns = self._config.turns
        if turns is None or turns.idle_timeout_ms is None or self._turn_item_id or self._responder.busy:
            return self._take()
        end_ms = self._buffer.end_ms
        start_ms = max(self._buffer.start_ms, end_ms - turns.idle_timeout_ms)
        item_id = self._new_id("item")
        self._emit(
            ev.InputAudioBufferTimeoutTriggered,
            audio_start_ms=round(start_ms),
            audio_end_ms=round(end_ms),
            item_id=item_id,
        )
        self._add_user_audio(item_id, self._buffer.take(start_ms, end_ms), start_ms, end_ms)
        self._out.append(ForgetTurn(round(end_ms)))
        if turns.create_response:
            self._responder.answer_turn()
        return self._take()

    @property
    def turn_item_id(self) -> str | None:
        """The item that the turn in progress will become."""
        return self._turn_item_id

    @property
    def transcribes(self) -> bool:
        """Whether the client is told what the user says."""
        return self._config.transcribes

    @property
    def may_reply(self) -> bool:
        """Whether the end of the turn in progress will start a reply at once."""
        turns = self._config.turns
        return turns is not None and turns.create_response and not self._responder.busy

    def preview(self, transcript: str) -> tuple[ReplyRequest, Speaking | None]:
        """Return the reply that the turn in progress would start if it ended with these words."""
        return self._responder.preview(transcript)

    # -- transcripts ------------------------------------------------------------------------------------

    def transcript_delta(self, item_id: str, delta: str) -> list[Action]:
        """More of the user's words are known; the item may still be in the making."""
        self._transcripts.delta(item_id, delta, in_the_making=item_id == self._turn_item_id)
        return self._take()

    def transcript_final(
        self, item_id: str, transcript: str, segments: Sequence[Segment] = ()
    ) -> list[Action]:
        """All of the user's words are known."""
        self._transcripts.final(item_id, transcript, segments)
        return self._take()

    def transcript_failed(self, item_id: str, code: str, message: str) -> list[Action]:
        """The user's words cannot be found; a reply goes on without them."""
        self._transcripts.failed(item_id, code, message)
        return self._take()

    # -- items ------------------------------------------------------------------------------------------

    def _create_item(self, event: ev.ConversationItemCreate) -> None:
        item = self._responder.read_item(event.item, "item")
        if self._items.find(item.id) is not None:
            raise validation.refuse(
                "item_create_duplicate_item_id",
                f"Error adding item: an item with id '{item.id}' already exists.",
                "item.id",
            )
        self._responder.check_answer(item)
        wanted = event.previous_item_id if isinstance(event.previous_item_id, str) else None
        self._items.admit(item)
        self._items.insert(item, wanted)
        self._tell_of_item(item, self._items.previous_id(item.id))
        self._responder.transcribe_given(item)
        self._responder.take_answer(item)

    def _tell_of_item(self, item: SessionItem, previous: str | None) -> None:
        self._emit(ev.ConversationItemAdded, previous_item_id=previous, item=item.snapshot())
        self._emit(ev.ConversationItemDone, previous_item_id=previous, item=item.snapshot())

    def _known_item(self, item_id: str, verb: str, doing: str) -> SessionItem:
        item = self._items.find(item_id)
        if item is None:
            raise validation.refuse(
                f"item_{verb}_invalid_item_id",
                f"Error {doing} item: the item with id '{item_id}' does not exist.",
                "item_id",
            )
        return item

    def _truncate(self, event: ev.ConversationItemTruncate) -> None:
        item = self._known_item(event.item_id, "truncate", "truncating")
        if not item.said_in_audio():
            raise validation.refuse(None, "Only model output audio messages can be truncated", "item_id")
        if event.content_index != 0:
            raise validation.refuse("invalid_value", "Content index must be 0", "content_index")
        validation.number(0, float("inf"), whole=True)(event.audio_end_ms, "audio_end_ms")
        if event.audio_end_ms > item.audio_ms:
            raise validation.refuse(
                "invalid_value",
                f"Audio content of {item.audio_ms:.0f}ms is already shorter than {event.audio_end_ms}ms",
                "audio_end_ms",
            )
        item.truncate(event.audio_end_ms)
        self._emit(
            ev.ConversationItemTruncated,
            item_id=item.id,
            content_index=0,
            audio_end_ms=event.audio_end_ms,
        )

    # -- replies ----------------------------------------------------------------------------------------

    def reply_progressed(self, response_id: str, fact: ReplyFact) -> list[Action]:
        """The provider or the voice brought something; it is dropped where the response has ended."""
        self._responder.take(response_id, fact)
        return self._take()

    def mcp_answered(self, fact: McpFact) -> list[Action]:
        """An MCP server answered, or did not."""
        self._responder.take_mcp(fact)
        return self._take()

    # -- sending ----------------------------------------------------------------------------------------

    def _emit(self, kind: type[ev.ServerEvent], **fields: Any) -> None:
        self._out.append(SendEvent(kind(event_id=self._new_id("event"), **fields)))

    def _error(self, code: str, message: str, param: str | None, client_event_id: str | None) -> None:
        event = codec.error_event(
            self._new_id("event"),
            code=code or None,
            message=message,
            param=param,
            client_event_id=client_event_id,
        )
        self._out.append(SendEvent(event))

    def _take(self) -> list[Action]:
        out, self._out = self._out, []
        return out
