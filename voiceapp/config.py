"""Settings of the product: what each means, its default, and how it is read and checked.

``SETTINGS`` is the one table of settings; the one in ``docs/configuration.md`` is written from it.
``VoiceConfig.load`` reads a mapping such as ``os.environ``; only ``voiceapp.settings`` calls it with the real
environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from voiceapp.errors import ConfigurationError
from voiceapp.outbound.addresses import scheme_of
from voiceapp.types import Part

source: Final = Part[Callable[[], "VoiceConfig"]]("settings")
"""Gives the settings as they are now."""


def voice_config() -> VoiceConfig:
    """Return the settings of the running process."""
    return source()()


Problem = tuple[str, str, str]
"""A fault of the settings: (name of the setting, what is wrong, what to do)."""


@dataclass(frozen=True)
class Setting:
    """One environment variable."""

    name: str
    attribute: str
    kind: type
    default: Any
    help: str
    limits: tuple[float, float] | None = None
    """The smallest and the largest number allowed."""


SETTINGS: tuple[Setting, ...] = (
    Setting("AZURE_OPENAI_ENDPOINT", "azure_endpoint", str, "",
            "Address of the Azure OpenAI resource, such as `https://NAME.openai.azure.com`. "
            "Empty: the embedded engine answers."),
    Setting("AZURE_OPENAI_API_KEY", "azure_api_key", str, "",
            "Key of the resource. Empty with an endpoint: Microsoft Entra ID signs in "
            "(`pip install azure-identity`)."),
    Setting("AZURE_OPENAI_DEPLOYMENT", "azure_deployment", str, "",
            "Name of the realtime deployment, such as `gpt-realtime`."),
    Setting("AZURE_OPENAI_API_VERSION", "azure_api_version", str, "",
            "Set, such as `2025-04-01-preview`: the preview API. Empty: the GA API."),
    Setting("AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT", "azure_transcription_deployment", str, "",
            "Name of the deployment that transcribes what the user says. On Azure this is a deployment's "
            "name, not a model's."),
    Setting("AZURE_OPENAI_CHAT_DEPLOYMENT", "azure_chat_deployment", str, "",
            "Name of a chat deployment of the resource: it thinks for the embedded engine and answers text "
            "clients. Empty: the built-in brain does."),
    Setting("AZURE_OPENAI_CHAT_API_VERSION", "azure_chat_api_version", str, "",
            "Set, such as `2024-10-21`: the dated chat address. Empty: the v1 address."),
    Setting("AZURE_OPENAI_ENTRA_SCOPE", "azure_entra_scope", str,
            "https://cognitiveservices.azure.com/.default", "Token scope for Microsoft Entra ID."),
    Setting("VOICEAPP_DATA_DIR", "data_dir", Path, Path("var"),
            "Folder of the database, recordings and generated keys."),
    Setting("VOICEAPP_ENGINE_API_KEY", "engine_api_key", str, "",
            "Key that opens the embedded engine. Empty: made on first run and kept in the data folder."),
    Setting("VOICEAPP_ENGINE_URL", "engine_url", str, "",
            "Address of the embedded engine, such as `ws://127.0.0.1:8000`. Empty: this very server."),
    Setting("VOICEAPP_ENGINE_FAULTS", "engine_faults", str, "",
            "`1`: clients of the embedded engine may order faults, such as `&faults=rate_limit@1`. A script "
            "such as `expire@60`: every session has these. For tests and rehearsals."),
    Setting("VOICEAPP_PRIVATE_ADDRESSES", "private_addresses", bool, False,
            "MCP servers and the services of HTTP tools may be on private addresses and be reached over "
            "plain HTTP, the MCP servers that clients of the embedded engine name as well: never where "
            "strangers can reach the engine."),
    Setting("VOICEAPP_TEXT_BASE_URL", "text_base_url", str, "",
            "Base URL of an OpenAI-compatible chat endpoint, such as `http://127.0.0.1:11434/v1`. It thinks "
            "for the embedded engine and answers text clients, before `AZURE_OPENAI_CHAT_DEPLOYMENT`."),
    Setting("VOICEAPP_TEXT_API_KEY", "text_api_key", str, "", "Key for that endpoint."),
    Setting("VOICEAPP_TEXT_MODEL", "text_model", str, "", "Model that the chat endpoint shall use."),
    Setting("VOICEAPP_MODEL_HOST_IDLE_S", "model_host_idle_s", float, 300.0,
            "Seconds that a connected model host may be silent within a reply.", (1, 3600)),
    Setting("VOICEAPP_TEXT_PRICE_IN", "text_price_in", float, 0.0,
            "US dollars for a million tokens in, by which is counted what text clients' answers cost.",
            (0, 10000)),
    Setting("VOICEAPP_TEXT_PRICE_OUT", "text_price_out", float, 0.0,
            "US dollars for a million tokens out.", (0, 10000)),
    Setting("VOICEAPP_GRACE_S", "grace_s", float, 30.0,
            "Seconds that a session waits for its page to come back.", (0, 600)),
    Setting("VOICEAPP_MAX_SESSION_S", "max_session_s", float, 3600.0,
            "Longest session, in seconds.", (1, 86400)),
    Setting("VOICEAPP_IDLE_S", "idle_s", float, 600.0,
            "Seconds without speech, text or an answer after which a session ends.", (1, 86400)),
    Setting("VOICEAPP_APPROVAL_S", "approval_s", float, 60.0,
            "Seconds that the user has to allow a tool's call before it is refused.", (1, 3600)),
    Setting("VOICEAPP_MAX_SESSIONS_PER_USER", "max_sessions_per_user", int, 4,
            "Live sessions that one user may hold at once in one process.", (1, 10000)),
    Setting("VOICEAPP_MAX_SESSIONS", "max_sessions", int, 500,
            "Live sessions that one process accepts.", (1, 100000)),
    Setting("VOICEAPP_CONNECT_TIMEOUT_S", "connect_timeout_s", float, 15.0,
            "Seconds within which the Realtime service must accept a connection.", (0.1, 120)),
    Setting("VOICEAPP_RECORD_AUDIO", "record_audio", bool, True,
            "Keep a recording of both sides of each session."),
    Setting("VOICEAPP_SUMMARIES", "summaries", bool, True,
            "Write a title and a summary of each session when it is over. Whoever thinks reads it for that."),
    Setting("VOICEAPP_ALLOWED_HOSTS", "allowed_hosts", str, "localhost,127.0.0.1,[::1]",
            "Host names that the site answers to, separated by commas."),
    Setting("VOICEAPP_TRUSTED_ORIGINS", "trusted_origins", str, "",
            "Further origins (`https://name`) that may open the page's socket, separated by commas."),
    Setting("VOICEAPP_SECRET_KEY", "secret_key", str, "",
            "Django's secret key. Empty: made on first run and kept in the data folder."),
    Setting("VOICEAPP_DEBUG", "debug", bool, False, "Django's debug mode; never on a public server."),
    Setting("VOICEAPP_HTTPS", "https", bool, False,
            "The site is reached over HTTPS only: secure cookies and strict transport security."),
    Setting("DATABASE_URL", "database_url", str, "",
            "`postgres://USER:PASSWORD@HOST:PORT/NAME`. Empty: SQLite in the data folder."),
    Setting("VOICEAPP_REDIS_URL", "redis_url", str, "",
            "`redis://HOST:PORT/0`, over which server processes hand sessions to each other. Empty: a "
            "session stays with its process."),
)  # fmt: skip


class UpstreamKind(Enum):
    """Which service a session talks to."""

    AZURE_GA = "azure-ga"
    AZURE_PREVIEW = "azure-preview"
    EMBEDDED = "embedded"


@dataclass(frozen=True, kw_only=True)
class VoiceConfig:
    """All settings, read and validated; see ``SETTINGS`` for what each means."""

    azure_endpoint: str
    azure_api_key: str = field(repr=False)
    azure_deployment: str
    azure_api_version: str
    azure_transcription_deployment: str
    azure_chat_deployment: str
    azure_chat_api_version: str
    azure_entra_scope: str
    data_dir: Path
    engine_api_key: str = field(repr=False)
    engine_url: str
    engine_faults: str
    private_addresses: bool
    text_base_url: str
    text_api_key: str = field(repr=False)
    text_model: str
    model_host_idle_s: float
    text_price_in: float
    text_price_out: float
    grace_s: float
    max_session_s: float
    idle_s: float
    approval_s: float
    max_sessions_per_user: int
    max_sessions: int
    connect_timeout_s: float
    record_audio: bool
    summaries: bool
    allowed_hosts: str
    trusted_origins: str
    secret_key: str = field(repr=False)
    debug: bool
    https: bool
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> tuple[VoiceConfig, list[Problem]]:
        """Read every setting; one that cannot be read keeps its default and is reported.

        This lets ``manage.py check`` name every fault at once instead of dying at the first.
        """
        values: dict[str, Any] = {}
        found: list[Problem] = []
        for setting in SETTINGS:
            try:
                values[setting.attribute] = _read(setting, environ)
            except ConfigurationError as error:
                values[setting.attribute] = setting.default
                found.append((setting.name, "cannot be read", error.message))
        return cls(**values), found

    @property
    def upstream_kind(self) -> UpstreamKind:
        """The service that the settings choose."""
        if not self.azure_endpoint or (self.azure_chat_deployment and not self.azure_deployment):
            return UpstreamKind.EMBEDDED
        return UpstreamKind.AZURE_PREVIEW if self.azure_api_version else UpstreamKind.AZURE_GA

    @property
    def has_chat(self) -> bool:
        """Whether the settings name a chat service; without one the built-in brain answers."""
        return bool(self.text_base_url or self.azure_chat_deployment)

    def cost_usd(self, provider: str, tokens_in: int, tokens_out: int) -> float:
        """Return what so many tokens cost by the prices in the settings, in US dollars.

        The built-in brain and a model of the user's own cost nothing here.
        """
        if provider not in ("azure", "compatible"):
            return 0.0
        millionths = tokens_in * self.text_price_in + tokens_out * self.text_price_out
        return round(millionths / 1_000_000, 6)

    def problems(self) -> list[Problem]:
        """Return every bad or missing setting as (setting, what is wrong, what to do)."""
        found = self._azure_problems() if self.azure_endpoint else self._azure_without_endpoint()
        if self.text_model and not self.text_base_url:
            found.append(
                (
                    "VOICEAPP_TEXT_MODEL",
                    "is set, and VOICEAPP_TEXT_BASE_URL is empty",
                    "Name the chat endpoint that has the model, or leave both empty.",
                )
            )
        if self.text_base_url and not self.text_model:
            found.append(
                (
                    "VOICEAPP_TEXT_MODEL",
                    "is empty although VOICEAPP_TEXT_BASE_URL is set",
                    "Name the model that the endpoint shall use.",
                )
            )
        for name, schemes, wrong, hint in _ADDRESSES:
            value = getattr(self, _ATTRIBUTES[name])
            if value and scheme_of(value) not in schemes:
                found.append((name, wrong, hint))
        if not all(scheme_of(origin.strip()) for origin in self.trusted_origins.split(",") if origin.strip()):
            found.append(
                (
                    "VOICEAPP_TRUSTED_ORIGINS",
                    "holds something that is not an origin",
                    "Give origins with their scheme, separated by commas, such as https://talk.example.org.",
                )
            )
        return found

    def _azure_without_endpoint(self) -> list[Problem]:
        others = (
            self.azure_deployment, self.azure_api_key, self.azure_api_version, self.azure_chat_deployment,
        )  # fmt: skip
        if not any(others):
            return []
        return [
            (
                "AZURE_OPENAI_ENDPOINT",
                "is empty although other Azure settings are set",
                "Set it to the resource's address, such as https://NAME.openai.azure.com.",
            )
        ]

    def _azure_problems(self) -> list[Problem]:
        found: list[Problem] = []
        scheme = scheme_of(self.azure_endpoint)
        if scheme not in ("https", "wss", "http", "ws"):
            found.append(
                (
                    "AZURE_OPENAI_ENDPOINT",
                    "is not an https:// or wss:// address",
                    "Copy the endpoint from the resource's page, such as https://NAME.openai.azure.com.",
                )
            )
        elif scheme in ("http", "ws") and urlsplit(self.azure_endpoint).hostname not in _LOOPBACK:
            found.append(
                ("AZURE_OPENAI_ENDPOINT", "would send the key in the clear", "Use https:// or wss://.")
            )
        if not self.azure_deployment and not self.azure_chat_deployment:
            found.append(
                (
                    "AZURE_OPENAI_DEPLOYMENT",
                    "is empty although an endpoint is set",
                    "Name the realtime deployment, such as gpt-realtime.",
                )
            )
        if _looks_like_a_model(self.azure_transcription_deployment):
            found.append(
                (
                    "AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT",
                    "looks like a model's name",
                    "Azure wants the name of a deployment of that model. If your deployment really "
                    "has this name, all is well.",
                )
            )
        return found


_ATTRIBUTES = {setting.name: setting.attribute for setting in SETTINGS}
_ADDRESSES = (
    ("VOICEAPP_TEXT_BASE_URL", ("http", "https"), "is not an http or https address",
     "Give the base URL of the chat endpoint, such as http://127.0.0.1:11434/v1."),
    ("VOICEAPP_ENGINE_URL", ("ws", "wss", "http", "https"), "is not a ws, wss, http or https address",
     "Give the address of the server that runs the engine, such as ws://127.0.0.1:8000."),
    ("VOICEAPP_REDIS_URL", ("redis", "rediss"), "is not a redis or rediss address",
     "Give the address of the Redis server, such as redis://127.0.0.1:6379/0."),
)  # fmt: skip
"""Settings that are addresses: the schemes that they may have, what is wrong otherwise, and what to do."""
EMBEDDED_MODEL = "voiceapp-embedded"
"""What the embedded engine and its brain are called where a model is to be named."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _looks_like_a_model(name: str) -> bool:
    return name in {"whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-realtime-whisper"}


def _read(setting: Setting, environ: Mapping[str, str]) -> Any:
    raw = environ.get(setting.name, "").strip()
    if not raw:
        return setting.default
    if setting.kind is bool:
        if raw.lower() not in ("0", "1", "true", "false", "yes", "no"):
            raise ConfigurationError(f"{setting.name} must be 1 or 0.")
        return raw.lower() in ("1", "true", "yes")
    try:
        value = setting.kind(raw)
    except ValueError:
        raise ConfigurationError(f"{setting.name} must be a number.") from None
    if setting.limits is not None:
        low, high = setting.limits
        # Written so that "nan", which is a number to Python, is refused as well.
        if not low <= value <= high:
            raise ConfigurationError(f"{setting.name} must be from {low:g} to {high:g}.")
    return value
