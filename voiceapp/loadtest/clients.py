"""Pages for load: each sends a frame every 20 ms and times the way there and back.

Run as ``python -m voiceapp.loadtest.clients``: it reads one JSON request a line and prints one JSON answer
a line, so that one process measures all steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import struct
import sys
import time
from typing import Any

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

FRAME_S = 0.02
FRAME_BYTES = 960
JOIN_S = 20
LEAVE_S = 20
REPORT_FRAMES = 10
"""A page reports its playback every 200 ms."""


class Client(WSListener):
    """One page. Frames carry the time at which they were sent; the service echoes them."""

    def __init__(self, *, product: bool) -> None:
        self.product = product
        self.ready = asyncio.get_running_loop().create_future()
        self.delays: list[float] = []
        self.counting = False
        self.seq = 0
        self.frames = 0
        self.item = ""
        self.played_ms = 0

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Begin a session."""
        self.transport = transport
        if self.product:
            transport.send(WSMsgType.TEXT, b'{"type":"session.start"}')

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Time an echo, or note where the conversation is."""
        kind = frame.msg_type
        if kind is WSMsgType.BINARY:
            self.seq += 1
            data = frame.get_payload_as_bytes()
            if self.counting:
                (sent,) = struct.unpack_from("<d", data, 4 if self.product else 0)
                self.delays.append(time.perf_counter() - sent)
        elif kind is WSMsgType.TEXT:
            self._text(frame.get_payload_as_bytes())
        elif kind is WSMsgType.CLOSE:
            if not self.ready.done():
                self.ready.set_exception(ConnectionError(frame.get_close_reason()))
            transport.send_close(frame.get_close_code(), None)
            transport.disconnect()

    def _text(self, text: bytes) -> None:
        if text.startswith(b'{"seq":'):
            self.seq = int(text[7 : text.index(b",")])
        if not self.ready.done() and (b'"session.ready"' in text or b'"session.updated"' in text):
            self.ready.set_result(None)
        if b'"audio.item"' in text[:40]:
            self.item, self.played_ms = json.loads(text)["item_id"], 0

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """Fail a start that will not come."""
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("closed before the session was ready"))

    def send_frame(self) -> None:
        """Send 20 ms of microphone, and now and then what was played."""
        self.transport.send(
            WSMsgType.BINARY, struct.pack("<d", time.perf_counter()).ljust(FRAME_BYTES, b"\1")
        )
        self.frames += 1
        if self.product and self.item and self.frames % REPORT_FRAMES == 0:
            self.played_ms += 200
            report = {
                "type": "playback.report", "item_id": self.item, "played_ms": self.played_ms, "seq": self.seq,
            }  # fmt: skip
            self.transport.send(WSMsgType.TEXT, json.dumps(report).encode())


class Crowd:
    """The clients of one relay; they come and stay until ``leave``."""

    def __init__(self, url: str, headers: dict[str, str], *, product: bool) -> None:
        self.url, self.headers, self.product = url, headers, product
        self.clients: list[Client] = []

    async def resize(self, size: int) -> int:
        """Let clients join, or the last ones leave, until there are ``size``; stop where one cannot join.

        Return how many left.
        """
        there = [client for client in self.clients if not client.transport.is_disconnected]
        self.clients = there[:size]
        await self._dismiss(there[size:])
        while len(self.clients) < size:
            batch = min(10, size - len(self.clients))
            joined = await asyncio.gather(*(self._join() for _ in range(batch)), return_exceptions=True)
            self.clients += [client for client in joined if isinstance(client, Client)]
            if not all(isinstance(client, Client) for client in joined):
                break
        return len(there[size:])

    async def _join(self) -> Client:
        transport, client = await ws_connect(
            lambda: Client(product=self.product), self.url, extra_headers=self.headers, max_redirects=0
        )
        assert isinstance(client, Client)
        try:
            async with asyncio.timeout(JOIN_S):
                await client.ready
        except BaseException:
            transport.disconnect()
            raise
        return client

    async def talk(self, seconds: float, *, counting: bool) -> float:
        """Send frames in real time, the clients evenly spread over each 20 ms; return how long that took."""
        for client in self.clients:
            client.counting = counting
        loop = asyncio.get_running_loop()
        start = loop.time() + 0.05
        slots = len(self.clients)
        for n in range(round(seconds / FRAME_S) * slots):
            due = start + n * FRAME_S / slots
            if due - loop.time() > 0.0005:
                await asyncio.sleep(due - loop.time())
            self.clients[n % slots].send_frame()
            if n % 8 == 7:
                # Echoes are timed when they are read, so reading must not wait for the sending.
                await asyncio.sleep(0)
        return loop.time() - start

    async def leave(self) -> None:
        """Hang up."""
        leaving, self.clients = self.clients, []
        await self._dismiss(leaving)

    async def _dismiss(self, leaving: list[Client]) -> None:
        for client in leaving:
            if self.product:
                client.transport.send(WSMsgType.TEXT, b'{"type":"session.end"}')
            else:
                client.transport.disconnect()
        # How a connection ended does not matter any more, nor what a relay that hangs does about it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                waits = (client.transport.wait_disconnected() for client in leaving)
                await asyncio.gather(*waits, return_exceptions=True)
        for client in leaving:
            client.transport.disconnect(graceful=False)

    def results(self) -> dict[str, Any]:
        """Return the delays in milliseconds and the number of timed echoes since the last call."""
        delays = sorted(delay for client in self.clients for delay in client.delays)
        for client in self.clients:
            client.delays = []
        joined = sum(not client.transport.is_disconnected for client in self.clients)
        return {
            "joined": joined,
            "frames": len(delays),
            "p99_ms": _at(delays, 0.99),
        }


def _at(delays: list[float], share: float) -> float:
    """Return the delay, in milliseconds, that ``share`` of sorted delays in seconds do not exceed."""
    return 1000 * delays[min(int(len(delays) * share), len(delays) - 1)] if delays else math.inf


async def main() -> None:
    """Obey requests: ``open``, ``resize``, ``talk``, ``leave``."""
    crowds: dict[str, Crowd] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        name = request["relay"]
        answer: dict[str, Any] = {}
        if request["do"] == "open":
            crowds[name] = Crowd(request["url"], request["headers"], product=request["product"])
        elif request["do"] == "resize":
            answer = {"left": await crowds[name].resize(request["size"])}
        elif request["do"] == "talk":
            took_s = await crowds[name].talk(request["seconds"], counting=request["counting"])
            await asyncio.sleep(0.1)
            answer = crowds[name].results() | {"took_s": took_s}
        elif request["do"] == "leave":
            await crowds[name].leave()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main())
