"""Which Realtime client events a page may send; pure.

The page belongs to the person who talks: it may speak, type, ask for an answer and stop one, and allow or
refuse a tool's call. Instructions, tools, voices and other people's messages are the operator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from voiceapp.protocol import codec, events
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.protocol.page import REALTIME_CLIENT_EVENTS
from voiceapp.types import JsonObject

MAX_TEXT_CHARS = 32_000
"""Longest typed message; about the context of the smallest Realtime models."""

MAX_TYPED_BYTES = 4 * 1024 * 1024
"""What a page may add to one conversation, all of which stays in memory while it lives: days of typing."""

ITEM_BYTES = 1024
"""What a message costs beyond its text, so that millions of empty ones are too many as well."""

APPROVAL = "mcp_approval_response"
"""The one kind of item besides messages that a page may add."""

MAX_REASON_CHARS = 1000
"""Longest reason for an answer to a question; it is read by the model."""

RESPONSE_FIELDS = frozenset({"output_modalities", "metadata"})
"""What a page may set in ``response.create``."""


@dataclass(slots=True)
class Typed:
    """How much a page has added to its conversation so far."""

    size: int = 0

    def refusal(self, event: Event | UnknownEvent) -> tuple[str, str] | None:
        """Return (code, message) where a page may not send ``event``, or no more of its kind."""
        refused = refusal(event)
        if refused is None and isinstance(event, events.ConversationItemCreate):
            size = self.size + ITEM_BYTES + len(codec.encode_fields(event.item))
            if size > MAX_TYPED_BYTES:
                return "conversation_full", "Too much was typed in this conversation. Begin a new one."
            self.size = size
        return refused


def refusal(event: Event | UnknownEvent) -> tuple[str, str] | None:
    """Return (code, message) where a page may not send ``event``."""
    kind = event.type if isinstance(event, UnknownEvent) else event.type_name()
    if kind not in REALTIME_CLIENT_EVENTS:
        if isinstance(event, UnknownEvent):
            names = ", ".join(repr(name) for name in sorted(REALTIME_CLIENT_EVENTS))
            return "invalid_value", f"Invalid value: {kind!r}. Supported values are: {names}."
        return "event_not_allowed", f"This page may not send {kind!r}."
    if isinstance(event, events.ConversationItemCreate):
        return _item_refusal(event.item)
    if isinstance(event, events.ResponseCreate):
        forbidden = (codec.to_fields(event).get("response") or {}).keys() - RESPONSE_FIELDS
        if forbidden:
            return "event_not_allowed", f"This page may not set 'response.{min(forbidden)}'."
    return None


def event_id(event: Event | UnknownEvent) -> str | None:
    """Return the id that a page gave its event, if it gave one."""
    fields = event.fields if isinstance(event, UnknownEvent) else codec.to_fields(event)
    value = fields.get("event_id")
    return value if isinstance(value, str) else None


def is_approval(event: Event | UnknownEvent) -> TypeGuard[events.ConversationItemCreate]:
    """Whether an event is the user's answer to whether a tool may be called."""
    return isinstance(event, events.ConversationItemCreate) and event.item.get("type") == APPROVAL


def _item_refusal(item: JsonObject) -> tuple[str, str] | None:
    if item.get("type") == APPROVAL:
        return _approval_refusal(item)
    if item.get("type", "message") != "message" or item.get("role") != "user":
        return "event_not_allowed", "This page may only add messages of the user."
    content = item.get("content")
    if not isinstance(content, list) or not content:
        return "missing_required_parameter", "Missing required parameter: 'item.content'."
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "input_text":
            return "event_not_allowed", "This page may only add text to a message."
        if not isinstance(part.get("text"), str):
            return "invalid_type", "Invalid type for 'item.content.text': expected a string."
    if sum(len(part["text"]) for part in content) > MAX_TEXT_CHARS:
        return "string_above_max_length", f"A message may have {MAX_TEXT_CHARS} characters at most."
    return None


def _approval_refusal(item: JsonObject) -> tuple[str, str] | None:
    if forbidden := item.keys() - {"type", "approval_request_id", "approve", "reason"}:
        return "event_not_allowed", f"This page may not set 'item.{min(forbidden)}'."
    if not isinstance(item.get("approval_request_id"), str):
        return "missing_required_parameter", "Missing required parameter: 'item.approval_request_id'."
    if not isinstance(item.get("approve"), bool):
        return "invalid_type", "Invalid type for 'item.approve': expected true or false."
    reason = item.get("reason")
    if reason is not None and not isinstance(reason, str):
        return "invalid_type", "Invalid type for 'item.reason': expected a string."
    if len(reason or "") > MAX_REASON_CHARS:
        return "string_above_max_length", f"A reason may have {MAX_REASON_CHARS} characters at most."
    return None
