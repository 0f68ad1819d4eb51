"""Static files, listed once in a process: every test client that is made would list them all anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from servestatic.middleware import ServeStaticMiddleware


@contextmanager
def listed_once() -> Iterator[None]:
    """Let the first middleware list the files for all after it, for as long as the context lasts."""
    list_files = ServeStaticMiddleware.add_files_from_finders
    known: list[tuple[dict[str, Any], list[tuple[str, str]]]] = []

    def add(middleware: ServeStaticMiddleware) -> None:
        if not known:
            list_files(middleware)
            known.append((middleware.files, middleware.directories))
        files, directories = known[0]
        middleware.files, middleware.directories = dict(files), list(directories)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServeStaticMiddleware, "add_files_from_finders", add)
        yield
