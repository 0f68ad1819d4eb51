"""A note in the data folder of where a server listens, for commands of the same user."""

from __future__ import annotations

import json
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

SERVER_FOLDER: Final = "servers"
"""In the data folder: ``{"url": "http://127.0.0.1:8000", "pid": 123}`` while a server runs."""


def write_server_file(data_dir: Path, url: str) -> None:
    """Note where this process serves, for commands of the same user."""
    folder = data_dir / SERVER_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f".{os.getpid()}.{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"url": url}, file)
    draft.replace(folder / f"{os.getpid()}.json")


def read_server_file(data_dir: Path) -> str | None:
    """Return the URL of a server that runs on this data folder, the latest first; ``None`` where none does.

    Notes of processes that died are passed over; one may have died in this very moment.
    """
    notes = sorted((data_dir / SERVER_FOLDER).glob("*.json"), key=_written, reverse=True)
    for note in notes:
        try:
            if _alive(int(note.stem)):
                return str(json.loads(note.read_text())["url"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _written(note: Path) -> float:
    try:
        return note.stat().st_mtime
    except OSError:
        return 0.0


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        # There, asking so would end the process.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def remove_server_file(data_dir: Path) -> None:
    """Remove this process's note."""
    with suppress(OSError):
        (data_dir / SERVER_FOLDER / f"{os.getpid()}.json").unlink()
