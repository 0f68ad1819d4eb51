"""A server whose every move a test decides: the page's files over HTTP and its socket.

It exists to show what the page does with exact input, at exact moments, which the real server cannot be made
to send. The whole product is tested in ``test_talk.py`` against the real one.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.template import Context, Engine
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.parts.places import ROOT
from tests.parts.waits import PATIENCE_S

HERE = Path(__file__).resolve().parent
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
ASSISTANT = {
    "slug": "guide",
    "name": "Guide",
    "input_format": "audio/pcm",
    "output_format": "audio/pcm",
    "push_to_talk": False,
}
T = TypeVar("T")


class Link:
    """One socket of the page, seen from the server."""

    def __init__(self, server: ScriptedServer, socket: ServerConnection, start: dict[str, Any]) -> None:
        self.start = start
        self.texts: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        self.seq = 0
        self.open = True
        self._server = server
        self._socket = socket

    def ready(self, **changes: Any) -> None:
        """Say that the session is there, by default as it was asked for."""
        audio = self.start["audio"]
        event = {
            "type": "session.ready",
            "session_id": "3f0c2d44-0000-4000-8000-000000000001",
            "assistant": {"slug": self.start["assistant"], "name": "Guide"},
            "audio": {"input": {"type": audio["input"]}, "output": {"type": audio["output"]}},
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 200},
            "transcription": True,
            "upstream": "embedded",
            "grace_ms": 30000,
            "limits": {},
        }
        self.send({**event, **changes})

    def send(self, event: dict[str, Any], *, numbered: bool = True) -> None:
        """Send one event with the next number."""
        if numbered:
            self.seq += 1
            event = {"seq": self.seq, **event}
        self._server.run(self._socket.send(json.dumps(event)))

    def send_audio(self, index: int, samples: bytes) -> None:
        """Send audio of the item that was announced under ``index``."""
        self.send_audio_chunks(index, [samples])

    def send_audio_chunks(self, index: int, chunks: list[bytes]) -> None:
        """Send audio in messages of the given sizes, one right after the other."""

        async def send_all() -> None:
            for chunk in chunks:
                await self._socket.send(struct.pack(">I", index) + chunk)

        self.seq += len(chunks)
        self._server.run(send_all())

    def item(self, index: int, item_id: str) -> None:
        """Announce an item's audio."""
        self.send(
            {
                "type": "audio.item",
                "index": index,
                "item_id": item_id,
                "content_index": 0,
                "response_id": "resp_1",
                "format": self.start["audio"]["output"],
            }
        )

    def close(self, code: int, reason: str = "") -> None:
        """Close the socket with a code."""
        self._server.run(self._socket.close(code, reason))

    def abort(self) -> None:
        """Cut the line without a goodbye."""

        async def cut() -> None:
            self._socket.transport.abort()

        self._server.run(cut())

    def wait_text(
        self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Return the first text from the page that is wanted, waiting for it."""
        return self._server.wait(lambda: next((text for text in self.texts if wanted(text)), None), timeout_s)

    def wait_type(self, name: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Return the first event of a type from the page, waiting for it."""
        return self.wait_text(lambda text: text["type"] == name, timeout_s)

    def wait_frames(self, count: int, timeout_s: float = PATIENCE_S) -> list[bytes]:
        """Return the first ``count`` microphone frames, waiting for them."""
        self._server.wait(lambda: len(self.frames) >= count or None, timeout_s)
        return self.frames[:count]

    def finals(self) -> dict[str, int]:
        """Return the final playback reports: played milliseconds by item."""
        return {text["item_id"]: text["played_ms"] for text in self.texts if text.get("final")}


class ScriptedServer:
    """Runs on a thread of its own; the methods are for the test's thread."""

    def __init__(self, assistants: list[dict[str, Any]] | None = None) -> None:
        self.assistants = assistants or [ASSISTANT]
        self.links: list[Link] = []
        self.refuse = False
        self.continues: dict[str, str] | None = None
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self.run(self._listen())
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        self._engine = Engine(
            dirs=[str(ROOT / "templates")],
            libraries={"static": "tests.browser.plain_static", "modules": "tests.browser.plain_static"},
        )

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def wait(self, look: Callable[[], T | None], timeout_s: float) -> T:
        """Return what ``look`` finds, waiting until it finds something."""
        end = time.monotonic() + timeout_s
        with self._changed:
            while (found := look()) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError("The page did not do what was waited for.")
                self._changed.wait(left)
            return found

    def link(self, number: int = 0, timeout_s: float = PATIENCE_S) -> Link:
        """Return the page's socket of that number, waiting for its first message."""
        return self.wait(lambda: self.links[number] if len(self.links) > number else None, timeout_s)

    def close(self) -> None:
        """Stop listening and end the thread."""

        async def shut() -> None:
            self._server.close()
            await self._server.wait_closed()

        self.run(shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _listen(self) -> Server:
        return await serve(self._talk, "127.0.0.1", 0, process_request=self._answer, max_size=None)

    async def _talk(self, socket: ServerConnection) -> None:
        link: Link | None = None
        try:
            link = Link(self, socket, json.loads(await socket.recv()))
            with self._changed:
                self.links.append(link)
                self._changed.notify_all()
            async for message in socket:
                if isinstance(message, bytes):
                    link.frames.append(message)
                else:
                    await self._text(link, socket, json.loads(message))
                with self._changed:
                    self._changed.notify_all()
        except ConnectionClosed:
            pass
        finally:
            if link:
                link.open = False
            with self._changed:
                self._changed.notify_all()

    async def _text(self, link: Link, socket: ServerConnection, text: dict[str, Any]) -> None:
        link.texts.append(text)
        if text["type"] == "ping":
            await socket.send(json.dumps({"type": "pong"}))

    def _answer(self, _socket: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path).path
        if path == "/ws/voice/":
            return _response(HTTPStatus.SERVICE_UNAVAILABLE, b"", "text/plain") if self.refuse else None
        if path == "/":
            return _response(HTTPStatus.OK, self._page().encode(), "text/html; charset=utf-8")
        if path == "/tap-worklet.js":
            return _response(HTTPStatus.OK, (HERE / "tap-worklet.js").read_bytes(), "text/javascript")
        file = (ROOT / path.lstrip("/")).resolve()
        if path.startswith("/static/") and file.is_file() and file.is_relative_to(ROOT / "static"):
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            return _response(HTTPStatus.OK, file.read_bytes(), kind)
        return _response(HTTPStatus.NOT_FOUND, b"There is no such page.", "text/plain")

    def _page(self) -> str:
        config: dict[str, Any] = {
            "socket": "/ws/voice/",
            "assistants": self.assistants,
            "user": "ada",
            "isAdmin": True,
        }
        if self.continues:
            config["continues"] = self.continues
        template = self._engine.get_template("voiceapp/index.html")
        return str(template.render(Context({"page_config": config, "recent": []})))


def _response(status: HTTPStatus, body: bytes, kind: str) -> Response:
    headers = Headers(
        {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": POLICY,
            "Connection": "close",
        }
    )
    return Response(status.value, status.phrase, headers, body)
