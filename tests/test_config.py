"""Settings: keys that are made once, addresses of databases, and a sentence for each fault."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import checks
from django.test import Client

from tests.parts.places import ROOT
from voiceapp.config import SETTINGS, VoiceConfig
from voiceapp.datafolder.keys import kept_key
from voiceapp.errors import ConfigurationError
from voiceapp.records.setup.database import database
from voiceapp.web.checks import check_settings, missing_extras


def django(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command under the product's own settings."""
    clean = {name: value for name, value in os.environ.items() if name not in {one.name for one in SETTINGS}}
    return subprocess.run(
        [sys.executable, "-m", "django", *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**clean, "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **environ},
    )  # fmt: skip


def test_a_key_is_made_once_by_whoever_comes_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(lambda _: kept_key(tmp_path / "data", "key"), range(64)))
    assert len(keys) == 1
    assert len(keys.pop()) >= 48
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "data" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_keys_are_kept_and_never_shown() -> None:
    assert kept_key(settings.VOICE.data_dir, "secret_key") == settings.SECRET_KEY
    assert settings.VOICE.engine_api_key == kept_key(settings.VOICE.data_dir, "engine_key")
    assert settings.VOICE.engine_api_key != settings.SECRET_KEY
    for secret in (settings.SECRET_KEY, settings.VOICE.engine_api_key):
        assert secret not in repr(settings.VOICE)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_database_address_is_taken_apart(scheme: str, tmp_path: Path) -> None:
    entry = database(f"{scheme}://us%40er:p%3Aw%2Fd@db.example:6432/my%20db?sslmode=require", tmp_path)
    assert entry == {
        "ENGINE": "django.db.backends.postgresql", "NAME": "my db", "USER": "us@er", "PASSWORD": "p:w/d",
        "HOST": "db.example", "PORT": "6432", "OPTIONS": {"sslmode": "require"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("netloc", "host", "port"),
    [
        ("u@%2Ftmp%2FSocket", "/tmp/Socket", ""),
        ("[::1]:5432", "::1", "5432"),
        ("", "", ""),
        ("u:p@h", "h", ""),
    ],
)
def test_hosts_of_databases(netloc: str, host: str, port: str, tmp_path: Path) -> None:
    entry = database(f"postgres://{netloc}/name", tmp_path)
    assert (entry["HOST"], entry["PORT"]) == (host, port)


@pytest.mark.parametrize("url", ["mysql://u@h/n", "postgres://h", "postgres://h:port/n", "nonsense"])
def test_other_database_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        database(url, tmp_path)
    assert "DATABASE_URL" in refusal.value.message


def test_postgresql_without_its_driver_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError) as refusal:
        database("postgres://h/n", tmp_path)
    assert "-m pip install 'psycopg[binary]'" in refusal.value.message


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_numbers_are_numbers_within_their_limits(seconds: str) -> None:
    config, found = VoiceConfig.load({"VOICEAPP_IDLE_S": seconds})
    assert config.idle_s == 600
    assert [name for name, _, _ in found] == ["VOICEAPP_IDLE_S"]


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_DEPLOYMENT"])
def test_an_azure_setting_without_an_endpoint_is_no_silent_fallback(name: str) -> None:
    config, _ = VoiceConfig.load({name: "something"})
    assert [setting for setting, _, _ in config.problems()] == ["AZURE_OPENAI_ENDPOINT"]


def test_sqlite_is_set_up_to_lose_nothing_and_to_wait_its_turn(tmp_path: Path) -> None:
    options = database("", tmp_path)["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in options["init_command"]
    assert "synchronous=NORMAL" in options["init_command"]


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


def test_a_relative_data_folder_is_the_projects(tmp_path: Path) -> None:
    code = "from django.conf import settings; print(settings.VOICE.data_dir)"
    result = django("shell", "--no-imports", "-c", code, VOICEAPP_DATA_DIR=os.path.relpath(tmp_path, ROOT))
    assert Path(result.stdout.strip()).resolve() == tmp_path


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


def test_every_response_carries_the_policies(client: Client) -> None:
    for address in ("/login/", "/static/records/session.css", "/nowhere/"):
        response = client.get(address)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["Permissions-Policy"].startswith("microphone=(self)")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"


def test_cookies_are_out_of_reach(client: Client) -> None:
    client.get("/login/")
    cookie = client.cookies["voiceapp_csrf"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert settings.SESSION_COOKIE_HTTPONLY
    assert settings.SESSION_COOKIE_SAMESITE == "Lax"


def test_https_makes_cookies_and_transport_strict(tmp_path: Path) -> None:
    result = django("check", "--deploy", "--fail-level", "ERROR",
                    VOICEAPP_DATA_DIR=str(tmp_path), VOICEAPP_HTTPS="1")  # fmt: skip
    assert result.returncode == 0
    for solved in ("W012", "W016", "W004", "W018", "W009"):
        assert f"security.{solved}" not in result.stderr
