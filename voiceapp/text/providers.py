"""Who thinks and who answers chat requests in this process, by the settings."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from dataclasses import dataclass
from typing import Final

from voiceapp.config import EMBEDDED_MODEL, VoiceConfig
from voiceapp.text.brain import Brain
from voiceapp.text.chat import ChatProvider
from voiceapp.text.completions import Completions
from voiceapp.text.local_completions import LocalCompletions
from voiceapp.text.model_host import ModelHostProvider
from voiceapp.text.product import ProductGuide
from voiceapp.text.provider import TextProvider

HOST_MODEL: Final = "model-host"


@dataclass(frozen=True, slots=True)
class TextEngine:
    """One thinker from both sides: ``provider`` for conversations, ``completions`` for chat requests."""

    provider: TextProvider
    completions: Completions


_engines: dict[bool, TextEngine] = {}


async def text_engine(config: VoiceConfig, *, embedded: bool = False) -> TextEngine:
    """Return the chat service that the settings name, or the built-in brain, made once in this process.

    ``embedded``: the brain, whatever the settings name.
    """
    remote = config.has_chat and not embedded
    if remote not in _engines:
        # Made in a thread: it reads a file, and a client of a chat endpoint loads certificates.
        made = await asyncio.to_thread(_remote if remote else _embedded, config)
        _engines.setdefault(remote, made)
    return _engines[remote]


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
    return (await text_engine(config, embedded=model == EMBEDDED_MODEL)).completions


def host_provider(config: VoiceConfig, user_id: int, thread_id: str) -> ModelHostProvider:
    """Return the provider for one thread of a user's own model."""
    return ModelHostProvider(user_id, thread_id, config.model_host_idle_s)


async def aclose() -> None:
    """Let go of all connections."""
    closing = list(_engines.values())
    _engines.clear()
    for engine in closing:
        await engine.completions.aclose()


def _embedded(config: VoiceConfig) -> TextEngine:
    brain = Brain(ProductGuide.load(), lambda: dt.datetime.now().astimezone())
    return TextEngine(brain, LocalCompletions(brain, EMBEDDED_MODEL, "embedded"))


def _remote(config: VoiceConfig) -> TextEngine:
    # Its package takes half a second to import, which only those wait for who use it.
    from voiceapp.text import remote

    made = remote.completions(config)
    return TextEngine(ChatProvider(made), made)
