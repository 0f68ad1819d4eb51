"""What the parts of one session share; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from voiceapp.engine.session.actions import Action
from voiceapp.engine.session.config import SessionConfig
from voiceapp.engine.session.items import ConversationItems

Emit: TypeAlias = Callable[..., None]
"""Sends one server event: its class, and its fields but for ``event_id``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """See the module. ``new_id`` makes an id with a prefix, ``act`` adds to what is to be done."""

    config: SessionConfig
    items: ConversationItems
    conversation_id: str
    new_id: Callable[[str], str]
    emit: Emit
    act: Callable[[Action], None]
