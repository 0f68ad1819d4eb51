"""Run a command with ``DATABASE_URL`` naming a private PostgreSQL, which is removed afterwards.

``python -m tests.parts.postgres COMMAND…`` ends as the command ends, and with 77 where PostgreSQL is
missing.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

MISSING = 77


def main(command: list[str]) -> int:
    """Start the server on a Unix socket in a folder of its own, run ``command``, stop the server."""
    programs = _programs()
    if programs is None:
        print("PostgreSQL is not installed here.", file=sys.stderr)
        return MISSING
    folder = Path(tempfile.mkdtemp(prefix="voiceapp-pg-"))
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    identity: dict[str, Any] = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL}
    if os.geteuid() == 0:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    data = folder / "data"
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
    try:
        subprocess.run([str(programs / "initdb"), "-D", str(data), "-U", "voiceapp", "-A", "trust", "-N",
                        "-E", "UTF8", "--locale=C"], check=True, **identity)  # fmt: skip
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c full_page_writes=off"
        log = str(folder / "log")
        subprocess.run([*control, "-l", log, "-o", options, "start"], check=True, **identity)
        try:
            url = f"postgres://voiceapp@{quote(str(folder), safe='')}/postgres"
            return subprocess.run(command, check=False, env={**os.environ, "DATABASE_URL": url}).returncode
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, **identity)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    return installed[-1].parent if installed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
