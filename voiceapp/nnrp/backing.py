"""What stands behind the addresses of the profile: who may come in, who answers, and who pays."""

from __future__ import annotations

from typing import Any, Final, Protocol

from voiceapp.config import voice_config
from voiceapp.errors import TextEngineError
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.text import providers
from voiceapp.text.provider import Completions
from voiceapp.types import JsonObject

DEFAULT_MODEL: Final = "default"
"""A request must name a model; this names whichever the settings do."""
FAILING_MODEL: Final = "backend-error"
"""Model that always fails, where faults may be ordered."""


class Backing(Protocol):
    """What stands behind ``/nnrp`` and ``/v1/events``: who may come in, who answers, and who pays."""

    async def admit(self, scope: dict[str, Any]) -> TokenHolder | None:
        """Return whose token a connection brings; raise ``StoreUnavailable`` where nobody can tell."""

    async def engine(self, holder: TokenHolder, body: JsonObject) -> Completions:
        """Return who answers a request; raise ``TextEngineError`` where nobody does."""

    async def charge(self, holder: TokenHolder, provider: str, tokens_in: int, tokens_out: int) -> None:
        """Keep what a request used; never raises."""


class TokenBacking:
    """API tokens open it, the text engine answers, and the token's quota pays."""

    async def admit(self, scope: dict[str, Any]) -> TokenHolder | None:
        """See ``Backing``."""
        return await tokens.holder_of(scope)

    async def engine(self, holder: TokenHolder, body: JsonObject) -> Completions:
        """See ``Backing``."""
        if body["model"] == FAILING_MODEL and voice_config().engine_faults not in ("", "0"):
            raise TextEngineError("The model failed, as ordered.")
        return await providers.completions(voice_config(), model=body["model"], user_id=holder.user_id)

    async def charge(self, holder: TokenHolder, provider: str, tokens_in: int, tokens_out: int) -> None:
        """See ``Backing``."""
        await tokens.charge(holder, provider, tokens_in, tokens_out)
