"""Who thinks and who answers chat requests in this process, by the settings."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import EMBEDDED_MODEL, VoiceConfig
from voiceapp.errors import TextRequestError
from voiceapp.text.brain.brain import Brain
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.chat.local import LocalCompletions
from voiceapp.text.chat.provider import ChatProvider
from voiceapp.text.checked_calls import CheckedCalls
from voiceapp.text.model_host.provider import ModelHostProvider
from voiceapp.text.provider import Completions, Delta, ReplyRequest, TextProvider
from voiceapp.types import Part

HOST_MODEL: Final = "model-host"


@dataclass(frozen=True, slots=True)
class TextEngine:
    """One thinker from both sides: ``provider`` for conversations, ``completions`` for chat requests."""

    provider: TextProvider
    completions: Completions


class TextEngines:
    """The thinkers of this process, each made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[bool, TextEngine] = {}

    async def get(self, config: VoiceConfig, *, embedded: bool = False) -> TextEngine:
        """Return the chat service that the settings name, or the built-in brain.

        ``embedded``: the brain, whatever the settings name.
        """
        remote = config.has_chat and not embedded
        if remote not in self._made:
            # Made in a thread: it reads a file, and a client of a chat endpoint loads certificates.
            made = await asyncio.to_thread(partial(_remote, config) if remote else _embedded)
            self._made.setdefault(remote, made)
        return self._made[remote]

    async def aclose(self) -> None:
        """Let go of all connections."""
        closing = list(self._made.values())
        self._made.clear()
        for engine in closing:
            await engine.completions.aclose()


text_engines: Final = Part[TextEngines]("text engine")


async def completions(
    config: VoiceConfig, *, model: str = "", user_id: int | None = None, thread_id: str = ""
) -> Completions:
    """Return who answers a chat request.

    ``model`` chooses: ``voiceapp-embedded`` is the built-in brain, ``model-host`` the host that the user
    connected; for any other, whoever the settings name. ``thread_id`` names the conversation to the host.
    """
    if model == HOST_MODEL and user_id is not None:
        host = host_provider(config, user_id, thread_id or secrets.token_hex(12))
        return LocalCompletions(host, HOST_MODEL, HOST_MODEL)
    return (await text_engines().get(config, embedded=model == EMBEDDED_MODEL)).completions


def host_provider(config: VoiceConfig, user_id: int, thread_id: str) -> ModelHostProvider:
    """Return the provider for one thread of a user's own model."""
    return ModelHostProvider(user_id, thread_id, config.model_host_idle_s)


def _embedded() -> TextEngine:
    brain = Brain(ProductGuide.load(), lambda: dt.datetime.now().astimezone())
    return TextEngine(brain, LocalCompletions(brain, EMBEDDED_MODEL, "embedded"))


def _remote(config: VoiceConfig) -> TextEngine:
    # Its package takes half a second to import, which only those wait for who use it.
    from voiceapp.text.chat import service as remote

    made = remote.completions(config)
    return TextEngine(ChatProvider(made), made)


@dataclass(frozen=True, slots=True)
class Thinker:
    """Who shall think for a session.

    ``user_id`` and ``thread_id`` say whose connected model is meant, and what it knows the session by.
    """

    kind: Thinking = Thinking.AS_SET
    user_id: int = 0
    thread_id: str = ""


class _NoChat:
    """Says at each reply what is missing: a session that ended at once would not get to say it."""

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        for delta in self._refuse():
            yield delta

    def _refuse(self) -> list[Delta]:
        message = "This assistant thinks by a chat service, and the settings name none."
        raise TextRequestError(message, code="chat_not_configured")

    async def aclose(self) -> None:
        """Nothing is open."""


async def provider(config: VoiceConfig, thinker: Thinker | None = None) -> TextProvider:
    """Return the provider that a session asks for, or the one that the settings name."""
    thinker = thinker or Thinker()
    if thinker.kind is Thinking.MODEL_HOST:
        return CheckedCalls(host_provider(config, thinker.user_id, thinker.thread_id))
    if thinker.kind is Thinking.CHAT and not config.has_chat:
        return _NoChat()
    embedded = thinker.kind is Thinking.EMBEDDED or not config.has_chat
    found = (await text_engines().get(config, embedded=embedded)).provider
    # The brain writes nothing that does not fit.
    return found if embedded else CheckedCalls(found)
