"""What is wrong with the settings is said at the start."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core import checks

from voiceapp.config import VoiceConfig
from voiceapp.web.checks import check_settings, missing_extras, wrong_faults


def _with(**values: Any) -> VoiceConfig:
    config: VoiceConfig = replace(settings.VOICE, **values)
    return config


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure", None)
    assert missing_extras(settings.VOICE) == []
    found = missing_extras(_with(azure_endpoint="https://a.openai.azure.com"))
    assert [name for name, _, _ in found] == ["AZURE_OPENAI_API_KEY"]
    assert found[0][2].endswith("-m pip install azure-identity")
    assert missing_extras(_with(azure_endpoint="https://a.openai.azure.com", azure_api_key="k")) == []


def test_redis_needs_a_package_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "channels_redis", None)
    assert missing_extras(settings.VOICE) == []
    [(name, _, hint)] = missing_extras(_with(redis_url="redis://127.0.0.1/0"))
    assert (name, hint.endswith("-m pip install channels-redis")) == ("VOICEAPP_REDIS_URL", True)


def test_a_transcription_deployment_named_like_a_model_is_only_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = _with(
        azure_endpoint="https://a.openai.azure.com", azure_api_key="k", azure_deployment="d",
        azure_transcription_deployment="whisper-1",
    )  # fmt: skip
    monkeypatch.setattr(
        settings, "VOICE_PROBLEMS", [*config.problems(), ("VOICEAPP_DEBUG", "is odd", "Fix it.")]
    )
    kinds = {message.id: type(message) for message in check_settings()}
    assert kinds == {
        "voiceapp.AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT.W001": checks.Warning,
        "voiceapp.VOICEAPP_DEBUG.E001": checks.Error,
    }


@pytest.mark.parametrize(
    ("script", "wrong"),
    [("", False), ("0", False), ("1", False), ("rate_limit@2,expire@30", False), ("foo@x", True)],
)
def test_faults_that_are_ordered_must_be_read(script: str, wrong: bool) -> None:
    assert [name for name, _, _ in wrong_faults(_with(engine_faults=script))] == (
        ["VOICEAPP_ENGINE_FAULTS"] if wrong else []
    )
