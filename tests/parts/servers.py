"""Real server processes of the product on one data folder, a real Redis, and a page that talks to either."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from tests.parts.page_messages import PageMessages
from tests.parts.places import ROOT
from tests.parts.static_files import put_static_files
from tests.parts.waits import PATIENCE_S
from voiceapp.config import SETTINGS

REDIS = shutil.which("redis-server")


def free_port() -> int:
    """Return a port that nobody listens on, and that no outgoing connection is given before it is used."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 50):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("No port is free.")


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run Redis on a free port; yield its address."""
    assert REDIS is not None
    port = free_port()
    process = subprocess.Popen(
        [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "Redis did not start."
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


class Server:
    """One ``manage.py up``; ``url`` is where it answers."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        names = {setting.name for setting in SETTINGS if setting.name != "DATABASE_URL"}
        clean = {n: v for n, v in os.environ.items() if n not in names and n != "DJANGO_SETTINGS_MODULE"}
        settings = {"VOICEAPP_DATA_DIR": str(data_dir), "VIRTUAL_ENV": sys.prefix, **settings}
        put_static_files(data_dir)
        self.log = (data_dir / f"server-{time.monotonic_ns()}.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up", "--port", "0"],
            cwd=ROOT, env={**clean, **settings}, stdout=self.log, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.url = self.link = ""

    def wait(self) -> None:
        """Wait until it serves."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.link:
            said = Path(self.log.name).read_text()
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            self.link = next((line[7:] for line in said.splitlines() if line.startswith("Ready: ")), "")
            time.sleep(0.05)
        self.url = self.link.rpartition("/signin/")[0]

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self.process.send_signal(number)

    def stop(self) -> None:
        """End it, whatever state it is in."""
        self.process.kill()
        self.process.wait()
        self.log.close()


def press(visitor: urllib.request.OpenerDirector, link: str) -> Any:
    """Open a one-time link and press the button of its page; return the page that comes then."""
    with visitor.open(link, timeout=PATIENCE_S) as page:
        [token] = re.findall('name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())
    pressed = urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode()
    return visitor.open(link, pressed, timeout=PATIENCE_S)


def signed_in(link: str) -> str:
    """Spend a one-time link; return the cookies that it brings."""
    jar = CookieJar()
    with press(urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)), link):
        pass
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def fetched(url: str, cookies: str) -> bytes:
    """Return a page of the site."""
    request = urllib.request.Request(url, headers={"Cookie": cookies})
    return cast(bytes, urllib.request.urlopen(request, timeout=PATIENCE_S).read())


class RealPage(PageMessages):
    """A page on a real socket: numbers every message, and keeps what it was told."""

    def __init__(self, line: ClientConnection) -> None:
        super().__init__()
        self.line = line

    async def send(self, event: dict[str, Any]) -> None:
        await self.line.send(json.dumps(event))

    async def next(self) -> dict[str, Any]:
        """Return the next text message; audio in between is collected."""
        while True:
            try:
                message = await asyncio.wait_for(self.line.recv(), PATIENCE_S)
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd else 1006
                return {"type": "close", "code": code}
            if (event := self.take(message)) is not None:
                return event

    async def until(self, kind: str) -> dict[str, Any]:
        """Read until an event of a type comes."""
        while (event := await self.next())["type"] != kind:
            assert event["type"] != "close", f"closed ({event}) before {kind}"
        return event


@asynccontextmanager
async def real_page(url: str, cookies: str, **start: Any) -> AsyncIterator[RealPage]:
    """Open the page's socket of a server and send the first message; hang up in the end.

    ``url`` may lead through a proxy.
    """
    address = urlsplit(url)
    async with connect(
        f"ws://{address.netloc}/ws/voice/", additional_headers={"Cookie": cookies}, origin=Origin(url),
        compression=None, proxy=None, close_timeout=1,
    ) as line:  # fmt: skip
        page = RealPage(line)
        await page.send({"type": "session.start", **start})
        yield page
        with suppress(ConnectionClosed, TimeoutError):
            await page.send({"type": "session.end"})
            async with asyncio.timeout(2):
                while True:
                    await line.recv()
