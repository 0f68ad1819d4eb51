"""Which server process runs a session, and whether that process still lives.

Each process that opens sessions holds a lock on a file of its own in the data folder. The system lets go
of it however the process ends, so a lock that can be had belongs to a process that is gone.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from voiceapp.types import Part

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], *, wait: bool = False) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes], *, wait: bool = False) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


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
                name = str(uuid.uuid4())
                # Between the file and its lock this process would look dead to one that starts.
                with alone(self._beginning):
                    file = (self._folder / name).open("wb")
                    _lock(file)
                self._name, self._file = name, file
            return self._name

    def dead(self) -> set[str]:
        """Return the names of processes of this folder that are gone."""
        if not self._folder.exists():
            return set()
        with alone(self._beginning):
            return {path.name for path in self._folder.glob("*") if path.name != self._name and _free(path)}

    @property
    def _beginning(self) -> Path:
        """Locked by whoever begins, or looks who is dead."""
        return self._folder.with_name(f".{self._folder.name}.lock")

    def gone(self, name: str) -> bool:
        """Whether the process of that name is known to have ended; one of another folder never is."""
        return bool(name) and name != self._name and _free(self._folder / name)

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


class Ownerships:
    """This process's locks, one for each data folder."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, Ownership] = {}

    def of(self, data_dir: Path) -> Ownership:
        """Return the lock in a data folder."""
        return self._by_folder.setdefault(data_dir, Ownership(data_dir / "processes"))

    def release(self) -> None:
        """Let go of all of them."""
        for ownership in self._by_folder.values():
            ownership.release()


ownerships: Final = Part[Ownerships]("lock of the process")


def of_this_process(data_dir: Path) -> Ownership:
    """Return this process's lock in a data folder; it is let go of when the process ends."""
    return ownerships().of(data_dir)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; blocks while another process or thread does."""
    with path.open("wb") as file:
        _lock(file, wait=True)
        yield


def _free(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            _lock(file)
    except OSError:
        return False
    return True
