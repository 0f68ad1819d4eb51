"""MCP tools of the embedded engine, against a real MCP server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from django.conf import settings

from tests.parts.engine_server import PREVIEW, EngineServer, RealtimeClient, connect, engine_server
from tests.parts.mcp_server import ToolServer, tool_server
from tests.parts.waits import PATIENCE_S
from voiceapp.outbound.guard import AddressRefused, Guard, is_public
from voiceapp.tools.mcp import client as mcp_client
from voiceapp.tools.mcp.client import NOT_INSTALLED


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
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, private_addresses=True))


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
            assert server.entered.wait(PATIENCE_S)
            server.die()
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


# -- the rest -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_private")
async def test_tools_of_one_response_are_awaited(engine: EngineServer, shop: ToolServer) -> None:
    async with connect(engine) as client:
        await client.update(output_modalities=["text"])
        await client.say("Number 17, please.")
        choice = {"type": "mcp", "server_label": "shop", "name": "order_status"}
        tools = [entry(shop, require_approval="never", allowed_tools=["order_status", "wait"])]
        await client.send("response.create", response={"tools": tools, "tool_choice": choice})
        assert (await call_ended(client))["output"] == "Order 17 is on its way."


@pytest.mark.usefixtures("_private")
async def test_a_redirect_leads_nowhere(engine: EngineServer, shop: ToolServer) -> None:
    before = len(shop.requests)
    with tool_server(redirect_to=shop.url) as other:
        async with listed(engine, entry(other, authorization="secret")) as client:
            assert await failure(client)
    assert len(shop.requests) == before


@pytest.mark.usefixtures("_private")
async def test_the_package_may_be_missing(
    engine: EngineServer, shop: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "voiceapp.tools.mcp.connection", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    async with listed(engine, entry(shop)) as client:
        assert await failure(client) == NOT_INSTALLED


@pytest.mark.usefixtures("_private")
async def test_a_client_that_hangs_up_in_mid_call_leaves_no_call_behind(engine: EngineServer) -> None:
    with tool_server() as server:
        async with listed(engine, entry(server, require_approval="never")) as client:
            await ask(client, "Please wait for somebody.")
            await client.until("response.mcp_call.in_progress")
            assert await asyncio.to_thread(server.entered.wait, 10)
        server.release.set()
        async with listed(engine, entry(server)) as client:
            assert names(client)[-1] == "mcp_list_tools.completed"


async def test_preview_clients_are_told_that_there_is_no_mcp(engine: EngineServer, shop: ToolServer) -> None:
    async with connect(engine, PREVIEW) as client:
        await client.send("session.update", session={"tools": [entry(shop)]})
        error = (await client.until("error", "session.updated"))["error"]
    assert error["code"] == "invalid_value"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True), ("2606:4700::1111", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False),
        ("::1", False), ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False), ("2002:7f00:1::", False), ("nonsense", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_every_address_of_a_name_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 443)) for address in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)
    guard = Guard(private_allowed=False)
    with pytest.raises(AddressRefused, match="public internet"):
        await guard.handle_async_request(httpx2.Request("POST", "https://tools.example/mcp"))
    await guard.aclose()


@pytest.mark.usefixtures("_private")
async def test_a_tool_that_takes_too_long(
    engine: EngineServer, shop: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_client, "_CALL_TIMEOUT_S", 1.0)
    with tool_server() as server:
        async with listed(engine, entry(server, require_approval="never")) as client:
            await ask(client, "Please wait for somebody.")
            item = await call_ended(client)
            assert "within 1 seconds" in item["error"]["message"]
            server.release.set()
