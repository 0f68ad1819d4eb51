"""A TCP proxy that misbehaves as networks do: it falls silent, closes what is idle, or holds back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes on between who connects and one address."""

    def __init__(self, host: str, port: int, idle_s: float | None, *, renames: bool = False) -> None:
        self._target = (host, port)
        self._idle_s = idle_s
        self._renames = renames
        self.hold_s = 0.0
        """How long it keeps what it got before it hands it on, with all that came meanwhile."""
        self._open = asyncio.Event()
        self._open.set()
        self._deaf: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0
        self.closed_idle = 0

    def freeze(self) -> None:
        """Pass nothing on any more: what is open stays open and dies, what is new waits."""
        self._open.clear()
        self._deaf |= self._tasks

    def thaw(self) -> None:
        """Let new connections through; those that died stay dead, without a word."""
        self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        out: asyncio.StreamWriter | None = None
        try:
            await self._open.wait()
            back, out = await asyncio.open_connection(*self._target)
            async with asyncio.TaskGroup() as group:
                heard = [asyncio.get_running_loop().time()]
                pipes = [
                    group.create_task(self._pipe(task, reader, out, heard)),
                    group.create_task(self._pipe(task, back, writer, heard)),
                ]
                if self._idle_s is not None:
                    watch = group.create_task(self._watch(heard, self._idle_s, pipes))
                    pipes[0].add_done_callback(lambda _: watch.cancel())
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            # However it ended, even by ``aclose``: the streams' own callback reports a cancelled task.
            pass
        finally:
            self._tasks.discard(task)
            for side in (writer, out):
                if side is not None:
                    side.close()
                    with suppress(OSError):
                        await side.wait_closed()

    async def _pipe(
        self,
        connection: asyncio.Task[None],
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        heard: list[float],
    ) -> None:
        while data := await source.read(1 << 16):
            if self.hold_s:
                await asyncio.sleep(self.hold_s)
            if connection in self._deaf:
                continue
            heard[0] = asyncio.get_running_loop().time()
            if self._renames:
                # As many proxies do unless they are asked not to.
                data = data.replace(b"Host: 127.0.0.1:%d" % self.port, b"Host: %b:%d" % self._named())
            sink.write(data)
            await sink.drain()
        if connection in self._deaf:
            # Nor does the other side hear that this one is gone.
            await asyncio.Event().wait()
        sink.close()

    def _named(self) -> tuple[bytes, int]:
        return self._target[0].encode(), self._target[1]

    async def _watch(self, heard: list[float], idle_s: float, pipes: list[asyncio.Task[None]]) -> None:
        while (quiet := asyncio.get_running_loop().time() - heard[0]) < idle_s:
            await asyncio.sleep(idle_s - quiet)
        self.closed_idle += 1
        for pipe in pipes:
            pipe.cancel()

    async def aclose(self) -> None:
        """End what is open."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxy(
    host: str, port: int, *, idle_s: float | None = None, renames: bool = False
) -> AsyncIterator[Proxy]:
    """Run a proxy on a free port; ``idle_s`` is after how long it closes what is idle.

    One that ``renames`` has its own address in place of the one that a browser asked for.
    """
    made = Proxy(host, port, idle_s, renames=renames)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.aclose()
