"""The text provider of this process, made once from the settings."""

from __future__ import annotations

import asyncio

from voiceapp.config import VoiceConfig
from voiceapp.text.provider import TextProvider
from voiceapp.text.providers import provider_for

_provider: TextProvider | None = None


async def provider(config: VoiceConfig) -> TextProvider:
    """Return the provider that the settings name."""
    global _provider
    if _provider is None:
        # Made in a thread: it reads a file, and a client of a chat endpoint loads certificates.
        made = await asyncio.to_thread(provider_for, config)
        if _provider is None:
            _provider = made
    return _provider


async def aclose() -> None:
    """Let go of the provider's connections."""
    global _provider
    closing, _provider = _provider, None
    if closing is not None:
        await closing.aclose()
