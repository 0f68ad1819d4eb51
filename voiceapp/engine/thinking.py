"""Who thinks for the engine's sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from voiceapp.config import Thinking, VoiceConfig
from voiceapp.errors import TextEngineError
from voiceapp.text import providers
from voiceapp.text.checked_calls import CheckedCalls
from voiceapp.text.provider import Delta, ReplyRequest, TextProvider


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
        told = "This assistant thinks by a chat service, and the settings name none."
        raise TextEngineError(told, code="chat_not_configured")

    async def aclose(self) -> None:
        """Nothing is open."""


async def provider(config: VoiceConfig, thinker: Thinker | None = None) -> TextProvider:
    """Return the provider that a session asks for, or the one that the settings name."""
    thinker = thinker or Thinker()
    if thinker.kind is Thinking.MODEL_HOST:
        return CheckedCalls(providers.host_provider(config, thinker.user_id, thinker.thread_id))
    if thinker.kind is Thinking.CHAT and not config.has_chat:
        return _NoChat()
    embedded = thinker.kind is Thinking.EMBEDDED or not config.has_chat
    found = (await providers.text_engine(config, embedded=embedded)).provider
    # The brain writes nothing that does not fit.
    return found if embedded else CheckedCalls(found)


async def aclose() -> None:
    """Let go of the provider's connections."""
    await providers.aclose()
