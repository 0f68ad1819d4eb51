"""Threads that keep records while people talk."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

NICENESS = 10


def yield_to_audio() -> None:
    """Let the operating system prefer other threads to the calling one.

    On a busy core a thread that writes rows or files would otherwise hold audio up for whole time slices.
    Only Linux gives threads priorities of their own; elsewhere this does nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
