"""A process is alive while it holds its lock."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.parts.waits import PATIENCE_S
from voiceapp.datafolder.processes import Ownership


def test_a_process_is_alive_while_it_holds_its_lock(tmp_path: Path) -> None:
    here, there = Ownership(tmp_path / "processes"), Ownership(tmp_path / "processes")
    name = there.name()
    assert there.name() == name
    assert here.dead() == set()
    here.name()
    (tmp_path / "processes" / "gone").touch()
    assert here.dead() == {"gone"}
    here.forget({"gone"})
    assert here.dead() == set()
    there.release()
    assert here.dead() == {name}
    here.release()


def test_a_process_that_just_begins_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "processes"
    begins, looks = Ownership(folder), Ownership(folder)
    lock = fcntl.flock
    found: list[set[str]] = []
    has_looked = threading.Event()
    looking = threading.Thread(target=lambda: found.append(looks.dead()))

    def lock_late(file: Any, how: int) -> None:
        """Lock as ever, but let the other look between the file of the one that begins and its lock."""
        of_a_process = Path(file.name).parent == folder
        if threading.current_thread() is looking:
            if not of_a_process:
                # It waits for whoever begins.
                has_looked.set()
            try:
                lock(file, how)
            finally:
                has_looked.set()
            return
        if of_a_process and not looking.ident:
            looking.start()
            assert has_looked.wait(PATIENCE_S)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    begins.name()
    looking.join(PATIENCE_S)
    assert found == [set()]
    begins.release()
