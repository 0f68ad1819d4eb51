"""A service with an HTTP interface, on a real socket, and the OpenAPI document that describes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.parts.nnrp_parts import serving
from voiceapp.assistants.http_tools import HttpToolsConfig
from voiceapp.records.models import HttpToolSet as Row
from voiceapp.tools.http.openapi import read_document
from voiceapp.types import JsonObject


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ShopService:
    """Keeps orders; ``requests`` are those that came."""

    requests: list[Asked] = field(default_factory=list)
    redirect_to: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def __call__(self, scope: JsonObject, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        asked = Asked(scope["method"], path, query, headers, body)
        self.requests.append(asked)
        status, kind, answer = await self._answer(asked)
        head = [(b"content-type", kind.encode())] if kind else []
        if status == 302:
            head.append((b"location", self.redirect_to.encode()))
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, asked: Asked) -> tuple[int, str, bytes]:
        match asked.path.rpartition("/")[2]:
            case "big":
                return 200, "application/json", json.dumps("x" * 1_000_000).encode()
            case "picture":
                return 200, "image/png", b"\x89PNG"
            case "moved":
                return 302, "text/plain", b"elsewhere"
            case "broken":
                told = f"no order for {asked.headers.get('authorization')} and {asked.query}"
                return 422, "application/json", json.dumps({"detail": told}).encode()
            case "slow":
                await self.gate.wait()
                return 200, "text/plain", b"late"
            case "nothing":
                return 204, "", b""
        order = {"order": asked.path.rpartition("/")[2], "state": "on its way"}
        return 200, "application/json; charset=utf-8", json.dumps(order).encode()


@asynccontextmanager
async def shop_service() -> AsyncIterator[ShopService]:
    """Serve on a port of its own; ``url`` is its base URL."""
    service = ShopService()
    async with serving(service) as address:
        service.url = address.replace("ws://", "http://").removesuffix("/nnrp") + "/v1"
        yield service


def document(url: str = "https://shop.example/v1", **changes: Any) -> JsonObject:
    """Return the service's description."""
    identity = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    made: JsonObject = {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": url}],
        "paths": {
            "/orders/{id}": {
                "parameters": [identity],
                "get": {"operationId": "getOrder", "summary": "Tell where an order is"},
                "delete": {"operationId": "cancelOrder", "summary": "Cancel an order"},
            },
            "/orders": {
                "get": {
                    "summary": "List orders",
                    "parameters": [
                        {"name": "state", "in": "query", "schema": {"type": "string"}},
                        {
                            "name": "tag",
                            "in": "query",
                            "schema": {"type": "array", "items": {"type": "string"}},
                        },
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    ],
                },
                "post": {
                    "operationId": "createOrder",
                    "summary": "Order something",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                    },
                },
            },
        },
        "components": {
            "schemas": {
                "Order": {
                    "type": "object",
                    "required": ["item", "number"],
                    "properties": {
                        "number": {"type": "integer", "readOnly": True},
                        "item": {"type": "string", "description": "What to order"},
                        "amount": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                        "note": {"type": "string", "nullable": True},
                        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}},
                    },
                }
            }
        },
    }
    return {**made, **changes}


SECRET = "s3cret/key value"


def tool_set(root: Any, base_url: str, **options: Any) -> HttpToolsConfig:
    made = read_document(json.dumps(root), fixed_address=True)
    return HttpToolsConfig(slug="shop", name="Shop", base_url=base_url, operations=made.operations, **options)


async def row_of(shop: ShopService, **fields: Any) -> Row:
    made = {"name": "Shop", "slug": "shop", "document": json.dumps(document()), "base_url": shop.url}
    return await Row.objects.acreate(**{**made, **fields})
