"""Addresses of databases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from voiceapp.errors import ConfigurationError
from voiceapp.records.setup.database import database


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


def test_sqlite_is_set_up_to_lose_nothing_and_to_wait_its_turn(tmp_path: Path) -> None:
    options = database("", tmp_path)["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in options["init_command"]
    assert "synchronous=NORMAL" in options["init_command"]
