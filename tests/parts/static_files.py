"""Static files, listed and made once in a process, and not for every test client and every server anew."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.test import override_settings
from servestatic.middleware import ServeStaticMiddleware

from voiceapp.web.static_files import collect


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


def put_static_files(data_dir: Path) -> None:
    """Give a server's new data folder what it would make at its first start, in some seconds.

    Programs that measure have no applications at hand to find the files by; their servers make them.
    """
    if apps.ready and not (data_dir / "static").exists():
        shutil.copytree(_made(), data_dir / "static")


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(dir=settings.VOICE.data_dir)) / "static"
    storages = {**settings.STORAGES, "staticfiles": {"BACKEND": "voiceapp.web.static_files.StaticFiles"}}
    with override_settings(STATIC_ROOT=folder, STORAGES=storages):
        collect()
    return folder
