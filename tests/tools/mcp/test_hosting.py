"""MCP servers called from here, where the service calls none; against a real one of the official package."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.core import checks
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from tests.parts.clock import pass_time
from tests.parts.mcp_server import OddServer, ToolServer, tool_server
from tests.parts.page import Page, Talk, calls_made
from tests.parts.page import call as function_call
from tests.parts.scripted import Service
from tests.parts.waits import PATIENCE_S
from voiceapp.assistants.assistant import Thinking
from voiceapp.assistants.mcp_servers import MAX_TOOLS, McpServer
from voiceapp.errors import InvalidArguments, ToolFailed
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant
from voiceapp.tools.functions import MAX_OUTPUT_CHARS
from voiceapp.tools.mcp.client import NOT_INSTALLED, McpClient
from voiceapp.tools.mcp.hosting import McpHost
from voiceapp.tools.mcp.messages import CallMcpTool, ListMcpTools, McpFact, McpListed, McpTool
from voiceapp.web import checks as web_checks


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    with tool_server(token="s3cret-token") as running:
        yield running


def entry(shop: ToolServer, **more: Any) -> dict[str, Any]:
    return {"server_label": "shop", "server_url": shop.url, "authorization": "s3cret-token", **more}


def server(shop: ToolServer, **more: Any) -> McpServer:
    return McpServer(**entry(shop, **more))


def host(*taken: str) -> McpHost:
    return McpHost(McpClient(private_allowed=True), taken)


# -- the host -------------------------------------------------------------------------------------------


async def test_a_servers_tools_become_functions(shop: ToolServer) -> None:
    listed = await host().list(server(shop, allowed_tools=("order_status", "cancel_order")))
    assert [tool.function for tool in listed] == ["shop_order_status", "shop_cancel_order"]
    definition = listed[0].definition()
    assert definition is not None
    assert definition["description"] == "Tell the status of an order."
    assert definition["parameters"]["required"] == ["order"]
    assert all(tool.asks for tool in listed)


async def test_what_a_tool_brings_is_text_of_a_bounded_length(shop: ToolServer) -> None:
    hosting = host()
    await hosting.list(server(shop))
    assert await hosting.run("shop_order_status", '{"order": 7}') == "Order 7 is on its way."
    assert len(await hosting.run("shop_essay", "")) <= MAX_OUTPUT_CHARS + 10
    with pytest.raises(ToolFailed, match="left the house") as caught:
        await hosting.run("shop_cancel_order", '{"order": 7}')
    assert caught.value.code == "tool_execution_error"
    for arguments in ("[1]", "{", '"text"', " " * 100_001):
        with pytest.raises(InvalidArguments):
            await hosting.run("shop_order_status", arguments)


BLOCKS: list[tuple[ContentBlock, str]] = [
    (TextContent(text="Done."), "Done."),
    (
        EmbeddedResource(resource=TextResourceContents(uri="repo://a.md", text="Alpha is the first letter.")),
        "Alpha is the first letter.",
    ),
    (EmbeddedResource(resource=TextResourceContents(uri="repo://empty", text="")), ""),
    (
        EmbeddedResource(
            resource=BlobResourceContents(uri="repo://a.png", mime_type="image/png", blob="QUJD")
        ),
        "(resource, repo://a.png, image/png)",
    ),
    (
        ResourceLink(name="a.md", uri="repo://a.md", mime_type="text/markdown", description="The letters"),
        "(resource_link, a.md, repo://a.md, text/markdown, The letters)",
    ),
    (ImageContent(data="QUJD", mime_type="image/png"), "(image, image/png)"),
    (AudioContent(data="QUJD", mime_type="audio/wav"), "(audio, audio/wav)"),
]


async def test_what_a_tool_brings_is_told_whatever_it_is_in() -> None:
    with OddServer({"": (["fetch"], None)}, *(block for block, _ in BLOCKS)) as running:
        hosting = host()
        await hosting.list(McpServer(server_label="odd", server_url=running.url))
        assert await hosting.run("odd_fetch", "") == "\n".join(words for _, words in BLOCKS)


async def test_a_resource_is_cut_where_other_text_is() -> None:
    long = TextResourceContents(uri="repo://long", text="x" * 100_000)
    with OddServer({"": (["fetch"], None)}, EmbeddedResource(resource=long)) as running:
        hosting = host()
        await hosting.list(McpServer(server_label="odd", server_url=running.url))
        assert len(await hosting.run("odd_fetch", "")) <= MAX_OUTPUT_CHARS + 10


@pytest.mark.parametrize(
    ("pages", "cursors", "names"),
    [
        ({"": (["a"], "1"), "1": (["b"], None)}, ["", "1"], ["a", "b"]),
        ({"": (["a"], "1"), "1": (["b"], "1")}, ["", "1"], ["a", "b"]),
        ({"": (["a"], "1"), "1": (["b"], "2"), "2": (["c"], "1")}, ["", "1", "2"], ["a", "b", "c"]),
        ({"": (["a"], "")}, [""], ["a"]),
        ({"": (["a", "a", "b"], "1"), "1": (["b", "c"], None)}, ["", "1"], ["a", "b", "c"]),
        ({"": ([], "1"), "1": (["a"], None)}, ["", "1"], ["a"]),
        (
            {str(n or ""): ([f"t{n}"], str(n + 1)) for n in range(99)},
            ["", *map(str, range(1, 16))],
            [f"t{n}" for n in range(16)],
        ),
    ],
)
async def test_a_list_ends_and_names_each_tool_once(
    pages: dict[str, tuple[list[str], str | None]], cursors: list[str], names: list[str]
) -> None:
    with OddServer(pages) as running:
        listed = await host().list(McpServer(server_label="odd", server_url=running.url))
        assert running.cursors == cursors
    assert [tool.function for tool in listed] == [f"odd_{name}" for name in names]
    descriptions = {tool.tool.name: tool.tool.description for tool in listed}
    assert descriptions["a" if "a" in names else "t0"] in ("of ", "of 1"), "the first one counts"


async def test_schemas_are_made_to_fit_or_their_tools_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with OddServer({"": (["find", "odd", "all"], None)}) as running:
        running.schemas["find"] = {"type": "object", "properties": {"tags": {"type": "array"}}, "not": {}}
        running.schemas["odd"] = {"type": "object", "$ref": "#/$defs/gone"}
        hosting = host()
        listed = await hosting.list(McpServer(server_label="odd", server_url=running.url))
    assert [tool.function for tool in listed] == ["odd_find", "odd_all"]
    definition = listed[0].definition()
    assert definition is not None
    tags = {"type": "array", "items": {}}
    assert definition["parameters"] == {"type": "object", "properties": {"tags": tags}}
    assert not hosting.has("odd_odd")
    assert "'odd_odd' is left out" in caplog.text


async def test_a_server_that_refuses_the_token_is_a_reason(shop: ToolServer) -> None:
    with pytest.raises(ToolFailed, match="401"):
        await host().list(server(shop, authorization="wrong"))


async def test_a_private_address_is_not_reached_unless_the_operator_says_so(shop: ToolServer) -> None:
    guarded = McpHost(McpClient(private_allowed=False), ())
    with pytest.raises(ToolFailed, match="https only"):
        await guarded.list(server(shop))


async def test_without_the_package_the_reason_says_what_to_install(
    shop: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "voiceapp.tools.mcp.connection", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    with pytest.raises(ToolFailed) as caught:
        await host().list(server(shop))
    assert caught.value.message == NOT_INSTALLED


class Shelf(McpClient):
    """Lists given tools; for names that no real server would have."""

    def __init__(self, *names: str) -> None:
        super().__init__(private_allowed=False)
        self.names = names

    async def perform(self, action: ListMcpTools | CallMcpTool) -> McpFact:
        return McpListed("", tuple(McpTool(name) for name in self.names))


@pytest.mark.parametrize("label", ["s", "l" * 64])
async def test_names_are_legal_short_and_each_their_own(label: str) -> None:
    names = ("look", "look!", "look?", "x" * 80, "x" * 81, "日本", "")
    taken = {"look", f"{label}_look"[:64]}
    hosting = McpHost(Shelf(*names), taken)
    listed = await hosting.list(McpServer(server_label=label, server_url="https://h/"))
    functions = [tool.function for tool in listed]
    assert len(set(functions) | taken) == len(names) + len(taken)
    for function in functions:
        assert 0 < len(function) <= 64
        assert function.replace("_", "").replace("-", "").isalnum()
        assert function.isascii()
    assert "x" * 50 in functions[3], "the tool's own name is what tells the model what it does"


async def test_no_more_tools_than_a_service_takes() -> None:
    hosting = McpHost(Shelf(*(f"t{n}" for n in range(300))), ["own"])
    listed = await hosting.list(McpServer(server_label="s", server_url="https://h/"))
    assert len(listed) == MAX_TOOLS - 1


# -- through the page's socket --------------------------------------------------------------------------


@pytest.fixture
async def clerk(transactional_db: None, shop: ToolServer) -> dict[str, str]:
    rule = {"never": {"tool_names": ["order_status"]}}
    servers = [entry(shop, require_approval=rule, allowed_tools=["order_status", "cancel_order"])]
    await Assistant.objects.acreate(slug="clerk", name="Clerk", mcp_servers=servers, tools=["calculate"])
    return {"assistant": "clerk"}


async def tools_told(upstream: Service) -> list[str]:
    """Return the names in the first update that has those of the server."""
    while True:
        update = await upstream.expect("session.update")
        names = [tool.get("name") for tool in update["session"]["tools"]]
        assert all(tool["type"] == "function" for tool in update["session"]["tools"])
        if "shop_order_status" in names:
            return names


async def call(upstream: Service, name: str) -> None:
    item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": name}
    where = {"response_id": "resp_1", "item_id": "fc_1", "output_index": 0, "call_id": "call_1", "name": name}
    await upstream.send(
        {"type": "response.output_item.added", "response_id": "resp_1", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.done", **where, "arguments": '{"order": 7}'},
    )


async def output_of(upstream: Service) -> str:
    item = (await upstream.expect("conversation.item.create"))["item"]
    assert (item["type"], item["call_id"]) == ("function_call_output", "call_1")
    return str(item["output"])


@pytest.mark.django_db(transaction=True)
async def test_a_preview_service_gets_the_tools_as_functions(talking: Talk, clerk: dict[str, str]) -> None:
    async with talking(Dialect.PREVIEW, start=clerk, private_addresses=True) as (page, upstream):
        ready: dict[str, Any] = page.seen[-1]
        assert await tools_told(upstream) == ["calculate", "shop_order_status", "shop_cancel_order"]
        await call(upstream, "shop_order_status")
        assert await output_of(upstream) == "Order 7 is on its way."
        await page.until("response.tool_call.completed")
        await upstream.expect("response.create")
        assert await calls_made(ready) == [("call_1", "completed")]
        assert "s3cret-token" not in json.dumps(page.seen)


@pytest.mark.django_db(transaction=True)
async def test_such_a_call_is_asked_about_as_well(talking: Talk, clerk: dict[str, str]) -> None:
    async with talking(Dialect.PREVIEW, start=clerk, private_addresses=True) as (page, upstream):
        await tools_told(upstream)
        await call(upstream, "shop_cancel_order")
        asked = await page.until("approval.requested")
        assert (asked["server_label"], asked["name"]) == ("shop", "cancel_order")
        answer = {"type": "mcp_approval_response", "approval_request_id": asked["approval_request_id"]}
        await page.send({"type": "conversation.item.create", "item": {**answer, "approve": True}})
        assert "left the house" in await output_of(upstream)
        assert (await page.until("response.tool_call.error"))["error"]["code"] == "tool_execution_error"
        # The answer was for us; a preview service would not know what to make of it.
        kinds = {event["item"]["type"] for event in upstream.sent_to_me("conversation.item.create")}
        assert kinds == {"function_call_output"}


@pytest.mark.django_db(transaction=True)
async def test_a_service_that_refuses_servers_gets_functions_too(
    talking: Talk, clerk: dict[str, str]
) -> None:
    def prepare(service: Service) -> None:
        service.refuse_if = '"mcp"'

    async with talking(start=clerk, prepare=prepare, private_addresses=True) as (_, upstream):
        await upstream.expect("session.update")
        assert "shop_order_status" in await tools_told(upstream)
        await call(upstream, "shop_order_status")
        assert await output_of(upstream) == "Order 7 is on its way."


@pytest.mark.django_db(transaction=True)
async def test_the_tools_are_there_after_the_service_was_lost(talking: Talk, clerk: dict[str, str]) -> None:
    async with talking(Dialect.PREVIEW, start=clerk, private_addresses=True) as (page, upstream):
        await tools_told(upstream)
        await upstream.drop()
        await page.until("notice", code="upstream_reconnecting")
        await pass_time(0.5)
        await page.until("session.updated")
        assert "shop_order_status" in await tools_told(upstream)


@pytest.mark.django_db(transaction=True)
async def test_tools_that_come_late_are_not_given_to_who_has_taken_over(
    talking: Talk, clerk: dict[str, str], shop: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = asyncio.Event()
    ask = McpHost.list

    async def watched(host: McpHost, server: Any) -> Any:
        try:
            return await ask(host, server)
        finally:
            listed.set()

    monkeypatch.setattr(McpHost, "list", watched)
    await Assistant.objects.filter(slug="clerk").aupdate(tools=["hand_over"])
    await Assistant.objects.acreate(slug="grace", name="Grace", tools=["calculate"])
    shop.open.clear()
    try:
        async with talking(Dialect.PREVIEW, start=clerk, private_addresses=True) as (page, upstream):
            await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
            await function_call(upstream, 1, '{"name": "grace"}', name="hand_over")
            assert "Grace" in await output_of(upstream)
            done = {"id": "resp_1", "status": "completed"}
            await upstream.send({"type": "response.done", "response": done})
            await page.until("session.assistant")
            await page.until("session.updated")
            shop.open.set()
            await asyncio.wait_for(listed.wait(), PATIENCE_S)
            await pass_time(1)
            assert "shop_order_status" not in str(upstream.sent_to_me("session.update"))
    finally:
        shop.open.set()


@pytest.mark.django_db(transaction=True)
async def test_a_server_that_cannot_be_had_is_a_notice(talking: Talk, clerk: dict[str, str]) -> None:
    async with talking(Dialect.PREVIEW, start=clerk) as (page, upstream):
        told = next((e for e in page.seen if e["type"] == "notice"), None) or await page.until("notice")
        assert (told["code"], told["server_label"]) == ("mcp_tools_unavailable", "shop")
        assert "https only" in told["reason"]
        await page_goes_on(page, upstream)


async def page_goes_on(page: Page, upstream: Service) -> None:
    await upstream.user_turn("hello")
    await page.until("conversation.item.input_audio_transcription.completed")


@pytest.mark.django_db(transaction=True)
def test_a_missing_package_is_a_warning_where_it_is_needed(
    clerk: dict[str, str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def warnings() -> list[str]:
        found = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
        return [str(message.id) for message in found if str(message.id).startswith("voiceapp.mcp")]

    assert warnings() == []
    monkeypatch.setattr(web_checks, "_installed", lambda package: package != "mcp")
    assert warnings() == ["voiceapp.mcp.W001"]
    # Azure's GA service calls them itself, unless somebody else thinks for the assistant.
    settings.VOICE = replace(settings.VOICE, azure_endpoint="https://name.openai.azure.com")
    assert warnings() == []
    Assistant.objects.update(thinking=Thinking.EMBEDDED.value)
    assert warnings() == ["voiceapp.mcp.W001"]
    Assistant.objects.update(mcp_servers=[])
    assert warnings() == []
