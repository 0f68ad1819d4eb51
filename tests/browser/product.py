"""The real server as a process of its own, with a data folder that is thrown away."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.parts.places import ROOT
from tests.parts.static_files import put_static_files
from voiceapp.config import SETTINGS

START_S = 60
STOP_S = 30


@contextmanager
def running_product(data_dir: Path, **chosen: str) -> Iterator[str]:
    """Start ``manage.py up`` on a free port, with settings, and yield its one-time sign-in link."""
    put_static_files(data_dir)
    known = {setting.name for setting in SETTINGS}
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in known and name != "DJANGO_SETTINGS_MODULE"
    }
    environment |= {**chosen, "VOICEAPP_DATA_DIR": str(data_dir)}
    # The packages that run this test, not a second set.
    environment["VIRTUAL_ENV"] = sys.prefix
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "up", "--port", "0"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        yield _link(lines)
        assert process.poll() is None, "The server died."
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()
            reader.join(5)
            process.stdout.close()


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _link(lines: queue.Queue[str | None]) -> str:
    said = []
    while (line := lines.get(timeout=START_S)) is not None:
        said.append(line)
        if line.startswith("Ready: "):
            return line.removeprefix("Ready: ").strip()
    raise AssertionError("The server did not start:\n" + "".join(said))
