"""The engine on a real socket under Uvicorn, and a client that reads what it says."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import uvicorn
import websockets
from django.conf import settings

from tests.parts.clock import in_its_time, pause, still_time
from tests.parts.engine_parts import loaded, quiet
from tests.parts.quick_server import QuickServer, in_this_loop
from tests.parts.waits import PATIENCE_S
from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.server.consumer import RealtimeConsumer
from voiceapp.serving.http_protocol import HttpProtocol
from voiceapp.serving.socket_protocol import SocketProtocol

TIMEOUT_S = PATIENCE_S


class Addressed(Protocol):
    """A server that is running."""

    @property
    def address(self) -> str: ...


class EngineServer(QuickServer):
    """Serves the engine's sockets, or another application, in a thread."""

    def __init__(self, app: Any = None) -> None:
        config = uvicorn.Config(
            app or RealtimeConsumer.as_asgi(),
            lifespan="off",
            log_level="warning",
            http=HttpProtocol,
            ws=SocketProtocol,
            ws_max_size=32 * 1024 * 1024,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=5,
        )
        super().__init__(config)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"ws://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self.run, kwargs={"sockets": [self._socket]}, daemon=True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready.set()

    def __enter__(self) -> EngineServer:
        self._thread.start()
        assert self._ready.wait(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(TIMEOUT_S)
        self._socket.close()

    def wait_idle(self) -> None:
        """Return once all that clients began has ended; raise ``AssertionError`` after ``TIMEOUT_S``."""
        end = time.monotonic() + TIMEOUT_S
        while self.server_state.tasks:
            assert time.monotonic() < end, f"still running: {self.server_state.tasks}"
            time.sleep(0.002)


@contextmanager
def engine_server() -> Iterator[EngineServer]:
    """Serve the engine for as long as the context lasts."""
    with EngineServer() as server:
        yield server


@dataclass(frozen=True)
class EngineHere:
    """The engine, served in the test's own event loop."""

    address: str


@asynccontextmanager
async def engine_in_still_time() -> AsyncIterator[EngineHere]:
    """Serve the engine in this event loop, while time passes only where a client waits or speaks."""
    await asyncio.to_thread(loaded)
    async with in_this_loop(RealtimeConsumer.as_asgi()) as address:
        with still_time():
            yield EngineHere(address)


GA = "/openai/v1/realtime?model=some-model"
PREVIEW = "/openai/realtime?api-version=2025-04-01-preview&deployment=some-model"


class RealtimeClient:
    """Sends JSON, keeps every event, and waits for the ones that a test needs."""

    def __init__(self, connection: websockets.ClientConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def update(self, **session: Any) -> dict[str, Any]:
        await self.send("session.update", session={"type": "realtime", **session})
        return await self.until("session.updated")

    async def until_any(self) -> dict[str, Any]:
        """Return the next event."""
        event: dict[str, Any] = json.loads(await self.connection.recv())
        self.events.append(event)
        return event

    async def until(self, *kinds: str) -> dict[str, Any]:
        """Read on until one of ``kinds`` comes; return it."""
        return await in_its_time(self._until(kinds))

    async def _until(self, kinds: tuple[str, ...]) -> dict[str, Any]:
        async with asyncio.timeout(TIMEOUT_S):
            while (event := await self.until_any())["type"] not in kinds:
                pass
        return event

    async def say(self, text: str) -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.send("conversation.item.create", item=item)

    async def speak(
        self, audio: bytes, audio_format: AudioFormat = AudioFormat.PCM16, *, paced: bool = False
    ) -> None:
        """Append audio in frames of 20 ms, in the time that it takes to say it if ``paced``."""
        size = 20 * audio_format.bytes_per_ms
        loop = asyncio.get_running_loop()
        due = loop.time()
        for start in range(0, len(audio), size):
            frame = base64.b64encode(audio[start : start + size]).decode()
            await self.send("input_audio_buffer.append", audio=frame)
            if paced:
                due += 0.02
                await pause(max(0, due - loop.time()))

    async def finish_turn(self, audio_format: AudioFormat = AudioFormat.PCM16) -> None:
        """Be silent for long enough to end a turn."""
        await self.speak(quiet(1500, audio_format), audio_format)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events so far of some kinds."""
        return [event for event in self.events if event["type"] in kinds]

    def audio(self, kind: str = "response.output_audio.delta") -> bytes:
        """Return all audio heard."""
        return b"".join(base64.b64decode(event["delta"]) for event in self.of(kind))


@asynccontextmanager
async def connect(server: Addressed, path: str = GA, **options: Any) -> AsyncIterator[RealtimeClient]:
    """Connect with the engine's key and read ``session.created``."""
    options.setdefault("additional_headers", {"api-key": settings.VOICE.engine_api_key})
    async with websockets.connect(
        server.address + path,
        max_size=None,
        compression=None,
        **{"max_queue": None, "open_timeout": PATIENCE_S, **options},
    ) as connection:
        client = RealtimeClient(connection)
        client.events.append(json.loads(await connection.recv()))
        yield client


TRANSCRIPTION = "conversation.item.input_audio_transcription"
