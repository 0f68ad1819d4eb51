"""Which server process runs a session, and whether that process still lives.

Each process that opens sessions holds a lock on a file of its own in the data folder. The system lets go
of it however the process ends, so a lock that can be had belongs to a process that is gone.
"""

from __future__ import annotations

import sys
import threading
import uuid
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Ownership:
    """This process's lock in ``folder``, taken when its name is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._name = ""
        self._file: IO[bytes] | None = None

    def name(self) -> str:
        """Return this process's name, 36 characters; from here on others see that it lives."""
        with self._guard:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._name = str(uuid.uuid4())
                self._file = (self._folder / self._name).open("wb")
                _lock(self._file)
            return self._name

    def dead(self) -> set[str]:
        """Return the names of processes of this folder that are gone."""
        return {path.name for path in self._folder.glob("*") if path.name != self._name and _free(path)}

    def forget(self, names: set[str]) -> None:
        """Remove the files of processes that are gone and whose sessions were closed."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def release(self) -> None:
        """Let go of this process's lock. The file stays, so that whatever was left open is found."""
        with self._guard:
            if self._file is not None:
                self._file.close()
                self._file = None


def _free(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            _lock(file)
    except OSError:
        return False
    return True
