"""Which provider thinks, by the settings."""

from __future__ import annotations

import datetime as dt

from voiceapp.config import VoiceConfig
from voiceapp.text.brain import Brain
from voiceapp.text.chat import ChatProvider
from voiceapp.text.product import ProductGuide
from voiceapp.text.provider import TextProvider


def provider_for(config: VoiceConfig) -> TextProvider:
    """Return the chat endpoint that the settings name, or the built-in brain. Reads a file."""
    if config.text_base_url:
        return ChatProvider(config.text_base_url, config.text_api_key, config.text_model)
    return Brain(ProductGuide.load(), lambda: dt.datetime.now().astimezone())
