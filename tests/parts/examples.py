"""How many examples a law is tried with: a part of them in the suite, all of them where there is time."""

from __future__ import annotations

import os
from typing import Final

THOROUGH: Final = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
PART: Final = 4
"""The suite tries one of so many, each run others; a mistake is found by the runs of some days."""


def examples(thorough: int) -> int:
    """Return how many of so many examples this run tries."""
    return thorough if THOROUGH else thorough // PART
