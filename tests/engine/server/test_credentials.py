"""Who may open a session: what a request offers, and whether it opens anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from voiceapp.engine.server.credentials import admit, holds_key, offered
from voiceapp.errors import Refusal


@pytest.mark.parametrize(
    ("headers", "query", "subprotocols", "given"),
    [
        ({}, {}, (), []),
        ({"api-key": "a"}, {}, (), ["a"]),
        ({}, {"api-key": "b"}, (), ["b"]),
        ({"authorization": "Bearer c"}, {}, (), ["c"]),
        ({"authorization": "Basic c"}, {}, (), []),
        ({}, {}, ("realtime", "openai-insecure-api-key.d", "openai-beta.realtime-v1"), ["d"]),
        ({"api-key": "a", "authorization": "Bearer c"}, {"api-key": "b"}, (), ["a", "b", "c"]),
    ],
)
def test_every_credential_of_a_request_is_found(
    headers: dict[str, str], query: dict[str, str], subprotocols: tuple[str, ...], given: list[str]
) -> None:
    assert offered(headers, query, subprotocols) == given


@pytest.mark.parametrize(
    ("key", "given", "holds"),
    [("k", ["x", "k"], True), ("k", ["K"], False), ("k", [], False), ("", [""], False), ("k", ["é"], False)],
)
def test_only_the_engines_key_is_the_key(key: str, given: list[str], holds: bool, settings: Any) -> None:
    settings.VOICE = replace(settings.VOICE, engine_api_key=key)
    assert holds_key(given) is holds


@pytest.mark.parametrize(
    ("given", "code"),
    [([], "missing_api_key"), (["wrong"], "invalid_api_key"), (["ek_unknown"], "invalid_api_key")],
)
async def test_others_stay_outside_and_are_told_what_is_missing(given: list[str], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        await admit(given)
    assert refused.value.code == code
