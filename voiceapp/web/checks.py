"""System checks: every bad or missing setting in a sentence, with what to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import Problem, UpstreamKind, VoiceConfig
from voiceapp.engine.server.faults import FaultScript, FaultScriptError
from voiceapp.records.reading.assistants import any_names_mcp_servers

_ONLY_A_HINT = frozenset({"AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT"})


@checks.register()
def check_settings(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Explain each problem that was found when the settings were read, and each missing extra."""
    config: VoiceConfig = settings.VOICE
    return [
        _message(problem)
        for problem in [*settings.VOICE_PROBLEMS, *missing_extras(config), *wrong_faults(config)]
    ]


def missing_extras(config: VoiceConfig) -> list[Problem]:
    """Return the settings that need a package which is not installed."""
    found: list[Problem] = []
    if config.azure_endpoint and not config.azure_api_key and not _installed("azure.identity"):
        found.append(
            (
                "AZURE_OPENAI_API_KEY",
                "is empty, and to sign in with Microsoft Entra ID the package azure-identity is missing",
                f"Set the key, or run: {sys.executable} -m pip install azure-identity",
            )
        )
    if config.redis_url and not _installed("channels_redis"):
        found.append(
            (
                "VOICEAPP_REDIS_URL",
                "is set, and the package channels-redis is missing",
                f"Leave it empty, or run: {sys.executable} -m pip install channels-redis",
            )
        )
    return found


def wrong_faults(config: VoiceConfig) -> list[Problem]:
    """Return the faults that are ordered and cannot be read."""
    if config.engine_faults in ("", "0", "1"):
        return []
    try:
        FaultScript.parse(config.engine_faults)
    except FaultScriptError as error:
        hint = "Set 1 to let clients order faults, or a script such as rate_limit@2,expire@30."
        return [("VOICEAPP_ENGINE_FAULTS", f"cannot be read: {str(error).rstrip('.')}", hint)]
    return []


@checks.register(checks.Tags.database)
def check_mcp(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Warn where assistants name MCP servers that this server would call, and the package for it is missing.

    Azure's GA service calls them itself, the embedded engine and others do not.
    """
    if _installed("mcp"):
        return []
    # Those who think otherwise than the settings say speak through the embedded engine.
    besides = Thinking.AS_SET if settings.VOICE.upstream_kind is UpstreamKind.AZURE_GA else None
    for database in databases or ():
        if any_names_mcp_servers(database, besides=besides):
            warning = "Assistants name MCP servers, and the package mcp is missing."
            hint = f"Run: {sys.executable} -m pip install mcp==2.3.0"
            return [checks.Warning(warning, hint=hint, id="voiceapp.mcp.W001")]
    return []


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _message(problem: Problem) -> checks.CheckMessage:
    name, wrong, hint = problem
    kind, code = (checks.Warning, "W001") if name in _ONLY_A_HINT else (checks.Error, "E001")
    return kind(f"{name} {wrong}.", hint=hint, id=f"voiceapp.{name}.{code}")
