"""Fixtures of the tests in a real browser. They run in a pytest process of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.conf import settings
from playwright.sync_api import Playwright, expect, sync_playwright

from tests.browser.browser import CHROMIUM, close_shared
from tests.browser.network import Network
from tests.browser.scripted import ScriptedServer
from tests.parts.engine_parts import say, words_of
from tests.parts.servers import Server
from tests.parts.waits import PATIENCE_S

if not settings.configured and not os.environ.get("DJANGO_SETTINGS_MODULE"):
    settings.configure(USE_TZ=True)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver; the tests are skipped where there is no Chromium."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as driver:
        yield driver
        close_shared()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A scripted server with one assistant."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is said to the page, by the product's own voice."""
    folder = tmp_path_factory.mktemp("speech")
    for name in ("joke", "weather", "thanks"):
        soundfile.write(folder / f"{name}.wav", np.frombuffer(say(words_of(name)), "<i2"), 24_000)
    return folder


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    made.close()


@pytest.fixture
def product(network: Network, tmp_path: Path) -> Iterator[Server]:
    """The real server, whose Realtime service is the scripted one."""
    running = Server(
        tmp_path,
        AZURE_OPENAI_ENDPOINT=network.service.url,
        AZURE_OPENAI_API_KEY="k",
        AZURE_OPENAI_DEPLOYMENT="d",
        AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT="t",
    )
    try:
        running.wait()
        yield running
    finally:
        running.stop()
