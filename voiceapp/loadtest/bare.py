"""The yardstick: a bare asyncio relay on ``websockets`` and uvloop that transcodes and does nothing else.

Binary frames become ``input_audio_buffer.append`` with base64, audio deltas become binary, other events
are forwarded. It keeps, checks and counts nothing. Run as ``python -m voiceapp.loadtest.bare URL``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys

import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed


async def up(browser: ServerConnection, service: ClientConnection) -> None:
    """Relay the microphone."""
    async for message in browser:
        if isinstance(message, bytes):
            audio = base64.b64encode(message).decode("ascii")
            await service.send(f'{{"type":"input_audio_buffer.append","audio":"{audio}"}}')


async def down(browser: ServerConnection, service: ClientConnection) -> None:
    """Relay the service's events."""
    async for message in service:
        event = json.loads(message)
        if event["type"] == "response.output_audio.delta":
            await browser.send(base64.b64decode(event["delta"]))
        else:
            await browser.send(message)


async def relay(browser: ServerConnection, url: str) -> None:
    """Relay one browser until either side is gone."""
    with contextlib.suppress(ConnectionClosed):
        async with connect(url, compression=None, max_size=2**24, proxy=None) as service:
            await service.send('{"type":"session.update","session":{"type":"realtime"}}')
            tasks = {
                asyncio.ensure_future(up(browser, service)),
                asyncio.ensure_future(down(browser, service)),
            }
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def main(url: str) -> None:
    """Serve on a free port of the loopback interface."""
    async with serve(lambda browser: relay(browser, url), "127.0.0.1", 0, compression=None) as server:
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
