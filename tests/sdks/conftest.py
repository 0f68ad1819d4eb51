"""The whole server, and what is said to it. These tests run in a pytest process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.product import running_product
from tests.sdks.programs import Engine
from voiceapp.engine.inference.voice import RATE_HZ, HibariVoice

QUESTION = "What is seven times six?"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine of a server that runs as a process of its own."""
    data_dir = tmp_path_factory.mktemp("data")
    with running_product(data_dir) as link:
        key = (data_dir / "engine_key").read_text().strip()
        yield Engine(urlsplit(link).netloc, key)


@pytest.fixture(scope="session")
def spoken_question(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a spoken sum and the silence that ends a turn: PCM16 at 24 kHz, without a header."""
    before, after = bytes(RATE_HZ * 2 // 2), bytes(RATE_HZ * 2 * 3 // 2)
    path = tmp_path_factory.mktemp("speech") / "question.pcm"
    path.write_bytes(before + HibariVoice().speak(QUESTION).samples + after)
    return path
