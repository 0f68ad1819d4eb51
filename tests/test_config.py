"""Settings: a sentence for each fault, and all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.django_process import django
from voiceapp.config import VoiceConfig


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_numbers_are_numbers_within_their_limits(seconds: str) -> None:
    config, found = VoiceConfig.load({"VOICEAPP_IDLE_S": seconds})
    assert config.idle_s == 600
    assert [name for name, _, _ in found] == ["VOICEAPP_IDLE_S"]


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_DEPLOYMENT"])
def test_an_azure_setting_without_an_endpoint_is_no_silent_fallback(name: str) -> None:
    config, _ = VoiceConfig.load({name: "something"})
    assert [setting for setting, _, _ in config.problems()] == ["AZURE_OPENAI_ENDPOINT"]


def test_every_fault_is_named_at_once(tmp_path: Path) -> None:
    result = django(
        "check",
        VOICEAPP_DATA_DIR=str(tmp_path), VOICEAPP_GRACE_S="soon", VOICEAPP_DEBUG="perhaps",
        VOICEAPP_MAX_SESSIONS="0", AZURE_OPENAI_ENDPOINT="http://example.org", DATABASE_URL="mysql://h/n",
        VOICEAPP_TEXT_BASE_URL="ftp://h", VOICEAPP_IDLE_S="nan", VOICEAPP_ENGINE_FAULTS="foo@x",
    )  # fmt: skip
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    for name in (
        "VOICEAPP_GRACE_S",
        "VOICEAPP_ENGINE_FAULTS",
        "VOICEAPP_IDLE_S",
        "VOICEAPP_DEBUG",
        "VOICEAPP_MAX_SESSIONS",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_DEPLOYMENT",
        "DATABASE_URL",
        "VOICEAPP_TEXT_BASE_URL",
        "VOICEAPP_TEXT_MODEL",
    ):
        assert f"(voiceapp.{name}.E001)" in result.stderr
    assert result.stderr.count("HINT:") >= 8


def test_addresses_that_cannot_be_read_are_faults(tmp_path: Path) -> None:
    names = (
        "AZURE_OPENAI_ENDPOINT",
        "VOICEAPP_ENGINE_URL",
        "VOICEAPP_TEXT_BASE_URL",
        "VOICEAPP_TRUSTED_ORIGINS",
        "VOICEAPP_REDIS_URL",
    )
    result = django(
        "check", VOICEAPP_DATA_DIR=str(tmp_path), AZURE_OPENAI_ENDPOINT="https://[bad",
        VOICEAPP_ENGINE_URL="ws://h:70000", VOICEAPP_TEXT_BASE_URL="http://",
        VOICEAPP_TRUSTED_ORIGINS="https://ok.example, http://[", VOICEAPP_REDIS_URL="localhost:6379",
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    for name in names:
        assert f"(voiceapp.{name}.E001)" in result.stderr


def test_a_data_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = django("check", VOICEAPP_DATA_DIR=str(tmp_path / "file"))
    assert "Traceback" not in result.stderr
    assert "(voiceapp.VOICEAPP_DATA_DIR.E001)" in result.stderr


def test_good_settings_pass(tmp_path: Path) -> None:
    result = django("check", VOICEAPP_DATA_DIR=str(tmp_path))
    assert result.stdout == "System check identified no issues (0 silenced).\n"
    assert result.returncode == 0
