"""A model host: connects a Responses- or chat-compatible endpoint to the app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal

import openai
import websockets

from voiceapp.clients.chat_as_responses import ChatEvents
from voiceapp.errors import DecodeError, TextEngineError
from voiceapp.text.chat.provider import chat_body
from voiceapp.text.chat.service import RemoteCompletions
from voiceapp.text.model_host import messages, responses_api
from voiceapp.text.model_host.messages import Answer, Request
from voiceapp.types import JsonObject

Api = Literal["responses", "chat", "auto"]

MAX_AT_ONCE: Final = 16
"""Requests that are served at once; more are rejected, which the app tells its user."""
_INITIALIZE_ID: Final = 1
_RETRY_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
_HEADERS: Final = ("x-codex-turn-state", "openai-model", "x-request-id")
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "error")
_LIMITS: Final = "x-ratelimit-"


class ModelHost:
    """Serves one endpoint. ``model`` is used where the app names none; ``tell`` takes lines for people."""

    def __init__(self, client: openai.AsyncOpenAI, model: str, api: Api, tell: Callable[[str], None]) -> None:
        self._client = client
        self._model = model
        self._api: Api = api
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._chats: dict[str, RemoteCompletions] = {}

    async def run(self, url: str, token: str) -> None:
        """Stay connected to ``ws(s)://…/ws/model-host/`` until cancelled; dial again whenever it is lost.

        Raises ``websockets.InvalidStatus`` where the server refuses the token or knows no such address.
        """
        failures = 0
        while True:
            try:
                await self.serve(url, token)
                failures = 0
                self._tell("The server closed the connection.")
            except websockets.InvalidStatus as error:
                if error.response.status_code in (401, 403, 404):
                    raise
                self._tell(f"The server answered with HTTP {error.response.status_code}.")
            except (OSError, websockets.WebSocketException) as error:
                self._tell(f"The server cannot be reached ({type(error).__name__}).")
            await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S) - 1)])
            failures += 1

    async def serve(self, url: str, token: str) -> None:
        """Serve one connection until it is closed."""
        headers = {"Authorization": f"Bearer {token}"}
        async with websockets.connect(url, additional_headers=headers, max_size=16 * 1024 * 1024) as socket:
            info = {"name": "voiceapp-model-host", "version": "1"}
            hello = {"clientInfo": info, "capabilities": {"experimentalApi": True}}
            await socket.send(messages.request(_INITIALIZE_ID, "initialize", hello))
            try:
                async for text in socket:
                    if isinstance(text, str):
                        await self._receive(socket, text)
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _receive(self, socket: websockets.ClientConnection, text: str) -> None:
        try:
            message = messages.read(text)
        except DecodeError:
            return
        match message:
            case Answer(id=1, error=None):
                await socket.send(messages.notification("initialized"))
                self._tell("Connected to the app.")
            case Request(method="model/request"):
                await self._accept(socket, message)
            case Request():
                failure = f"Unknown method: {message.method[:60]}"
                await socket.send(messages.refusal(message.id, messages.UNKNOWN_METHOD, failure))

    async def _accept(self, socket: websockets.ClientConnection, message: Request) -> None:
        params = message.params if isinstance(message.params, dict) else {}
        ids = {name: params.get(name) for name in ("threadId", "turnId", "requestId")}
        asked = params.get("request")
        reason = ""
        if not isinstance(asked, dict) or not all(isinstance(value, str) for value in ids.values()):
            reason = "the request is not complete"
        elif len(self._tasks) >= MAX_AT_ONCE:
            reason = "too many requests at once"
        answer = {"accepted": not reason, "rejectionReason": reason or None}
        await socket.send(messages.result(message.id, answer))
        if reason or not isinstance(asked, dict):
            return
        task = asyncio.create_task(self._respond(socket, ids, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, socket: websockets.ClientConnection, ids: JsonObject, asked: JsonObject) -> None:
        try:
            events = self._events(asked)
            async with aclosing(events):
                async for kind, value in events:
                    method = "model/streamMetadata" if kind == "metadata" else "model/streamEvent"
                    await socket.send(messages.notification(method, {**ids, kind: value}))
        except openai.APIError as error:
            self._tell(f"The endpoint failed: {type(error).__name__}")
            failure: JsonObject = {
                "message": error.message[:500],
                "type": type(error).__name__,
                "code": error.code,
            }
            await socket.send(messages.notification("model/requestFailed", {**ids, "error": failure}))
        except TextEngineError as error:
            self._tell(f"The endpoint failed: {error.message}")
            failure = {"message": error.message, "type": "endpoint_error", "code": error.code}
            await socket.send(messages.notification("model/requestFailed", {**ids, "error": failure}))
        except websockets.ConnectionClosed:
            return

    async def _events(self, asked: JsonObject) -> AsyncGenerator[tuple[str, JsonObject]]:
        model = asked.get("model")
        fields = {**asked, "model": self._model if model in (None, "", "default") else model}
        if self._api != "chat":
            try:
                events = self._responses(fields)
                async with aclosing(events):
                    async for event in events:
                        self._api = "responses"
                        yield event
                return
            except openai.NotFoundError:
                if self._api == "responses":
                    raise
                # Older servers have chat completions only; what was learnt holds for all later requests.
                self._api = "chat"
        chat = self._chat(fields)
        async with aclosing(chat):
            async for event in chat:
                yield event

    async def _responses(self, fields: JsonObject) -> AsyncGenerator[tuple[str, JsonObject]]:
        options: JsonObject = {}
        if fields.get("tools"):
            options = {
                "tools": fields["tools"],
                "tool_choice": fields.get("toolChoice", "auto"),
                "parallel_tool_calls": bool(fields.get("parallelToolCalls", True)),
            }
        raw = await self._client.responses.with_raw_response.create(
            model=fields["model"],
            instructions=fields.get("instructions") or None,
            input=fields.get("input") or [],
            store=False,
            stream=True,
            extra_headers=_texts(fields.get("requestHeaders")),
            **options,
        )
        yield "metadata", _kept(raw.headers)
        stream, ended = raw.parse(), False
        async with stream:
            async for event in stream:
                ended = ended or event.type in _ENDS
                yield "event", event.to_dict(mode="json")
        if not ended:
            raise TextEngineError("The endpoint broke off its answer.", code="text_engine_error")

    async def _chat(self, fields: JsonObject) -> AsyncGenerator[tuple[str, JsonObject]]:
        model = str(fields["model"])
        if model not in self._chats:
            self._chats = {model: RemoteCompletions(self._client, model, "compatible")}
        headers: list[Mapping[str, str]] = []
        chunks = self._chats[model].stream(chat_body(responses_api.read_request(fields)), headers.append)
        translator = ChatEvents(model)
        async with aclosing(chunks):
            async for chunk in chunks:
                while headers:
                    yield "metadata", _kept(headers.pop())
                for event in translator.feed(chunk):
                    yield "event", event
        for event in translator.finish():
            yield "event", event


def _kept(headers: Any) -> dict[str, str]:
    """Return those headers of an answer that mean something to the app."""
    lowered = {str(name).lower(): str(value) for name, value in headers.items()}
    return {name: value for name, value in lowered.items() if name in _HEADERS or name.startswith(_LIMITS)}


def _texts(headers: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in headers.items()} if isinstance(headers, dict) else {}
