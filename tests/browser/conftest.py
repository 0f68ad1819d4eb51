"""Fixtures of the tests in a real browser. They run in a pytest process of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Playwright, sync_playwright

from tests.browser.browser import CHROMIUM, close_shared
from tests.browser.scripted import ScriptedServer
from tests.parts.places import ROOT

if not settings.configured and not os.environ.get("DJANGO_SETTINGS_MODULE"):
    settings.configure(USE_TZ=True)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver; the tests are skipped where there is no Chromium."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with sync_playwright() as driver:
        yield driver
        close_shared()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A scripted server with one assistant."""
    running = ScriptedServer()
    yield running
    running.close()


@pytest.fixture(scope="session")
def speech() -> Path:
    """The folder with recorded speech."""
    folder = Path(os.environ.get("SHARED_DIR", ROOT.parent / "shared")) / "audio"
    if not folder.is_dir():
        pytest.skip(f"no recorded speech at {folder}")
    return folder
