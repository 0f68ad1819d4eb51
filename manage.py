#!/usr/bin/env python3
"""Run the app's commands.

``up`` and ``test`` need nothing but Python: they make ``.venv`` here, unless a virtual environment is active,
and install the locked packages into it, again only when the lock has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCKS = {"up": "requirements.lock", "test": "requirements-test.lock"}


def main() -> None:
    """Prepare the environment where the command asks for it, then run the command in it."""
    if sys.version_info < (3, 11):
        sys.exit("This app needs Python 3.11 or newer.")
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    active = sys.prefix if sys.prefix != sys.base_prefix else os.environ.get("VIRTUAL_ENV", "")
    folder = Path(active) if Path(active, "pyvenv.cfg").exists() else ROOT / ".venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if command in LOCKS:
        install(folder, python, LOCKS[command])
    if python.exists() and Path(sys.prefix).resolve() != folder.resolve():
        run([str(python), *sys.argv])
    if command == "test":
        test(sys.argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("The packages are not installed yet. Run: python3 manage.py up")
    execute_from_command_line(sys.argv)


def install(folder: Path, python: Path, lock: str) -> None:
    """Make the environment where it is missing, and install ``lock`` where it changed since the last time."""
    stamp = folder / "voiceapp-installed.json"
    done = json.loads(stamp.read_text()) if stamp.exists() else {}
    if python.exists() and done.get(lock) == digest(lock):
        return
    # Without a stamp our own environment may be half made: making it again completes it.
    if not python.exists() or (folder == ROOT / ".venv" and not done):
        print(f"Making {folder} …", flush=True)
        if quietly([sys.executable, "-m", "venv", str(folder)]):
            sys.exit("Python cannot make virtual environments here. On Debian: apt install python3-venv")
    if subprocess.call(
        [str(python), "-c", "import pip"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ):
        quietly([str(python), "-m", "ensurepip"])
    print(f"Installing the packages of {lock} …", flush=True)
    # Python compiles what is imported when it is first used; compiling all of it would take 90 MB more.
    options = ["--quiet", "--no-compile", "--disable-pip-version-check", "--no-input"]
    pip = [str(python), "-m", "pip", "install", *options]
    if quietly([*pip, "--require-hashes", "-r", str(ROOT / lock)]):
        sys.exit("The packages could not be installed; the lines above say why.")
    # The lock for tests holds all that the other one holds.
    fresh = {name: digest(name) for name in (LOCKS.values() if lock == LOCKS["test"] else [lock])}
    stamp.write_text(json.dumps({**done, **fresh}))


def quietly(arguments: list[str]) -> int:
    """Run a program and return its exit status; what it prints is shown only where it fails.

    With some registries ``pip`` warns of every package.
    """
    with tempfile.TemporaryFile() as output:
        status = subprocess.call(arguments, stdout=output, stderr=subprocess.STDOUT)
        if status:
            output.seek(0)
            print(output.read().decode(errors="replace"), file=sys.stderr, end="", flush=True)
    return status


def test(arguments: list[str]) -> None:
    """Become pytest; the whole suite runs in several processes, at most four."""
    os.chdir(ROOT)
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    # Tests start the app some forty times. Compiling its packages anew takes longer than all the rest of a
    # start, so where no compiled files are wanted beside the sources they are kept in the data folder.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "var" / "pycache"))
    whole = not any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    # A module's tests stay in one process, which makes their servers once.
    # One process more than there are cores: there is always one that waits for a server to start.
    processes = min(4, (os.cpu_count() or 1) + 1)
    shared = ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder"]
    run([sys.executable, "-m", "pytest", *(shared if whole else []), *arguments])


def digest(lock: str) -> str:
    """Return what changes whenever the lock changes."""
    return hashlib.sha256((ROOT / lock).read_bytes()).hexdigest()


def run(arguments: list[str]) -> None:
    """Become another program; where a process cannot, wait for it and end as it ended."""
    if os.name == "nt":
        sys.exit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    main()
