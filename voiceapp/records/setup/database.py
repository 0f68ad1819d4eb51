"""Where the rows live: the entry of Django's ``DATABASES`` that the settings ask for."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from voiceapp.errors import ConfigurationError


def database(url: str, data_dir: Path) -> dict[str, Any]:
    """Return Django's entry for ``url``, or for SQLite in ``data_dir`` where it is empty.

    Raises ``ConfigurationError`` for an address that is not PostgreSQL's, and where its driver is missing.
    """
    return _postgres(url) if url else _sqlite(data_dir / "voiceapp.sqlite3")


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            # A write transaction that starts as a read cannot wait for its turn: SQLite fails it at once.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def _postgres(url: str) -> dict[str, Any]:
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError:
        raise ConfigurationError("DATABASE_URL is not an address.") from None
    name = unquote(address.path.lstrip("/"))
    if address.scheme not in ("postgres", "postgresql") or not name:
        raise ConfigurationError("DATABASE_URL must look like postgres://USER:PASSWORD@HOST:PORT/NAME.")
    if find_spec("psycopg") is None:
        # Django would fail on its first import of a model, before any check could say why.
        raise ConfigurationError(
            f"PostgreSQL needs a package. Run: {sys.executable} -m pip install 'psycopg[binary]'"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(address.username or ""),
        "PASSWORD": unquote(address.password or ""),
        "HOST": _host(address.netloc),
        "PORT": str(port or ""),
        "OPTIONS": dict(parse_qsl(address.query)),
    }


def _host(netloc: str) -> str:
    """Return the host as it was written: a percent-encoded one is a folder of Unix sockets, case and all."""
    host = netloc.rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return unquote(host.partition(":")[0])
