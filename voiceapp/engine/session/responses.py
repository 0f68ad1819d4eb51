"""The responses of one session: which may run, what each is made from, and how each ends. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session import fields, validation
from voiceapp.engine.session.actions import (
    AwaitIdle,
    CancelReply,
    EndIdle,
    Failed,
    Opened,
    ReplyFact,
    Speaking,
    Spoken,
    StartReply,
    TranscribeAudio,
)
from voiceapp.engine.session.config import RESPONSE
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import SessionItem, history, read_item, within
from voiceapp.engine.session.mcp.calls import HostedMcpCalls
from voiceapp.engine.session.mcp.tools import McpTools, chosen
from voiceapp.engine.session.response import EngineResponse, ReplyShape
from voiceapp.text.provider import (
    CallArguments,
    CallFinished,
    CallStarted,
    Finished,
    FunctionTool,
    HistoryItem,
    ReplyRequest,
    Said,
    TakenBack,
    TextDelta,
)
from voiceapp.tools.mcp.messages import McpCalled, McpFact, McpListed, McpNotListed
from voiceapp.types import JsonObject

_REFERENCE: Final = fields.checked(
    "response.input[item_reference]",
    {"type": validation.text(), "id": validation.item_id},
    required=["id"],
)
_MAX_AT_ONCE: Final = 8
_CONTEXT_TOKENS: Final = 28_224


class Responder:
    """At most one response writes to the conversation; others may run beside it, out of band."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._mcp_tools = McpTools(context)
        self._mcp_calls = HostedMcpCalls(context)
        self._replies: dict[str, EngineResponse] = {}
        self._main: EngineResponse | None = None
        self._due = False

    @property
    def busy(self) -> bool:
        """Whether a response is writing to the conversation."""
        return self._main is not None

    @property
    def idle(self) -> bool:
        """Whether no response is being made, in the conversation or beside it."""
        return not self._replies

    def private_items(self) -> Iterator[SessionItem]:
        """Yield the items that were given to single responses."""
        for reply in self._replies.values():
            yield from reply.history or ()

    # -- beginning --------------------------------------------------------------------------------------

    def create(self, wanted: JsonObject) -> None:
        """Obey ``response.create``; raise ``ProtocolError`` where it is wrong or comes too early."""
        wanted = RESPONSE(wanted, "response")
        shape = self._shape(wanted)
        self._check(wanted, shape)
        if shape.in_conversation and self._main is not None:
            raise validation.refuse(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._main.id}. Wait "
                "until the response is finished before creating a new one.",
                None,
            )
        if len(self._replies) >= _MAX_AT_ONCE:
            raise validation.refuse(
                "rate_limit_exceeded", f"At most {_MAX_AT_ONCE} responses may run at once.", None
            )
        self._start(shape, wanted)

    def _check(self, wanted: JsonObject, shape: ReplyShape) -> None:
        """Refuse what contradicts the session's tools or the voice that was heard already."""
        choice, tools = wanted.get("tool_choice"), wanted.get("tools", self._context.config["tools"])
        # What a server has is not known before it has answered, so only the server itself is looked for.
        key = "server_label" if isinstance(choice, dict) and choice["type"] == "mcp" else "name"
        if isinstance(choice, dict) and choice[key] not in [tool.get(key) for tool in tools]:
            raise validation.refuse(
                "invalid_value",
                f"Tool choice '{choice[key]}' not found in 'tools' parameter.",
                "response.tool_choice",
            )
        other_voice = shape.voice != self._context.config["audio"]["output"]["voice"]
        if other_voice and shape.in_conversation and self._context.items.has_spoken():
            raise validation.refuse(
                "cannot_update_voice",
                "Cannot update a conversation's voice if assistant audio is present.",
                "response.audio.output.voice",
            )

    def answer_turn(self) -> None:
        """Answer what the user just said, now or after the response that is still running."""
        if self._main is None:
            self._start(self._shape({}), {})
        else:
            self._due = True

    def preview(self, transcript: str) -> tuple[ReplyRequest, Speaking | None]:
        """Return what would be asked if the user had just said ``transcript``."""
        shape = self._shape({})
        said = (*history(self._context.items), Said("user", transcript))
        return self._request({}, shape, said), shape.speaking

    def _start(self, shape: ReplyShape, wanted: JsonObject) -> None:
        given = wanted.get("input")
        history = None if given is None else self._read_input(given)
        reply = EngineResponse(self._context, self._context.new_id("resp"), shape, wanted, history)
        self._replies[reply.id] = reply
        if shape.in_conversation:
            self._main = reply
            self._due = False
            self._context.act(EndIdle())
        reply.created()
        self._mcp_tools.want(wanted.get("tools", ()))
        self.start_waiting()

    def start_waiting(self) -> None:
        """Start the responses whose context is all in words by now, and whose own tools are known."""
        for reply in self._replies.values():
            items = list(self._context.items) if reply.history is None else reply.history
            if reply.started or any(_wordless(item) for item in items):
                continue
            if self._mcp_tools.pending(reply.wanted.get("tools", ())):
                continue
            reply.started = True
            reply.offers = self._mcp_tools.offers(self._tools(reply.wanted))
            request = self._request(reply.wanted, reply.shape, history(items))
            reply.count_input(request.instructions, items)
            self._context.act(StartReply(reply.id, request, reply.shape.speaking))

    def _shape(self, wanted: JsonObject) -> ReplyShape:
        config = self._context.config
        modalities = tuple(wanted.get("output_modalities") or config["output_modalities"])
        output = {**config["audio"]["output"], **wanted.get("audio", {}).get("output", {})}
        limit = wanted.get("max_output_tokens", config["max_output_tokens"])
        audio_format = AudioFormat.parse(output["format"])
        voice = output["voice"]["id"] if isinstance(output["voice"], dict) else output["voice"]
        spoken = Speaking(audio_format, voice, float(output["speed"]))
        return ReplyShape(
            modalities=modalities,
            speaking=spoken if "audio" in modalities else None,
            max_tokens=None if limit == "inf" else limit,
            metadata=wanted.get("metadata"),
            in_conversation=wanted.get("conversation", "auto") == "auto",
            voice=output["voice"],
            audio_format=audio_format,
        )

    def _request(self, wanted: JsonObject, shape: ReplyShape, said: tuple[HistoryItem, ...]) -> ReplyRequest:
        config = self._context.config
        functions = [
            FunctionTool(tool["name"], tool.get("description") or "", tool.get("parameters") or {})
            for tool in self._tools(wanted)
            if tool["type"] == "function"
        ]
        offers = self._mcp_tools.offers(self._tools(wanted))
        choice, tools = chosen(wanted.get("tool_choice", config["tool_choice"]), functions, offers)
        # The service drops the oldest items when the conversation outgrows its context.
        fits = _fitting(said, config["truncation"])
        return ReplyRequest(
            instructions=wanted.get("instructions") or config["instructions"],
            history=fits,
            tools=tools,
            tool_choice=choice,
            several_calls=wanted.get("parallel_tool_calls", config.get("parallel_tool_calls", True)),
            max_tokens=shape.max_tokens,
            spoken=shape.speaking is not None,
        )

    def _tools(self, wanted: JsonObject) -> list[JsonObject]:
        tools: list[JsonObject] = wanted.get("tools", self._context.config["tools"])
        return tools

    # -- items ------------------------------------------------------------------------------------------

    def _read_input(self, value: Any) -> list[SessionItem]:
        if not isinstance(value, list):
            raise validation.wrong_type("response.input", "an array", value)
        items: list[SessionItem] = []
        fresh: list[SessionItem] = []
        for index, entry in enumerate(value):
            path = f"response.input[{index}]"
            if validation.any_object(entry, path).get("type") != "item_reference":
                fresh.append(self.read_item(entry, path))
                items.append(fresh[-1])
                continue
            wanted: str = _REFERENCE(entry, path)["id"]
            found = self._context.items.find(wanted)
            if found is None:
                raise validation.refuse(
                    "invalid_value", f"Item with id '{wanted}' does not exist.", f"{path}.id"
                )
            items.append(found)
        for item in fresh:
            self.transcribe_given(item)
        return items

    def read_item(self, value: Any, path: str) -> SessionItem:
        """Check an item that the client gave."""
        return read_item(
            value,
            path,
            new_id=self._context.new_id("item"),
            call_id=self._context.new_id("call"),
            audio_format=self._context.config.input_format,
        )

    def check_answer(self, item: SessionItem) -> None:
        """Raise ``ProtocolError`` where an item answers a call or a request that there is not."""
        if item.kind == "function_call_output" and not self._context.items.knows_call(item.fields["call_id"]):
            raise validation.refuse(
                "invalid_tool_call_id",
                f"Tool call ID '{item.fields['call_id']}' not found in conversation.",
                "item.call_id",
            )
        if item.kind == "mcp_approval_response":
            self._mcp_calls.check(item)

    def take_answer(self, item: SessionItem) -> None:
        """Take an item that answers a request, as was checked."""
        if item.kind == "mcp_approval_response":
            self._mcp_calls.answer(item)

    def transcribe_given(self, item: SessionItem) -> None:
        """Have audio that came inside an item turned into words, unless the client gave them."""
        if item.role != "user" or item.plain_text():
            return
        if item.audio:
            self._context.act(TranscribeAudio(item.id, item.audio, item.audio_format))
        else:
            item.heard_text = ""

    # -- ending -----------------------------------------------------------------------------------------

    def cancel(self, response_id: str | None) -> None:
        """Obey ``response.cancel``."""
        reply = self._main if response_id is None else self._replies.get(response_id)
        if reply is None:
            raise validation.refuse(
                "response_cancel_not_active", "Cancellation failed: no active response found", None
            )
        self._stop(reply, "cancelled", {"type": "cancelled", "reason": "client_cancelled"})

    def interrupt(self) -> None:
        """The user speaks: stop the response that is being spoken."""
        if self._main is not None:
            self._stop(self._main, "cancelled", {"type": "cancelled", "reason": "turn_detected"})

    def _stop(self, reply: EngineResponse, status: str, details: JsonObject) -> None:
        self._context.act(CancelReply(reply.id))
        self._end(reply, status, details)

    def _end(self, reply: EngineResponse, status: str, details: JsonObject | None = None) -> None:
        del self._replies[reply.id]
        reply.finish(status, details)
        if reply is self._main:
            self._main = None
            turns = self._context.config.turns
            if self._due:
                self._start(self._shape({}), {})
            elif turns is not None and turns.idle_timeout_ms is not None and status == "completed":
                self._context.act(AwaitIdle(turns.idle_timeout_ms))

    # -- what the provider and the voice bring ----------------------------------------------------------

    def take(self, response_id: str, fact: ReplyFact) -> None:  # noqa: C901 - a table
        """Take one fact; what comes for a response that has ended is dropped."""
        reply = self._replies.get(response_id)
        if reply is None:
            return
        full = False
        match fact:
            case Opened():
                reply.open_message()
            case TextDelta(text=text):
                full = reply.text(text)
            case TakenBack():
                reply.take_back()
            case Spoken(audio=audio, words=words):
                full = reply.speech(audio, words)
            case CallStarted(index=index, name=name):
                reply.call(index, name)
            case CallArguments(index=index, delta=delta):
                reply.arguments(index, delta)
            case CallFinished(index=index):
                if (call := reply.call_done(index)) is not None:
                    self._mcp_calls.begin(call)
            case Finished(reason="stop"):
                self._end(reply, "completed")
            case Finished(reason=reason):
                self._end(reply, "incomplete", {"type": "incomplete", "reason": reason})
            case Failed(code=code, message=message):
                error = {"type": "server_error", "code": code, "message": message}
                self._end(reply, "failed", {"type": "failed", "error": error})
        if full:
            self._stop(reply, "incomplete", {"type": "incomplete", "reason": "max_output_tokens"})

    # -- MCP --------------------------------------------------------------------------------------------

    def list_tools(self) -> None:
        """Ask the session's MCP servers for their tools, unless they were asked before."""
        if self._context.config.converses:
            self._mcp_tools.want(self._context.config["tools"])

    def take_mcp(self, fact: McpFact) -> None:
        """Take what an MCP server brought, which is of no use where the session only listens by now."""
        if not self._context.config.converses:
            return
        match fact:
            case McpListed(item_id=item_id, tools=tools):
                self._mcp_tools.listed(item_id, tools)
            case McpNotListed(item_id=item_id, message=message):
                self._mcp_tools.failed(item_id, message)
            case McpCalled(item_id=item_id, output=output, error=error):
                self._mcp_calls.called(item_id, output, error)
        self.start_waiting()


def _fitting(said: tuple[HistoryItem, ...], truncation: str | JsonObject) -> tuple[HistoryItem, ...]:
    """Return what of a conversation whoever thinks is told; where it is too long its beginning is dropped."""
    if truncation == "disabled":
        return said
    limit, kept_tokens = _CONTEXT_TOKENS, _CONTEXT_TOKENS
    if isinstance(truncation, dict):
        limits = truncation.get("token_limits") or {}
        limit = min(limit, limits.get("post_instructions", limit))
        # So much more is dropped that the next items find room.
        kept_tokens = int(limit * truncation["retention_ratio"])
    fits = within(said, limit)
    return fits if len(fits) == len(said) else within(said, kept_tokens)


def _wordless(item: SessionItem) -> bool:
    """Whether an item is a user's speech that has not been recognised yet."""
    if item.role != "user" or item.heard_text is not None:
        return False
    return not item.plain_text() and any(part["type"] == "input_audio" for part in item.fields["content"])
