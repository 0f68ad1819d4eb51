"""A Realtime service on a real socket that says what a test tells it to say."""

from __future__ import annotations

import asyncio
import base64
import http
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.parts.clock import pass_time
from tests.parts.waits import PATIENCE_S
from voiceapp.protocol import dialects
from voiceapp.protocol.dialects import Dialect, Half

SESSION: dict[str, Any] = {
    "type": "realtime",
    "object": "realtime.session",
    "id": "sess_1",
    "output_modalities": ["audio"],
    "instructions": "SECRET default text",
    "audio": {
        "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": {"type": "server_vad"}},
        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"},
    },
}


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for name, value in new.items():
        known = result.get(name)
        result[name] = merge(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return result


class Service:
    """One scripted service; ``dialect`` is what it speaks, tests always write GA."""

    def __init__(self, dialect: Dialect = Dialect.GA, refuse: int | None = None) -> None:
        self.dialect = dialect
        self.refuse = refuse
        self.url = ""
        self.requests: list[Request] = []
        self.received: list[dict[str, Any]] = []
        self.as_it_came: list[dict[str, Any]] = []
        self.connections = 0
        self.audio = bytearray()
        self.closed = asyncio.Event()
        self.may_begin = asyncio.Event()
        self.may_begin.set()
        self.expires_in_s: float | None = None
        self.refuse_if = ""
        self.refuse_with = "No."
        self.refuse_voice = ""
        self.retry_after = ""
        self.takes_settings = True
        self.closes_when_ready: int | None = None
        self.current: ServerConnection | None = None
        self._changed = asyncio.Condition()
        self._read = 0
        self._session = SESSION
        self._seq = 0

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if self.refuse is None:
            return None
        body = b'{"error":{"code":"refused"}}'
        headers = Headers({"Content-Length": str(len(body))})
        if self.retry_after:
            headers["Retry-After"] = self.retry_after
        return Response(
            self.refuse,
            http.HTTPStatus(self.refuse).phrase,
            headers,
            body,
        )

    async def handle(self, socket: ServerConnection) -> None:
        self.connections += 1
        await self.may_begin.wait()
        self.current = socket
        self.closed.clear()
        self._session = SESSION
        if self.expires_in_s is not None:
            self._session = {**SESSION, "expires_at": int(time.time() + self.expires_in_s)}
        await self.send({"type": "session.created", "session": self._session})
        try:
            async for message in socket:
                await self._take(json.loads(message))
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()

    async def _take(self, raw: dict[str, Any]) -> None:
        self.as_it_came.append(raw)
        for event in dialects.to_ga(raw, self.dialect, Half.CLIENT):
            if event["type"] == "input_audio_buffer.append":
                self.audio += base64.b64decode(event["audio"])
            if event["type"] == "session.update" and not self.takes_settings:
                pass
            elif event["type"] == "session.update" and self.refuse_if and self.refuse_if in json.dumps(event):
                error = {"code": "invalid_value", "message": self.refuse_with, "event_id": event["event_id"]}
                await self.send({"type": "error", "error": error})
            elif event["type"] == "session.update" and self.refuse_voice and self.refuse_voice in str(event):
                error = {"code": "cannot_update_voice", "message": "No.", "event_id": event["event_id"]}
                await self.send({"type": "error", "error": error})
            elif event["type"] == "session.update":
                self._session = merge(self._session, event["session"])
                await self.send({"type": "session.updated", "session": self._session})
                if self.closes_when_ready is not None and self.current is not None:
                    await self.current.close(self.closes_when_ready)
            async with self._changed:
                self.received.append(event)
                self._changed.notify_all()

    async def send(self, *events: dict[str, Any]) -> None:
        assert self.current is not None
        for event in events:
            self._seq += 1
            fields = {"type": event["type"], "event_id": f"event_{self._seq}", **event}
            for spelt in dialects.from_ga(fields, self.dialect, Half.SERVER):
                await self.current.send(json.dumps(spelt))

    async def drop(self) -> None:
        """Cut the line without a word."""
        assert self.current is not None
        self.current.transport.abort()

    async def close(self, code: int) -> None:
        """Close the line in order."""
        assert self.current is not None
        await self.current.close(code)

    async def expect(self, kind: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait for the next client event of a type, passing over others."""
        async with asyncio.timeout(timeout_s), self._changed:
            while True:
                while self._read < len(self.received):
                    event = self.received[self._read]
                    self._read += 1
                    if event["type"] == kind:
                        return event
                await self._changed.wait()

    def pass_over(self) -> None:
        """Expect none of what has come so far."""
        self._read = len(self.received)

    async def expect_none(self, kind: str, within_s: float) -> None:
        """Let time pass; raise ``AssertionError`` if a client event of a type is or comes among the next."""
        await pass_time(within_s)
        assert kind not in [event["type"] for event in self.received[self._read :]]

    def sent_to_me(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.received if event["type"] == kind]

    # -- whole scenes -------------------------------------------------------------------------------

    async def begin_answer(self, response: str = "resp_1", item: str = "item_a1") -> None:
        """Begin an answer in the order in which Azure was recorded to."""
        message = {"id": item, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        where = {"response_id": response, "output_index": 0}
        await self.send(
            {"type": "response.created", "response": {"id": response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", **where, "item": message},
            {"type": "conversation.item.added", "previous_item_id": None, "item": message},
            {
                "type": "response.content_part.added",
                **where,
                "item_id": item,
                "content_index": 0,
                "part": {"type": "audio", "transcript": ""},
            },
        )

    async def say(
        self,
        words: str,
        samples: bytes,
        response: str = "resp_1",
        item: str = "item_a1",
        *,
        whole: bool = False,
    ) -> None:
        """Say something, in deltas of a quarter of a second, or in a ``whole`` one."""
        step = len(samples) if whole else 12_000
        where = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
        await self.send({"type": "response.output_audio_transcript.delta", "delta": words, **where})
        for at in range(0, len(samples), step):
            delta = base64.b64encode(samples[at : at + step]).decode()
            await self.send({"type": "response.output_audio.delta", "delta": delta, **where})

    async def end_answer(
        self,
        words: str,
        response: str = "resp_1",
        item: str = "item_a1",
        status: str = "completed",
        details: dict[str, Any] | None = None,
    ) -> None:
        where = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
        done = {
            "id": item,
            "type": "message",
            "role": "assistant",
            "status": "completed" if status == "completed" else "incomplete",
            "content": [{"type": "output_audio", "transcript": words}],
        }
        await self.send({"type": "response.output_audio.done", **where})
        await self.send({"type": "response.output_audio_transcript.done", "transcript": words, **where})
        part = {"type": "audio", "transcript": words}
        await self.send({"type": "response.content_part.done", "part": part, **where})
        if self.dialect is Dialect.GA:
            await self.send({"type": "conversation.item.done", "previous_item_id": None, "item": done})
        await self.send(
            {"type": "response.output_item.done", "response_id": response, "output_index": 0, "item": done},
            {
                "type": "response.done",
                "response": {
                    "id": response,
                    "status": status,
                    "status_details": details,
                    "output": [done],
                    "usage": {"total_tokens": 12, "input_tokens": 5, "output_tokens": 7},
                },
            },
        )

    async def user_turn(self, words: str | None, item: str = "item_u1", previous: str | None = None) -> None:
        """The service hears a turn; ``words`` of ``None``: the transcript does not come (yet)."""
        await self.send(
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": item},
            {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 900, "item_id": item},
            {"type": "input_audio_buffer.committed", "previous_item_id": previous, "item_id": item},
        )
        user = {
            "id": item,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        await self.send({"type": "conversation.item.added", "previous_item_id": previous, "item": user})
        if self.dialect is Dialect.GA:
            await self.send({"type": "conversation.item.done", "previous_item_id": previous, "item": user})
        if words is not None:
            await self.transcript(words, item)

    async def transcript(self, words: str, item: str = "item_u1") -> None:
        await self.send(
            {
                "type": "conversation.item.input_audio_transcription.completed",
                "item_id": item,
                "content_index": 0,
                "transcript": words,
                "usage": {"type": "duration", "seconds": 1},
            }
        )


@asynccontextmanager
async def service(
    dialect: Dialect = Dialect.GA, refuse: int | None = None, port: int = 0
) -> AsyncIterator[Service]:
    """Run a scripted service on a port of this machine, by default a free one."""
    scripted = Service(dialect, refuse)
    async with serve(
        scripted.handle, "127.0.0.1", port, process_request=scripted.check, max_size=2**24, compression=None
    ) as server:
        port = server.sockets[0].getsockname()[1]
        scripted.url = f"ws://127.0.0.1:{port}"
        yield scripted
