"""Where commands find the server that they talk to."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.core.management import CommandError

from voiceapp.datafolder.server_note import read_server_file

_SCHEMES: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


def server_address(given: str | None, data_dir: Path) -> str:
    """Return the scheme, host and port of the server that was named, or of the one on a data folder.

    Raises ``CommandError`` where none runs, or what was named is no address.
    """
    url = given or read_server_file(data_dir)
    if not url:
        raise CommandError(
            "No server of manage.py up runs on this data folder. Start one: python3 manage.py up. Another "
            "server is named by its address; --help says how."
        )
    try:
        address = urlsplit(url.strip())
        # A port that is none shows only when it is asked for.
        scheme = _SCHEMES.get(address.scheme) if address.hostname and address.port != 0 else None
    except ValueError:
        scheme = None
    if scheme is None:
        raise CommandError(
            f"{url} is not a server's address. Give a full address such as http://127.0.0.1:8000."
        )
    return f"{scheme}://{address.netloc}"


def add_server_arguments(parser: ArgumentParser) -> None:
    """Declare ``--server`` and ``--token``."""
    parser.add_argument("--server", help="Address of the app (the server that runs on this machine).")
    parser.add_argument("--token", default=os.environ.get("VOICEAPP_TOKEN", ""), help="Your API token.")


def given_token(options: Mapping[str, Any]) -> str:
    """Return the API token; raises ``CommandError`` where none is given."""
    token: str = options["token"]
    if not token:
        raise CommandError("Give an API token: --token va_…, or VOICEAPP_TOKEN in the environment.")
    return token


def socket_address(given: str | None, data_dir: Path, path: str) -> str:
    """Return the address of a socket of that server; see ``server_address``."""
    return f"{server_address(given, data_dir).replace('http', 'ws', 1)}{path}"
