"""Preparing the database and the data folder, which only one process does at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.db import connection

from voiceapp.datafolder.processes import alone

_KEY: Final = 0x766F696365
"""Of PostgreSQL's advisory lock: processes on several machines may share a database and no folder."""


@contextmanager
def preparing(data_dir: Path) -> Iterator[None]:
    """Wait until no other process prepares, and keep others waiting meanwhile; blocks.

    Two that migrate an empty database at once would both try to make its tables, and one would fail.
    """
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(data_dir / ".prepare.lock"), _alone_in_the_database():
        yield


@contextmanager
def _alone_in_the_database() -> Iterator[None]:
    if connection.vendor != "postgresql":
        yield
        return
    # The lock is the connection's: it ends with the process, whatever becomes of it.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_KEY])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_KEY])
