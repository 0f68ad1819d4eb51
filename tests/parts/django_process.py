"""Commands under the product's own settings, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.parts.places import ROOT
from voiceapp.config import SETTINGS


def django(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command under the product's own settings."""
    clean = {name: value for name, value in os.environ.items() if name not in {one.name for one in SETTINGS}}
    return subprocess.run(
        [sys.executable, "-m", "django", *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**clean, "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **environ},
    )  # fmt: skip
