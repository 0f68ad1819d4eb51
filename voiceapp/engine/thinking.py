"""Who thinks for the engine's sessions."""

from __future__ import annotations

from voiceapp.config import VoiceConfig
from voiceapp.text import providers
from voiceapp.text.provider import TextProvider


async def provider(config: VoiceConfig) -> TextProvider:
    """Return the provider that the settings name."""
    return (await providers.text_engine(config)).provider


async def aclose() -> None:
    """Let go of the provider's connections."""
    await providers.aclose()
