"""A host of a user's own model, on a real socket, that does as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import websockets
from jsonschema import Draft7Validator

from tests.parts.contracts import schema_of
from tests.parts.waits import PATIENCE_S
from voiceapp.text.provider import ReplyRequest, Said

REQUEST = ReplyRequest("Be kind.", (Said("user", "Hello"),), spoken=False)

COMPLETED = {
    "type": "response.completed",
    "response": {"id": "resp_1", "usage": {"input_tokens": 5, "output_tokens": 2}},
}


class Host:
    """A host on a socket that does as a test says. Its link lives in the server's own thread."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.validator = Draft7Validator(schema_of("client-notification.schema.json"))

    async def send(self, **fields: Any) -> None:
        await self.socket.send(json.dumps(fields))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            message: dict[str, Any] = json.loads(await self.socket.recv())
        assert "jsonrpc" not in message
        return message

    async def shake_hands(self) -> None:
        await self.send(
            id=1,
            method="initialize",
            params={"clientInfo": {"name": "test"}, "capabilities": {"experimentalApi": True}},
        )
        assert (await self.receive())["result"]["serverInfo"]["name"] == "voiceapp"
        await self.notify("initialized")

    async def notify(self, method: str, **params: Any) -> None:
        message = {"method": method, **({"params": params} if params else {})}
        self.validator.validate(message)
        await self.socket.send(json.dumps(message))

    async def accept(self) -> dict[str, Any]:
        """Accept the next request; return its params."""
        asked = await self.receive()
        assert asked["method"] == "model/request"
        assert asked["id"] != asked["params"]["requestId"]
        await self.send(id=asked["id"], result={"accepted": True, "rejectionReason": None})
        params: dict[str, Any] = asked["params"]
        return params

    async def say(self, params: dict[str, Any], *events: Any, **other: str) -> None:
        ids = {**{name: params[name] for name in ("threadId", "turnId", "requestId")}, **other}
        for event in events:
            await self.notify("model/streamEvent", **ids, event=event)


@asynccontextmanager
async def host(server: str, token: str, query: str = "", *, ready: bool = True) -> AsyncIterator[Host]:
    address = f"{server}/ws/model-host/{query}"
    async with websockets.connect(
        address, additional_headers={"authorization": f"Bearer {token}"}, open_timeout=PATIENCE_S
    ) as socket:
        made = Host(socket)
        if ready:
            await made.shake_hands()
            # Answers come in order: whoever knows this one has taken what came before.
            await made.send(id=99, method="nothing")
            assert (await made.receive())["error"]["code"] == -32601
        yield made


def delta(words: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": words}


async def generate(server: str, token: str, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(
        base_url=server.replace("ws://", "http://"), timeout=PATIENCE_S, verify=False
    ) as client:
        return await client.post(
            "/v1/generate",
            json={"model": "model-host", "messages": [{"role": "user", "content": "Hello"}], **body},
            headers={"authorization": f"Bearer {token}"},
        )
