"""Which Realtime service a session talks to: its address, its credentials, its words for failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import EMBEDDED_MODEL, UpstreamKind, VoiceConfig
from voiceapp.errors import ConfigurationError, UpstreamRefused
from voiceapp.outbound import entra
from voiceapp.outbound.addresses import service_base

SILENCE_S: Final = 30.0
"""A Realtime service thinks for some seconds; what it says nothing of for longer has no end any more."""
ENGINE_SILENCE_S: Final = 90.0
"""The embedded engine ends every response itself; a chat service behind it may take 70 s to begin."""


@dataclass(frozen=True)
class Target:
    """One Realtime service, ready to be dialled."""

    kind: UpstreamKind
    url: str
    api_key: str = field(repr=False, default="")
    entra_scope: str = ""
    transcription_model: str = ""
    captions: bool = True
    silence_s: float = SILENCE_S
    """How long nothing may come of a response before it counts as lost."""

    @property
    def whereabouts(self) -> str:
        """Say to those who run the site which host is called, and by which setting; nothing secret."""
        address = urlsplit(self.url)
        host = f"{address.hostname}:{address.port}" if address.port else address.hostname
        if self.kind is UpstreamKind.EMBEDDED:
            return f"For administrators: {host} was called, as VOICEAPP_ENGINE_URL says; empty, this server."
        return f"For administrators: {host} was called, as AZURE_OPENAI_ENDPOINT says."

    async def headers(self) -> dict[str, str]:
        """Return the credentials of one connection; a token is fetched anew, off the event loop."""
        if self.api_key:
            return {"api-key": self.api_key}
        return {"Authorization": f"Bearer {await entra.token(self.entra_scope)}"}


def choose(config: VoiceConfig, own_address: tuple[str, int] | None) -> Target:
    """Return the service that the settings choose.

    ``own_address`` is where this server listens; the embedded engine is reached there unless
    ``VOICEAPP_ENGINE_URL`` names another. Raises ``ConfigurationError`` where neither is known.
    """
    kind = config.upstream_kind
    if kind is UpstreamKind.EMBEDDED:
        return _embedded(config, own_address, {})
    base = service_base(config.azure_endpoint, websocket=True)
    deployment = quote(config.azure_deployment, safe="")
    if kind is UpstreamKind.AZURE_PREVIEW:
        version = quote(config.azure_api_version, safe="")
        url = f"{base}/openai/realtime?api-version={version}&deployment={deployment}"
    else:
        url = f"{base}/openai/v1/realtime?model={deployment}"
    return Target(
        kind,
        url,
        config.azure_api_key,
        entra_scope=config.azure_entra_scope,
        transcription_model=config.azure_transcription_deployment,
        captions=bool(config.azure_transcription_deployment),
    )


def thinking(
    config: VoiceConfig, own_address: tuple[str, int] | None, kind: Thinking, *, user_id: int, thread_id: str
) -> Target:
    """Return the embedded engine with a certain ``Thinking``; a user's own model needs to know for whom."""
    owner = {"thinking": kind.value, "user": str(user_id), "thread": thread_id}
    return _embedded(config, own_address, owner)


def _embedded(config: VoiceConfig, own_address: tuple[str, int] | None, options: dict[str, str]) -> Target:
    query = urlencode({"model": EMBEDDED_MODEL, **options})
    return Target(
        UpstreamKind.EMBEDDED,
        f"{_engine_base(config, own_address)}/openai/v1/realtime?{query}",
        config.engine_api_key,
        transcription_model="moonshine-tiny-en",
        # A user's own model may be silent for as long as the settings allow, after it has accepted.
        silence_s=ENGINE_SILENCE_S + config.model_host_idle_s,
    )


def _engine_base(config: VoiceConfig, own_address: tuple[str, int] | None) -> str:
    if config.engine_url:
        return service_base(config.engine_url, websocket=True)
    if own_address is None:
        raise ConfigurationError(
            "This server does not know its own address. Set VOICEAPP_ENGINE_URL, such as ws://127.0.0.1:8000."
        )
    host, port = own_address
    # A server that listens on every address is reached on the loopback one.
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"


def refusal(status: int, kind: UpstreamKind, *, retry_after_s: float = 0.0) -> UpstreamRefused:
    """Return the error for an HTTP status with which a service refused the connection."""
    azure = kind is not UpstreamKind.EMBEDDED
    if status in (401, 403):
        name = "AZURE_OPENAI_API_KEY" if azure else "VOICEAPP_ENGINE_API_KEY"
        return UpstreamRefused(
            f"The service refused the key. Check {name}.", code="upstream_unauthorized", final=True
        )
    if status == 404:
        hint = {
            UpstreamKind.AZURE_GA: "A resource that only has the preview API needs AZURE_OPENAI_API_VERSION.",
            UpstreamKind.AZURE_PREVIEW: "The preview API is retired on many resources: leave "
            "AZURE_OPENAI_API_VERSION empty to use the GA API.",
            UpstreamKind.EMBEDDED: "Check VOICEAPP_ENGINE_URL.",
        }[kind]
        return UpstreamRefused(
            f"The service does not know this deployment or address. Check AZURE_OPENAI_DEPLOYMENT. {hint}"
            if azure
            else f"There is no voice engine at this address. {hint}",
            code="upstream_not_found",
            final=True,
        )
    if status == 429:
        return UpstreamRefused(
            "The service is too busy at the moment. Try again soon.",
            code="upstream_busy",
            retry_after_s=retry_after_s,
        )
    if status == 400:
        return UpstreamRefused(
            "The service did not accept the request. Check that the deployment is a realtime model.",
            code="upstream_bad_request",
            final=True,
        )
    return UpstreamRefused(
        f"The service is not available (HTTP {status}). Try again soon.",
        code="upstream_unavailable",
        retry_after_s=retry_after_s,
    )
