"""MCP tools of the embedded engine, against a real MCP server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from tests.engine_server import EngineServer, RealtimeClient, connect, engine_server
from tests.mcp_server import ToolServer, tool_server


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    with tool_server() as server:
        yield server


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    with engine_server() as server:
        yield server


@pytest.fixture
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, engine_mcp_private=True))


def entry(server: ToolServer, **more: Any) -> dict[str, Any]:
    return {"type": "mcp", "server_label": "shop", "server_url": server.url, **more}


@asynccontextmanager
async def listed(engine: EngineServer, *tools: dict[str, Any]) -> AsyncIterator[RealtimeClient]:
    """Connect and wait until the tools are known."""
    async with connect(engine) as client:
        await client.update(output_modalities=["text"], tools=list(tools))
        await client.until("mcp_list_tools.completed", "mcp_list_tools.failed")
        yield client


async def ask(client: RealtimeClient, text: str) -> None:
    await client.say(text)
    await client.send("response.create")


async def call_ended(client: RealtimeClient) -> dict[str, Any]:
    """Read on until a call's item is done; return the item."""
    while (item := (await client.until("response.output_item.done"))["item"])["type"] != "mcp_call":
        pass
    return dict(item)


def names(client: RealtimeClient) -> list[str]:
    return [event["type"] for event in client.events]


@pytest.mark.usefixtures("_private")
async def test_tools_are_listed(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop, authorization="secret")) as client:
        begun, ended = client.of("mcp_list_tools.in_progress", "mcp_list_tools.completed")
        item = client.of("conversation.item.done")[0]["item"]
        updated = client.of("session.updated")[0]["session"]["tools"][0]
    assert begun["item_id"] == ended["item_id"] == item["id"]
    assert (item["type"], item["server_label"]) == ("mcp_list_tools", "shop")
    assert [tool["name"] for tool in item["tools"]] == ["order_status", "cancel_order", "essay", "wait"]
    assert item["tools"][0]["input_schema"]["required"] == ["order"]
    assert item["tools"][0]["annotations"]["readOnlyHint"] is True
    assert shop.requests[-1]["authorization"] == "Bearer secret"
    assert "authorization" not in updated, "a secret is never shown"


@pytest.mark.usefixtures("_private")
async def test_a_call_runs_and_is_told(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop, require_approval="never")) as client:
        await ask(client, "What is the status of order 17?")
        item = await call_ended(client)
        assert item["output"] == "Order 17 is on its way."
        assert item["error"] is None
        assert json.loads(item["arguments"]) == {"order": 17}
        told = [name for name in names(client) if "mcp_call" in name or "output_item" in name]
        assert list(dict.fromkeys(told)) == [
            "response.output_item.added", "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done", "response.mcp_call.in_progress",
            "response.mcp_call.completed", "response.output_item.done",
        ]  # fmt: skip
        await client.send("response.create")
        assert "on its way" in (await client.until("response.output_text.done"))["text"]


@pytest.mark.usefixtures("_private")
async def test_a_tool_that_fails(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop, require_approval="never")) as client:
        await ask(client, "Please cancel order 17.")
        item = await call_ended(client)
        assert item["error"]["type"] == "tool_execution_error"
        assert "The order has left the house." in item["error"]["message"]
        assert client.of("response.mcp_call.failed")[0]["item_id"] == item["id"]
        await client.send("response.create")
        assert "did not work" in (await client.until("response.output_text.done"))["text"]


@pytest.mark.usefixtures("_private")
async def test_a_long_output_is_cut(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop, require_approval="never")) as client:
        await ask(client, "Write an essay.")
        assert len((await call_ended(client))["output"]) < 33_000


async def failure(client: RealtimeClient) -> str:
    assert "mcp_list_tools.failed" in names(client)
    return str(client.of("conversation.item.done")[0]["item"]["error"])


async def test_private_addresses_are_refused(engine: EngineServer, shop: ToolServer) -> None:
    before = len(shop.requests)
    async with listed(engine, entry(shop)) as client:
        assert "https only" in await failure(client)
    for host in ("localhost", "[::1]", "0.0.0.0", "127.1", "[::ffff:127.0.0.1]"):
        async with listed(engine, {**entry(shop), "server_url": f"https://{host}:{shop.port}/mcp"}) as client:
            assert "public internet" in await failure(client)
    assert len(shop.requests) == before


@pytest.mark.usefixtures("_private")
async def test_servers_that_refuse_or_are_gone(engine: EngineServer) -> None:
    with tool_server(token="right") as locked:
        async with listed(engine, entry(locked, authorization="wrong")) as client:
            assert "401" in await failure(client)
        async with listed(engine, entry(locked, authorization="right")) as client:
            assert names(client)[-1] == "mcp_list_tools.completed"
    async with listed(engine, entry(locked)) as client:
        assert "could not be reached" in await failure(client)


@pytest.mark.usefixtures("_private")
async def test_a_server_that_dies_in_mid_call(engine: EngineServer) -> None:
    with tool_server() as server:
        async with listed(engine, entry(server, require_approval="never")) as client:
            await ask(client, "Please wait for somebody.")
            await client.until("response.mcp_call.in_progress")
            assert server.entered.wait(10)
            server.force_exit = server.should_exit = True
            item = await call_ended(client)
            assert item["error"]["type"] in ("http_error", "protocol_error")
            assert item["status"] == "failed"


# -- approval -------------------------------------------------------------------------------------------


async def until_asked(client: RealtimeClient) -> dict[str, Any]:
    """Read on until approval is asked for and the response is over; return the request."""
    while (item := (await client.until("response.output_item.done"))["item"])[
        "type"
    ] != "mcp_approval_request":
        pass
    assert (await client.until("response.done"))["response"]["status"] == "completed"
    return dict(item)


async def answer(client: RealtimeClient, request: dict[str, Any], *, approve: bool, **more: Any) -> None:
    item = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve, **more}
    await client.send("conversation.item.create", item=item)


@pytest.mark.usefixtures("_private")
async def test_a_call_waits_for_its_approval(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop)) as client:
        await ask(client, "What is the status of order 17?")
        request = await until_asked(client)
        assert (request["server_label"], request["name"]) == ("shop", "order_status")
        assert json.loads(request["arguments"]) == {"order": 17}
        assert not client.of("response.mcp_call.in_progress")
        await answer(client, request, approve=True)
        item = await call_ended(client)
        assert item["approval_request_id"] == request["id"]
        assert item["output"] == "Order 17 is on its way."
        await answer(client, request, approve=True)
        error = (await client.until("error"))["error"]
        assert error["param"] == "item.approval_request_id"
        await client.send("response.create")
        assert "on its way" in (await client.until("response.output_text.done"))["text"]


@pytest.mark.usefixtures("_private")
async def test_a_call_that_is_not_approved_never_runs(engine: EngineServer, shop: ToolServer) -> None:
    async with listed(engine, entry(shop)) as client:
        await ask(client, "What is the status of order 17?")
        request = await until_asked(client)
        asked = len(shop.requests)
        await answer(client, request, approve=False, reason="Too private.")
        item = await call_ended(client)
        assert "Too private." in item["error"]["message"]
        assert not client.of("response.mcp_call.in_progress")
        assert len(shop.requests) == asked
