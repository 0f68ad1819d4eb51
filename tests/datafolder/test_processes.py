"""A process is alive while it holds its lock."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from voiceapp.datafolder import processes
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
    lock = processes._lock
    found: list[set[str]] = []
    looking = threading.Thread(target=lambda: found.append(looks.dead()))

    def lock_late(file: Any, *, wait: bool = False) -> None:
        if Path(file.name).parent == folder and not looking.ident:
            looking.start()
            looking.join(0.2)
        lock(file, wait=wait)

    monkeypatch.setattr(processes, "_lock", lock_late)
    begins.name()
    looking.join()
    assert found == [set()]
    begins.release()
