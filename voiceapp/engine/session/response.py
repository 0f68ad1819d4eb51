"""One response of the engine: its items as they grow, the events that tell of them, and its usage. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session.actions import Speaking
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import SessionItem, TimedWord
from voiceapp.engine.session.mcp.calls import HostedMcpCall
from voiceapp.engine.session.mcp.tools import Offer
from voiceapp.protocol import events as ev
from voiceapp.text.provider import CHARACTERS_PER_TOKEN, text_tokens
from voiceapp.types import JsonObject

"""``emit(event_class, **fields)`` sends an event with an id of its own."""

_MS_PER_INPUT_TOKEN: Final = 100
_MS_PER_OUTPUT_TOKEN: Final = 50


def audio_tokens(duration_ms: float, *, spoken: bool) -> int:
    """Return how many tokens audio is: one per 100 ms heard, one per 50 ms spoken."""
    return math.ceil(duration_ms / (_MS_PER_OUTPUT_TOKEN if spoken else _MS_PER_INPUT_TOKEN))


@dataclass(slots=True)
class _Output:
    item: SessionItem
    index: int
    open: bool = True
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class ReplyShape:
    """What a response was asked to be."""

    modalities: tuple[str, ...]
    speaking: Speaking | None
    max_tokens: int | None
    metadata: JsonObject | None
    in_conversation: bool
    voice: Any
    audio_format: AudioFormat


class EngineResponse:
    """A response in progress. Its methods take what the provider and the voice bring and emit the events."""

    def __init__(
        self,
        context: Context,
        reply_id: str,
        shape: ReplyShape,
        wanted: JsonObject,
        history: list[SessionItem] | None,
    ) -> None:
        self.id = reply_id
        self.shape = shape
        self.wanted = wanted
        self.history = history
        self.started = False
        self.offers: dict[str, Offer] = {}
        self._context = context
        self._conversation_id = context.conversation_id if shape.in_conversation else None
        self._outputs: list[_Output] = []
        self._calls: dict[int, _Output] = {}
        self._message: _Output | None = None
        self._text_tokens = 0
        self._audio_ms = 0.0
        self._input: JsonObject = {"text_tokens": 0, "audio_tokens": 0}

    # -- growing ----------------------------------------------------------------------------------------

    def created(self) -> None:
        """Tell that the response exists."""
        self._context.emit(ev.ResponseCreated, response=self._snapshot("in_progress", None, None))

    def count_input(self, instructions: str, items: Iterable[SessionItem]) -> None:
        """Count what the response is made from."""
        texts, heard_ms, spoken_ms = text_tokens(instructions), 0.0, 0.0
        for item in items:
            if item.audio_ms and item.role == "user":
                heard_ms += item.audio_ms
            elif item.audio_ms:
                spoken_ms += item.audio_ms
            else:
                fields = item.fields
                texts += text_tokens(
                    item.plain_text() or fields.get("arguments") or fields.get("output") or ""
                )
        audio = audio_tokens(heard_ms, spoken=False) + audio_tokens(spoken_ms, spoken=True)
        self._input = {"text_tokens": texts, "audio_tokens": audio}

    def open_message(self) -> _Output:
        """Begin the message, unless it has begun."""
        if self._message is not None:
            return self._message
        output = self._add(
            {"id": self._context.new_id("item"), "type": "message", "status": "in_progress",
             "role": "assistant", "content": []}
        )  # fmt: skip
        self._message = output
        spoken = self.shape.speaking is not None
        part = {"type": "audio", "transcript": ""} if spoken else {"type": "text", "text": ""}
        self._context.emit(ev.ResponseContentPartAdded, **self._place(output), part=part)
        kept = {"type": "output_audio", "transcript": ""} if spoken else {"type": "output_text", "text": ""}
        output.item.fields["content"].append(kept)
        return output

    def text(self, delta: str) -> bool:
        """Add text to the message; return whether the token limit was reached."""
        output = self.open_message()
        room = self._room()
        part = output.item.fields["content"][0]
        if room is not None:
            delta = delta[: max(0, room * CHARACTERS_PER_TOKEN)]
        if delta:
            part["text"] += delta
            self._text_tokens = text_tokens(part["text"])
            self._context.emit(ev.ResponseOutputTextDelta, **self._place(output), delta=delta)
        return room is not None and self._room() == 0

    def take_back(self) -> None:
        """Forget the text so far: it was no words for the client, who is told so by the text's end."""
        if self._message is not None and self.shape.speaking is None:
            self._message.item.fields["content"][0]["text"] = ""

    def speech(self, audio: bytes, words: Iterable[TimedWord]) -> bool:
        """Add audio and the words that begin in it; return whether the token limit was reached."""
        output = self.open_message()
        item = output.item
        if item.cut or not output.open:
            return False
        said = list(words)
        transcript = "".join(word.text for word in said)
        audio_format = self.shape.audio_format
        duration_ms = audio_format.duration_ms(len(audio))
        room = self._room()
        cost = text_tokens(transcript) + audio_tokens(duration_ms, spoken=True)
        if room is not None and cost > room:
            return True
        item.words += said
        item.fields["content"][0]["transcript"] += transcript
        self._text_tokens += text_tokens(transcript)
        self._audio_ms += duration_ms
        if transcript:
            self._context.emit(ev.ResponseOutputAudioTranscriptDelta, **self._place(output), delta=transcript)
        if audio:
            self._context.items.keep_audio(item, audio, audio_format)
            self._context.emit(ev.ResponseOutputAudioDelta, **self._place(output), delta=audio)
        return False

    def call(self, index: int, name: str) -> None:
        """Begin a call of a function or of an MCP server's tool."""
        if (offer := self.offers.get(name)) is not None:
            self._calls[index] = self._add(
                {"id": self._context.new_id("mcp"), "type": "mcp_call", "status": "in_progress",
                 "server_label": offer.server.label, "name": offer.tool.name, "arguments": "",
                 "approval_request_id": None, "output": None, "error": None}
            )  # fmt: skip
            self._calls[index].offer = offer
            return
        self._calls[index] = self._add(
            {"id": self._context.new_id("item"), "type": "function_call", "status": "in_progress",
             "call_id": self._context.new_id("call"), "name": name, "arguments": ""}
        )  # fmt: skip

    def arguments(self, index: int, delta: str) -> None:
        """Add to a call's arguments."""
        output = self._calls[index]
        fields = output.item.fields
        fields["arguments"] += delta
        self._text_tokens += text_tokens(delta)
        place = {"response_id": self.id, "item_id": output.item.id, "output_index": output.index}
        if output.offer is not None:
            self._context.emit(ev.ResponseMcpCallArgumentsDelta, **place, delta=delta)
            return
        self._context.emit(
            ev.ResponseFunctionCallArgumentsDelta, **place, call_id=fields["call_id"], delta=delta
        )

    def call_done(self, index: int) -> HostedMcpCall | None:
        """End a function call, or give away the call of an MCP server's tool, which begins only now."""
        output = self._calls[index]
        if output.offer is None:
            self._close(output, "completed")
            return None
        output.open = False
        self._mcp_arguments_done(output)
        if output.offer.needs_approval:
            self._ask_approval(output)
        return HostedMcpCall(output.item, output.offer, self.id, output.index, self.shape.in_conversation)

    def _mcp_arguments_done(self, output: _Output) -> None:
        self._context.emit(
            ev.ResponseMcpCallArgumentsDone,
            response_id=self.id,
            item_id=output.item.id,
            output_index=output.index,
            arguments=output.item.fields["arguments"],
        )

    def _ask_approval(self, output: _Output) -> None:
        call = output.item.fields
        call["approval_request_id"] = self._context.new_id("mcpr")
        request = self._add(
            {"id": call["approval_request_id"], "type": "mcp_approval_request",
             "server_label": call["server_label"], "name": call["name"], "arguments": call["arguments"]}
        )  # fmt: skip
        request.open = False
        self._tell_done(request)

    # -- ending -----------------------------------------------------------------------------------------

    def finish(self, status: str, details: JsonObject | None) -> None:
        """Close what is open and tell that the response is done.

        ``status`` is ``completed``, ``cancelled``, ``incomplete`` or ``failed``.
        """
        for output in self._outputs:
            self._close(output, "completed" if status == "completed" else "incomplete")
        self._context.emit(ev.ResponseDone, response=self._snapshot(status, details, self._usage()))

    def _close(self, output: _Output, status: str) -> None:
        if not output.open:
            return
        output.open = False
        fields = output.item.fields
        # The call of a server's tool that ends here was never made.
        fields["status"] = status if output.offer is None else "incomplete"
        if output.offer is not None:
            self._mcp_arguments_done(output)
        elif output.item.kind == "function_call":
            self._context.emit(
                ev.ResponseFunctionCallArgumentsDone,
                response_id=self.id,
                item_id=output.item.id,
                output_index=output.index,
                call_id=fields["call_id"],
                name=fields["name"],
                arguments=fields["arguments"],
            )
        else:
            self._close_part(output)
        self._tell_done(output)

    def _tell_done(self, output: _Output) -> None:
        if self.shape.in_conversation:
            self._context.emit(
                ev.ConversationItemDone,
                previous_item_id=self._context.items.previous_id(output.item.id),
                item=output.item.snapshot(),
            )
        self._context.emit(
            ev.ResponseOutputItemDone,
            response_id=self.id,
            output_index=output.index,
            item=output.item.snapshot(),
        )

    def _close_part(self, output: _Output) -> None:
        place = self._place(output)
        part = output.item.fields["content"][0]
        if part["type"] == "output_audio":
            self._context.emit(ev.ResponseOutputAudioDone, **place)
            self._context.emit(ev.ResponseOutputAudioTranscriptDone, **place, transcript=part["transcript"])
            shown = {"type": "audio", "transcript": part["transcript"]}
        else:
            self._context.emit(ev.ResponseOutputTextDone, **place, text=part["text"])
            shown = {"type": "text", "text": part["text"]}
        self._context.emit(ev.ResponseContentPartDone, **place, part=shown)

    # -- parts ------------------------------------------------------------------------------------------

    def _add(self, fields: JsonObject) -> _Output:
        output = _Output(SessionItem(fields), len(self._outputs))
        self._outputs.append(output)
        self._context.emit(
            ev.ResponseOutputItemAdded,
            response_id=self.id,
            output_index=output.index,
            item=output.item.snapshot(),
        )
        if self.shape.in_conversation:
            previous = self._context.items.last_id
            self._context.items.insert(output.item, None)
            self._context.emit(
                ev.ConversationItemAdded, previous_item_id=previous, item=output.item.snapshot()
            )
        return output

    def _place(self, output: _Output) -> JsonObject:
        return {
            "response_id": self.id,
            "item_id": output.item.id,
            "output_index": output.index,
            "content_index": 0,
        }

    def _room(self) -> int | None:
        if self.shape.max_tokens is None:
            return None
        used = self._text_tokens + audio_tokens(self._audio_ms, spoken=True)
        return max(0, self.shape.max_tokens - used)

    def _usage(self) -> JsonObject:
        spoken = audio_tokens(self._audio_ms, spoken=True)
        input_tokens = sum(self._input.values())
        output_tokens = self._text_tokens + spoken
        return {
            "total_tokens": input_tokens + output_tokens,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "input_token_details": {
                **self._input,
                "image_tokens": 0,
                "cached_tokens": 0,
                "cached_tokens_details": {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0},
            },
            "output_token_details": {"text_tokens": self._text_tokens, "audio_tokens": spoken},
        }

    def _snapshot(self, status: str, details: JsonObject | None, usage: JsonObject | None) -> JsonObject:
        shape = self.shape
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,
            "output": [output.item.snapshot() for output in self._outputs],
            "conversation_id": self._conversation_id,
            "output_modalities": list(shape.modalities),
            "max_output_tokens": "inf" if shape.max_tokens is None else shape.max_tokens,
            "audio": {"output": {"format": shape.audio_format.to_ga(), "voice": shape.voice}},
            "usage": usage,
            "metadata": shape.metadata,
        }
