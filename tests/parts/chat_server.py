"""A chat-completions endpoint on a real socket that answers as scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import openai
import pytest
from django.conf import settings

from voiceapp.text.chat.provider import ChatProvider
from voiceapp.text.chat.service import RemoteCompletions, client_options
from voiceapp.text.providers import TextEngines, text_engines


@dataclass
class ChatServer:
    """``script`` is what is sent after the request's head; ``requests`` are the bodies received.

    ``then`` are the scripts of the requests after the first. ``comments`` follow without end until the
    client leaves. A request that holds one of ``refuses`` is refused by the name of the first.
    """

    status: str = "200 OK"
    script: list[bytes] = field(default_factory=list)
    then: list[list[bytes]] = field(default_factory=list)
    headers: str = "content-type: text/event-stream"
    hold: asyncio.Event | None = None
    comments: bool = False
    refuses: tuple[str, ...] = ()
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    base_url: str = ""
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            self.serving.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        self.heads.append(fields)
        self.paths.append(head.split(" ", 2)[1])
        self.keys.append(fields.get("authorization", ""))
        self.requests.append(json.loads(await reader.readexactly(int(fields["content-length"]))))
        if named := next((name for name in self.refuses if name in self.requests[-1]), ""):
            says = {"message": f"Unsupported parameter: '{named}'.", "param": named, "code": "x"}
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n")
            writer.write(b"connection: close\r\n\r\n" + json.dumps({"error": says}).encode())
            return
        writer.write(f"HTTP/1.1 {self.status}\r\n{self.headers}\r\nconnection: close\r\n\r\n".encode())
        later = self.then[: len(self.requests) - 1]
        for part in later[-1] if later else self.script:
            writer.write(part)
            await writer.drain()
        while self.comments and not reader.at_eof():
            writer.write(b": still there\n\n")
            # Only reading tells that the client has left.
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        if self.hold is not None:
            with suppress(ConnectionError):
                await reader.read()
            self.left.set()


def chat_provider(base_url: str, key: str = "", model: str = "some-model") -> ChatProvider:
    """Return a provider that thinks by the endpoint at ``base_url``."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key=key or "none", **client_options())
    return ChatProvider(RemoteCompletions(client, model, "compatible"))


@asynccontextmanager
async def chat_server(**settings: Any) -> AsyncIterator[ChatServer]:
    """Serve on a port of its own."""
    chat = ChatServer(**settings)
    server = await asyncio.start_server(chat.serve, "127.0.0.1", 0)
    chat.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield chat
    finally:
        server.close()
        for task in list(chat.serving):
            task.cancel()
        await asyncio.gather(*chat.serving, return_exceptions=True)


def sse(*chunks: dict[str, Any] | str, newline: str = "\n") -> list[bytes]:
    """Return chunks as server-sent events, one part each."""
    return [
        f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}{newline}{newline}".encode()
        for chunk in chunks
    ]


def chunk(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return one chunk of a stream."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": list(choices), **fields}


def text(content: str, **choice: Any) -> dict[str, Any]:
    """Return a chunk that brings text."""
    return chunk({"index": 0, "delta": {"content": content}, "finish_reason": None, **choice})


def calls(*fragments: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """Return a chunk that brings pieces of tool calls."""
    return chunk({"index": 0, "delta": {"tool_calls": list(fragments)}, "finish_reason": None, **choice})


def fragment(index: int | None = None, **fields: Any) -> dict[str, Any]:
    """A piece of a call; ``name`` and ``arguments`` go where a chunk has them."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {
        **({} if index is None else {"index": index}),
        **fields,
        **({"function": function} if function else {}),
    }


def ending(reason: str = "tool_calls") -> dict[str, Any]:
    """Return the chunk that says why the stream ends."""
    return chunk({"index": 0, "delta": {}, "finish_reason": reason})


STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
USAGE = chunk(usage={"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14})


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, chat: ChatServer, **changes: Any) -> Iterator[None]:
    """Let a chat service answer instead of the brain; ``changes`` are further settings."""
    voice = {"text_base_url": chat.base_url, "text_model": "upstream-model", **changes}
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, **voice))
    with text_engines.use(TextEngines()):
        yield


@asynccontextmanager
async def chat_behind(monkeypatch: pytest.MonkeyPatch, **script: Any) -> AsyncIterator[Any]:
    """Let a scripted chat service answer instead of the brain."""
    async with chat_server(**script) as chat:
        with answering(monkeypatch, chat):
            yield chat
