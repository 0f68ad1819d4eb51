"""A conversation that is configured, and what a service says to it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count
from typing import Any, TypeVar

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import Save, SendBrowser, SendUpstream
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ItemRecord, ResponseRecord, ToolCallRecord
from voiceapp.protocol import codec
from voiceapp.types import JsonObject

Kept = TypeVar("Kept", ItemRecord, ResponseRecord, ToolCallRecord)


def saved(actions: Iterable[Any], kind: type[Kept]) -> list[Kept]:
    return [a.record for a in actions if isinstance(a, Save) and isinstance(a.record, kind)]


def conversation() -> Conversation:
    talk = Conversation(AssistantConfig(slug="a", name="A"), (f"id_{n}" for n in count()))
    tell(talk, {"type": "session.updated", "session": {}})
    return talk


def tell(talk: Conversation, event: JsonObject, now: float = 0) -> list[object]:
    fields = {"event_id": "e", **event}
    return list(talk.receive_server(codec.server_event(fields), "{}", now))


def upstream(actions: Iterable[object]) -> list[JsonObject]:
    return [action.fields for action in actions if isinstance(action, SendUpstream)]


def shown(actions: Iterable[object]) -> list[JsonObject]:
    """Return what the page is sent as text."""
    return [json.loads(action.text) for action in actions if isinstance(action, SendBrowser)]
