"""Secrets that the product makes for itself on its first run."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def kept_key(folder: Path, name: str) -> str:
    """Return the secret kept in ``folder / name``; make it, readable by its owner only, where there is none.

    Processes that start at the same time agree on one key: each writes a file of its own and links it into
    place, which fails where another was first. Raises ``OSError`` where the folder cannot be written.
    """
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f".{name}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(48))
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    return path.read_text("ascii").strip()
