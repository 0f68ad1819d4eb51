"""Where the repository and what lies beside it are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The repository."""

SHARED: Final = Path(os.environ.get("SHARED_DIR", ROOT.parent / "shared"))
"""Recorded speech and published contracts, where they lie beside the repository."""
