"""Who may open a session: holders of the engine's key, and of secrets made with it."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from voiceapp.config import voice_config
from voiceapp.engine.server.client_secrets import PREFIX, ClientSecrets
from voiceapp.errors import Refusal
from voiceapp.serving.scope import bearer_token

# Browsers cannot set headers; the SDKs for them put the key among the subprotocols.
_SUBPROTOCOL: Final = "openai-insecure-api-key."
ADVICE: Final = (
    "Access denied: give the engine's key as api-key header, as Bearer token or as api-key parameter."
)


def refusal(given: Iterable[str]) -> Refusal:
    """Return what is answered to whoever gave this; the codes are the service's."""
    code = "invalid_api_key" if any(given) else "missing_api_key"
    return Refusal(code, ADVICE, status=401, close_code=4001)


def offered(
    headers: Mapping[str, str], query: Mapping[str, str], subprotocols: Iterable[str] = ()
) -> list[str]:
    """Return every credential of a request; header names are in lower case."""
    given = [headers.get("api-key", ""), query.get("api-key", ""), bearer_token(headers)]
    given += [name.removeprefix(_SUBPROTOCOL) for name in subprotocols if name.startswith(_SUBPROTOCOL)]
    return [one for one in given if one]


def holds_key(given: Iterable[str]) -> bool:
    """Whether the engine's key is among what was given."""
    key = voice_config().engine_api_key.encode()
    matches = [hmac.compare_digest(one.encode(), key) for one in given]
    return bool(key) and any(matches)


async def admit(given: list[str]) -> dict[str, Any] | None:
    """Return the session that a secret brings, ``None`` for the key; raise ``Refusal`` for neither."""
    if holds_key(given):
        return None
    kept = ClientSecrets(voice_config().data_dir)
    for value in given:
        if value.startswith(PREFIX):
            session = await asyncio.to_thread(kept.find, value, time.time())
            if session is not None:
                return session
    raise refusal(given)
