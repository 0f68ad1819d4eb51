"""Secrets that open the engine for a short while, so that a browser need not hold the key.

A secret brings the configuration of the session that it opens. It is kept in the data folder under its hash,
where every process of the site finds it and a copy of the folder opens nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import string
from pathlib import Path
from typing import Final

from voiceapp.engine.session.config import Kind, SessionConfig
from voiceapp.types import JsonObject

PREFIX: Final = "ek_"
MIN_S, MAX_S, USUAL_S = 10, 7200, 600
_ALPHABET: Final = string.ascii_letters + string.digits


class ClientSecrets:
    """The secrets of one data folder. Its methods read and write files: not for the event loop."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "client_secrets"

    def create(self, session: JsonObject, expires_at: int, now_s: float) -> str:
        """Return a new secret that opens ``session`` (a GA session update) until ``expires_at``."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget(now_s)
        value = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(32))
        path = self._path(value)
        draft = path.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps({"expires_at": expires_at, "session": session}))
        draft.replace(path)
        return value

    def find(self, value: str, now_s: float) -> JsonObject | None:
        """Return the session that a secret opens, ``None`` where it is unknown or too old."""
        kept = _read(self._path(value))
        if kept is None or kept["expires_at"] <= now_s:
            return None
        session: JsonObject = kept["session"]
        return session

    def _path(self, value: str) -> Path:
        return self._folder / f"{hashlib.sha256(value.encode()).hexdigest()}.json"

    def _forget(self, now_s: float) -> None:
        for path in self._folder.glob("*.json"):
            kept = _read(path)
            if kept is not None and kept["expires_at"] <= now_s:
                path.unlink(missing_ok=True)


def _read(path: Path) -> JsonObject | None:
    try:
        kept: JsonObject = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return kept


def described(session: JsonObject, session_id: str) -> JsonObject:
    """Return the whole session that an update describes; raise ``ProtocolError`` where it is wrong."""
    kind: Kind = "transcription" if session.get("type") == "transcription" else "realtime"
    config = SessionConfig(session_id, str(session.get("model", "")), 0, kind)
    config.update(session, audio_was_spoken=False, may_change_kind=False)
    return config.snapshot()
