"""Uvicorn as it is used beside tests: in their process, and many times."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import uvicorn

from voiceapp.serving.http_protocol import HttpProtocol
from voiceapp.serving.socket_protocol import SocketProtocol

_LOOK_S = 0.002


class QuickServer(uvicorn.Server):
    """Uvicorn that ends as soon as it may.

    Uvicorn looks ten times a second whether it is to stop, and then waits for a tenth of a second whether
    anything is open or not.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def stop(self) -> None:
        """Begin the end; may be called from any thread."""
        self.should_exit = True
        if self._loop is not None and self._stop is not None:
            # Its loop may be closed: it may have ended before.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)

    def capture_signals(self) -> Any:
        """Leave signals to pytest."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        """Serve until ``stop`` was called."""
        assert self._stop is not None
        await self.on_tick(0)
        if not self.should_exit:
            await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is open, in Uvicorn's order and with its patience."""
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while (state.connections or state.tasks) and not self.force_exit:
                    await asyncio.sleep(_LOOK_S)
        for task in state.tasks:
            task.cancel()
        if not self.force_exit:
            await self.lifespan.shutdown()


@asynccontextmanager
async def in_this_loop(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application on a socket in the test's own event loop; return its address as ``ws://…``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = QuickServer(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                log_level="warning",
                http=HttpProtocol,
                ws=SocketProtocol,
                ws_max_size=32 * 1024 * 1024,
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=5,
            )
        )
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started:
                await asyncio.sleep(_LOOK_S)
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await task
