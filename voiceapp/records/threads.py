"""Threads that work on records while people talk."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

NICENESS = 10
_Result = TypeVar("_Result")


def yield_to_audio() -> None:
    """Let the operating system prefer other threads to the calling one.

    On a busy core a thread that writes rows or files would otherwise hold audio up for whole time slices.
    Only Linux gives threads priorities of their own; elsewhere this does nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@contextmanager
def fresh_connections() -> Iterator[None]:
    """Let the calling thread, one of a pool's, ask the database; each would keep a connection otherwise."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


async def with_database(work: Callable[..., _Result], *arguments: Any) -> _Result:
    """Return ``work(*arguments)``, done in a thread of a pool, where it may ask the database."""
    return await sync_to_async(_connected, thread_sensitive=False)(work, arguments)


def _connected(work: Callable[..., _Result], arguments: tuple[Any, ...]) -> _Result:
    with fresh_connections():
        return work(*arguments)
