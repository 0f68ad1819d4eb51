"""Who thinks and who answers chat requests in this process, by the settings."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import openai

from voiceapp import entra
from voiceapp.config import VoiceConfig
from voiceapp.text.brain import Brain
from voiceapp.text.chat import ChatProvider
from voiceapp.text.completions import Completions, RemoteCompletions, client_options
from voiceapp.text.local_completions import LocalCompletions
from voiceapp.text.model_host import ModelHostProvider
from voiceapp.text.product import ProductGuide
from voiceapp.text.provider import TextProvider

EMBEDDED_MODEL: Final = "voiceapp-embedded"
HOST_MODEL: Final = "model-host"
# Without a key the client refuses to start; local servers want none.
_NO_KEY: Final = "none"


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
    if config.text_base_url:
        client = openai.AsyncOpenAI(
            base_url=config.text_base_url, api_key=config.text_api_key or _NO_KEY, **client_options()
        )
        made = RemoteCompletions(client, config.text_model, "compatible")
    else:
        made = RemoteCompletions(azure_client(config), config.azure_chat_deployment, "azure")
    return TextEngine(ChatProvider(made), made)


def azure_client(config: VoiceConfig) -> openai.AsyncOpenAI:
    """Return a client for the resource's v1 address, or for the dated one where a version is set.

    A key goes as ``api-key``; without one, Microsoft Entra ID gives a fresh token for each request.
    """
    address = urlsplit(config.azure_endpoint)
    scheme = {"wss": "https", "ws": "http"}.get(address.scheme, address.scheme)
    base = f"{scheme}://{address.netloc}{address.path.split('/openai', 1)[0].rstrip('/')}"
    token = _tokens(config.azure_entra_scope)
    if config.azure_chat_api_version:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=base,
            api_version=config.azure_chat_api_version,
            azure_deployment=config.azure_chat_deployment,
            **(
                {"api_key": config.azure_api_key}
                if config.azure_api_key
                else {"azure_ad_token_provider": token}
            ),
            **client_options(),
        )
    headers = {"api-key": config.azure_api_key} if config.azure_api_key else None
    return openai.AsyncOpenAI(
        base_url=f"{base}/openai/v1",
        api_key=config.azure_api_key or token,
        default_headers=headers,
        **client_options(),
    )


def _tokens(scope: str) -> Callable[[], Awaitable[str]]:
    async def token() -> str:
        return await entra.token(scope)

    return token
