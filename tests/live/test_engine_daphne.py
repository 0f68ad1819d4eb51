"""The engine under Daphne, as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import websockets

from tests.parts.engine_parts import heard_as, quiet, recording
from tests.parts.engine_server import GA, connect
from tests.parts.places import ROOT
from tests.parts.waits import PATIENCE_S

KEY = "a key for this test"


@dataclass(frozen=True)
class Daphne:
    address: str


@pytest.fixture(scope="module")
def daphne(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daphne]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
        "VOICEAPP_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "VOICEAPP_ENGINE_API_KEY": KEY,
    }
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        # Daphne takes over the very socket, so no port can be lost in between.
        endpoint = f"fd:fileno={listening.fileno()}"
        command = [sys.executable, "-m", "daphne", "-e", endpoint, "tests.parts.engine_daphne:application"]
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=ROOT,
            pass_fds=[listening.fileno()],
        )
    try:
        yield Daphne(f"ws://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.mark.slow
async def test_a_spoken_turn_under_daphne(daphne: Daphne) -> None:
    async with connect(daphne, additional_headers={"api-key": KEY}) as client:
        await client.update(audio={"input": {"transcription": {}}})
        await client.speak(recording("hello") + quiet(1500))
        completed = await client.until("conversation.item.input_audio_transcription.completed")
        assert heard_as(completed["transcript"]) == "hello"
        await client.until("response.done")
        assert len(client.audio()) > 48_000


@pytest.mark.slow
async def test_a_wrong_key_is_refused_under_daphne(daphne: Daphne) -> None:
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with websockets.connect(
            daphne.address + GA, additional_headers={"api-key": "wrong"}, open_timeout=PATIENCE_S
        ):
            pass
    assert caught.value.response.status_code in (401, 403)
