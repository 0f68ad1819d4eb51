"""Notes of where servers listen."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from voiceapp.datafolder.server_note import read_server_file, remove_server_file, write_server_file


def test_each_server_has_a_note_of_its_own_and_the_dead_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    write_server_file(tmp_path, "http://127.0.0.1:1")
    assert read_server_file(tmp_path) == "http://127.0.0.1:1"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (folder / f"{dead.pid}.json").write_text('{"url": "http://127.0.0.1:2"}')
    (folder / "1.json").write_text("{")
    (folder / "odd.json").write_text("{}")
    assert read_server_file(tmp_path) == "http://127.0.0.1:1"
    # The parent of this process lives for as long as this one does; its note is the later one.
    (folder / f"{os.getppid()}.json").write_text('{"url": "http://127.0.0.1:3"}')
    os.utime(folder / f"{os.getppid()}.json", (2**31, 2**31))
    assert read_server_file(tmp_path) == "http://127.0.0.1:3"
    (folder / f"{os.getppid()}.json").unlink()
    remove_server_file(tmp_path)
    assert read_server_file(tmp_path) is None


def test_a_note_is_its_owners_only_and_whole_at_any_moment(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        write_server_file(tmp_path, url)
        assert read_server_file(tmp_path) == url
    [note] = (tmp_path / "servers").iterdir()
    assert note.name == f"{os.getpid()}.json", "no draft is left"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    remove_server_file(tmp_path)
    remove_server_file(tmp_path)


def test_a_folder_in_which_no_server_ever_ran_has_none(tmp_path: Path) -> None:
    assert read_server_file(tmp_path) is None
    remove_server_file(tmp_path)
