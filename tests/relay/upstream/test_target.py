"""Which Realtime service a session talks to: its address, its credentials, its words for failure."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import UpstreamKind, VoiceConfig
from voiceapp.errors import ConfigurationError
from voiceapp.outbound.entra import credential
from voiceapp.relay.upstream.target import SILENCE_S, choose, refusal, thinking
from voiceapp.text.chat import service
from voiceapp.text.model_host import link


def config(**fields: Any) -> VoiceConfig:
    changed: VoiceConfig = replace(settings.VOICE, **fields)
    return changed


AZURE = {"azure_endpoint": "https://r.openai.azure.com/openai/v1", "azure_deployment": "my voice",
         "azure_api_key": "key"}  # fmt: skip


def test_those_who_run_the_site_are_told_where_it_is_and_nothing_secret() -> None:
    azure = choose(config(**AZURE), None).whereabouts
    assert "r.openai.azure.com was called, as AZURE_OPENAI_ENDPOINT says." in azure
    own = choose(config(azure_endpoint="", engine_api_key="k3y"), ("127.0.0.1", 8123)).whereabouts
    assert "127.0.0.1:8123 was called, as VOICEAPP_ENGINE_URL says" in own
    other = choose(config(azure_endpoint="", engine_url="ws://user:pass@engine.example/x"), None).whereabouts
    assert "engine.example was called" in other
    for said in (azure, own, other):
        assert not any(secret in said for secret in ("key was", "k3y", "pass", "user:", "my voice"))


@pytest.mark.parametrize(
    ("version", "kind", "url"),
    [
        ("", UpstreamKind.AZURE_GA, "wss://r.openai.azure.com/openai/v1/realtime?model=my%20voice"),
        ("2024-10-01", UpstreamKind.AZURE_PREVIEW,
         "wss://r.openai.azure.com/openai/realtime?api-version=2024-10-01&deployment=my%20voice"),
    ],
)  # fmt: skip
async def test_azure_is_reached_at_both_of_its_addresses(version: str, kind: UpstreamKind, url: str) -> None:
    target = choose(config(**AZURE, azure_api_version=version), None)
    assert (target.kind, target.url, target.captions) == (kind, url, False)
    assert await target.headers() == {"api-key": "key"}
    assert "key" not in repr(target).replace("api_key", "")
    with_captions = choose(config(**AZURE, azure_transcription_deployment="whisper"), None)
    assert (with_captions.captions, with_captions.transcription_model) == (True, "whisper")


async def test_without_a_key_each_connection_has_a_fresh_token() -> None:
    class Source:
        def get_token(self, *scopes: str) -> Any:
            return SimpleNamespace(token=f"for {scopes[0]}")

    target = choose(config(**{**AZURE, "azure_api_key": ""}, azure_entra_scope="scope"), None)
    with credential.use(Source()):
        assert await target.headers() == {"Authorization": "Bearer for scope"}


@pytest.mark.parametrize(
    ("engine_url", "own", "base"),
    [
        ("", ("127.0.0.1", 8000), "ws://127.0.0.1:8000"),
        ("", ("0.0.0.0", 8000), "ws://127.0.0.1:8000"),
        ("", ("::", 8000), "ws://[::1]:8000"),
        ("", ("fe80::1", 1), "ws://[fe80::1]:1"),
        ("https://engine.example/openai", None, "wss://engine.example"),
    ],
)
def test_the_embedded_engine_is_on_this_server_unless_another_is_named(
    engine_url: str, own: tuple[str, int] | None, base: str
) -> None:
    target = choose(config(azure_endpoint="", engine_url=engine_url), own)
    assert target.kind is UpstreamKind.EMBEDDED
    assert target.url.startswith(f"{base}/openai/v1/realtime?model=")
    assert target.captions


def test_a_server_that_does_not_know_its_address_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="VOICEAPP_ENGINE_URL"):
        choose(config(azure_endpoint="", engine_url=""), None)


def test_who_thinks_is_told_to_the_engine_with_the_user_and_the_thread() -> None:
    target = thinking(config(**AZURE), ("h", 1), Thinking.MODEL_HOST, user_id=7, thread_id="t")
    assert target.kind is UpstreamKind.EMBEDDED
    assert target.url.endswith("&thinking=model-host&user=7&thread=t")


@pytest.mark.parametrize(
    ("status", "kind", "code", "named"),
    [
        (401, UpstreamKind.AZURE_GA, "upstream_unauthorized", "AZURE_OPENAI_API_KEY"),
        (403, UpstreamKind.EMBEDDED, "upstream_unauthorized", "VOICEAPP_ENGINE_API_KEY"),
        (404, UpstreamKind.AZURE_GA, "upstream_not_found", "AZURE_OPENAI_API_VERSION"),
        (404, UpstreamKind.AZURE_PREVIEW, "upstream_not_found", "retired"),
        (404, UpstreamKind.EMBEDDED, "upstream_not_found", "VOICEAPP_ENGINE_URL"),
        (429, UpstreamKind.AZURE_GA, "upstream_busy", "soon"),
        (400, UpstreamKind.AZURE_GA, "upstream_bad_request", "realtime model"),
        (503, UpstreamKind.AZURE_GA, "upstream_unavailable", "HTTP 503"),
    ],
)
def test_a_refusal_says_what_to_check(status: int, kind: UpstreamKind, code: str, named: str) -> None:
    error = refusal(status, kind)
    assert error.code == code
    assert named in error.message


@pytest.mark.parametrize("idle_s", [1.0, 300.0, 3600.0])
@pytest.mark.parametrize("kind", [Thinking.MODEL_HOST, Thinking.CHAT, Thinking.EMBEDDED])
def test_whoever_thinks_behind_the_engine_may_take_its_time(kind: Thinking, idle_s: float) -> None:
    """The engine ends a response by the limits of its own; the relay must not be the first to give up."""
    options = config(model_host_idle_s=idle_s)
    target = thinking(options, ("127.0.0.1", 8000), kind, user_id=1, thread_id="t")
    slowest_s = max(link.ACCEPT_S + idle_s, service._CONNECT_TIMEOUT_S + service._TIMEOUT_S)
    assert target.silence_s > slowest_s
    assert choose(config(**AZURE), None).silence_s == SILENCE_S
