"""HTTP tools called: over real sockets, behind the address guard, in a conversation, and in the admin."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http_service import ShopService, document, shop_service
from tests.page import Talk, call, calls_made
from tests.scripted import Service
from voiceapp.errors import InvalidArguments, ToolError, ToolFailed, UnknownTool
from voiceapp.http_tools import MOST_HTTP_TOOLS, HttpToolSet
from voiceapp.mcp_servers import HIDDEN
from voiceapp.records import store, takeover
from voiceapp.records.http_tool_sets import HttpToolSet as Row
from voiceapp.records.models import Assistant, Session
from voiceapp.tools import http_client
from voiceapp.tools.http_client import HttpTools
from voiceapp.tools.http_request import prepare
from voiceapp.tools.openapi import read_document
from voiceapp.tools.registry import MAX_OUTPUT_CHARS, ToolContext

SECRET = "s3cret/key value"
CONTEXT = ToolContext(uuid4(), 7, "call_1")


@pytest.fixture
async def shop() -> AsyncIterator[ShopService]:
    async with shop_service() as running:
        yield running


def tool_set(root: Any, base_url: str, **options: Any) -> HttpToolSet:
    made = read_document(json.dumps(root), fixed_address=True)
    return HttpToolSet(slug="shop", name="Shop", base_url=base_url, operations=made.operations, **options)


def tools_of(shop: ShopService, root: Any = None, **options: Any) -> HttpTools:
    return HttpTools([tool_set(root or document(), shop.url, **options)], [], private_allowed=True)


async def run(tools: HttpTools, name: str, **arguments: Any) -> str:
    return await tools.run(name, json.dumps(arguments), CONTEXT)


async def failure(tools: HttpTools, name: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await run(tools, name, **arguments)
    return caught.value


# -- what is offered --------------------------------------------------------------------------------------


def test_functions_are_named_after_the_set_and_the_operation() -> None:
    tools = HttpTools([tool_set(document(), "https://h")], ["shop_getOrder"], private_allowed=False)
    assert tools.names() == ["shop_getOrder_shop", "shop_cancelOrder", "shop_get_orders", "shop_createOrder"]
    for definition in tools.definitions():
        assert definition["type"] == "function"
        assert definition["description"]
        assert definition["parameters"]["type"] == "object"


def test_long_and_odd_names_are_legal_and_each_their_own() -> None:
    keys = ["x" * 80, "x" * 81, "ein Wort", "日本", "a.b/c"]
    root = document(paths={f"/{n}": {"get": {"operationId": key}} for n, key in enumerate(keys)})
    names = HttpTools([tool_set(root, "https://h")], [], private_allowed=False).names()
    assert len(set(names)) == len(keys)
    for name in names:
        assert 0 < len(name) <= 64
        assert name.isascii()
        assert name.replace("_", "").replace("-", "").isalnum()


def test_no_more_tools_than_a_service_takes() -> None:
    root = document(paths={f"/{n}": {"get": {}} for n in range(60)})
    sets = [tool_set(root, "https://h"), tool_set(root, "https://h")]
    assert len(HttpTools(sets, [], private_allowed=False).names()) == MOST_HTTP_TOOLS


# -- what is sent -----------------------------------------------------------------------------------------


async def test_a_call_is_one_request(shop: ShopService) -> None:
    told: list[str] = []
    context = ToolContext(uuid4(), 7, "call_9", told.append)
    output = await tools_of(shop).run("shop_getOrder", '{"id": "a/b ?#ü"}', context)
    assert json.loads(output) == {"order": "a%2Fb%20%3F%23%C3%BC", "state": "on its way"}
    (asked,) = shop.requests
    assert (asked.method, asked.path, asked.query, asked.body) == (
        "GET",
        "/v1/orders/a%2Fb%20%3F%23%C3%BC",
        "",
        b"",
    )
    assert asked.headers["host"] == shop.url.split("/")[2]
    assert "idempotency-key" not in asked.headers
    assert told == ["Asking Shop…"]


async def test_what_changes_something_has_a_key_by_which_it_happens_once(shop: ShopService) -> None:
    tools = tools_of(shop)
    for _ in range(2):
        await run(tools, "shop_createOrder", item="tea", amount=2)
    await run(tools, "shop_cancelOrder", id="7")
    first, second, third = shop.requests
    assert (first.method, first.path, json.loads(first.body)) == (
        "POST",
        "/v1/orders",
        {"item": "tea", "amount": 2},
    )
    assert first.headers["content-type"] == "application/json"
    keys = {asked.headers["idempotency-key"] for asked in (first, second, third)}
    assert keys == {CONTEXT.idempotency_key}
    assert (third.method, third.path, third.body) == ("DELETE", "/v1/orders/7", b"")


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({}, "a b&c=ü/?", "q=a%20b%26c%3D%C3%BC%2F%3F"),
        ({}, True, "q=true"),
        ({}, 3.0, "q=3"),
        ({}, 0.5, "q=0.5"),
        ({}, None, ""),
        ({}, ["a,b", "c"], "q=a%2Cb&q=c"),
        ({"explode": False}, ["a,b", "c"], "q=a%2Cb,c"),
        ({"explode": False}, [], ""),
        ({}, {"a": 1, "b&": "x"}, "a=1&b%26=x"),
        ({"explode": False}, {"a": 1, "b": "x"}, "q=a,1,b,x"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "q=a%20b"),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "q=a%7Cb"),
        ({"style": "deepObject", "explode": True}, {"a": 1, "b": "x"}, "q%5Ba%5D=1&q%5Bb%5D=x"),
        ({"schema": None, "content": {"application/json": {}}}, {"a": [1]}, "q=%7B%22a%22%3A%5B1%5D%7D"),
    ],
)
async def test_parameters_are_written_as_their_style_says(
    shop: ShopService, parameter: dict[str, Any], value: Any, query: str
) -> None:
    given = {"name": "q", "in": "query", "schema": {}, **parameter}
    given = {name: part for name, part in given.items() if part is not None}
    root = document(paths={"/find": {"get": {"operationId": "find", "parameters": [given]}}})
    await run(tools_of(shop, root), "shop_find", q=value)
    assert shop.requests[0].query == query


@pytest.mark.parametrize(
    ("parameter", "value", "path", "header"),
    [
        ({}, ["a", "b/c"], "a,b%2Fc", "a,b/c"),
        ({}, {"a": 1, "b": 2}, "a,1,b,2", "a,1,b,2"),
        ({"explode": True}, {"a": 1, "b": 2}, "a=1,b=2", "a=1,b=2"),
    ],
)
async def test_paths_and_headers_are_written_as_their_style_says(
    shop: ShopService, parameter: dict[str, Any], value: Any, path: str, header: str
) -> None:
    listed = [
        {"name": "p", "in": "path", "required": True, "schema": {}, **parameter},
        {"name": "X-P", "in": "header", "schema": {}, **parameter},
    ]
    root = document(paths={"/find/{p}/it": {"get": {"operationId": "find", "parameters": listed}}})
    await run(tools_of(shop, root), "shop_find", **{"p": value, "X-P": value})
    assert shop.requests[0].path == f"/v1/find/{path}/it"
    assert shop.requests[0].headers["x-p"] == header


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("shop_getOrder", {}, "'id' is a required property"),
        ("shop_getOrder", {"id": 7}, "id: 7 is not of type 'string'"),
        ("shop_getOrder", {"id": "7", "x": 1}, "'x' was unexpected"),
        ("shop_getOrder", {"id": ""}, "must not be empty"),
        ("shop_getOrder", {"id": ".."}, "must not be . or .."),
        ("shop_getOrder", {"id": "x" * 9000}, "more than 8000 characters"),
        ("shop_createOrder", {"item": "tea", "amount": 0}, "amount: 0 is less than or equal"),
        ("shop_get_orders", {"X-Trace": "a\r\nX-Admin: 1"}, "printable ASCII"),
    ],
)
async def test_arguments_that_do_not_fit_are_never_sent(
    shop: ShopService, name: str, arguments: dict[str, Any], reason: str
) -> None:
    error = await failure(tools_of(shop), name, **arguments)
    assert isinstance(error, InvalidArguments)
    assert reason in error.message
    assert shop.requests == []


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(["path", "query", "header", "body"]),
    st.sampled_from([{}, {"explode": True}, {"explode": False}]),
)
def test_any_argument_is_sent_or_refused_in_words(value: Any, place: str, how: dict[str, bool]) -> None:
    parameter = {"name": "q", "in": place, "required": True, "schema": {}, **how}
    body: dict[str, Any] = {"content": {"application/json": {"schema": {"properties": {"q": {}}}}}}
    described = {"requestBody": body} if place == "body" else {"parameters": [parameter]}
    path = "/find/{q}" if place == "path" else "/find"
    (operation,) = tool_set(document(paths={path: {"post": described}}), "https://h").operations
    shop = tool_set(document(), "https://h")
    with contextlib.suppress(InvalidArguments):
        made = prepare(shop, operation, {"q": value}, "key")
        sent = httpx2.Request(made.method, made.url, headers=made.headers, content=made.content)
        assert (sent.url.scheme, sent.url.host, sent.url.fragment) == ("https", "h", "")
        assert sent.url.raw_path.startswith(b"/find")
        assert sent.url.raw_path.count(b"/") == (2 if place == "path" else 1)


@pytest.mark.parametrize(
    "number", ["1" + "0" * 18, "1" + "0" * 30, "-1" + "0" * 400, "1" * 5000], ids=["18", "30", "400", "5000"]
)
async def test_large_numbers_are_sent_or_refused(shop: ShopService, number: str) -> None:
    listed = [{"name": "q", "in": "query", "schema": {"type": "integer"}}]
    tools = tools_of(shop, document(paths={"/find": {"get": {"operationId": "find", "parameters": listed}}}))
    try:
        await tools.run("shop_find", f'{{"q": {number}}}', CONTEXT)
    except InvalidArguments:
        assert len(number) > 19
        assert shop.requests == []
    else:
        assert Decimal(shop.requests[0].query.partition("=")[2]) == Decimal(number)


@pytest.mark.parametrize("arguments", ["{", "[]", "null", '{"id": "\\ud800"}', "[" * 50_000, " " * 100_001])
async def test_arguments_that_are_no_object_are_never_sent(shop: ShopService, arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        await tools_of(shop).run("shop_getOrder", arguments, CONTEXT)
    with pytest.raises(UnknownTool):
        await tools_of(shop).run("shop_other", arguments, CONTEXT)
    assert shop.requests == []


@pytest.mark.parametrize(
    ("auth", "name"), [("bearer", ""), ("header", "X-Key"), ("query", "api key"), ("", "")]
)
async def test_the_secret_goes_where_the_service_wants_it_and_nowhere_else(
    shop: ShopService, auth: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = SECRET if auth else ""
    tools = tools_of(shop, auth=auth, auth_name=name, secret=secret)
    told: list[str] = []
    context = ToolContext(uuid4(), 7, "call_1", told.append)
    await tools.run("shop_getOrder", '{"id": "1"}', context)
    asked = shop.requests[0]
    assert asked.headers.get("authorization", "") == (f"Bearer {SECRET}" if auth == "bearer" else "")
    assert asked.headers.get("x-key", "") == (SECRET if auth == "header" else "")
    assert asked.query == ("api%20key=s3cret%2Fkey%20value" if auth == "query" else "")
    # The service quotes what it was sent.
    error = await failure(tools, "shop_getOrder", id="broken")
    assert "HTTP status 422" in error.message
    assert (HIDDEN in error.message) is (auth in ("bearer", "query"))
    for text in (error.message, str(told), caplog.text, repr(tools.definitions())):
        assert "s3cret" not in text


# -- what comes back --------------------------------------------------------------------------------------


async def test_answers_are_told_as_far_as_they_can_be_read(shop: ShopService) -> None:
    tools = tools_of(shop)
    assert len(await run(tools, "shop_getOrder", id="big")) < MAX_OUTPUT_CHARS + 20
    assert "is image/png, which cannot be read" in await run(tools, "shop_getOrder", id="picture")
    assert await run(tools, "shop_cancelOrder", id="nothing") == (
        "The call succeeded (HTTP 204) and brought nothing."
    )


async def test_a_failure_is_told_with_its_status(shop: ShopService) -> None:
    error = await failure(tools_of(shop), "shop_getOrder", id="broken")
    assert isinstance(error, ToolFailed)
    assert error.code == "http_error"
    assert error.message.startswith("The service answered with HTTP status 422. It says: {")


async def test_a_redirect_is_not_followed(shop: ShopService) -> None:
    async with shop_service() as other:
        shop.redirect_to = f"{other.url}/orders/1"
        error = await failure(tools_of(shop, auth="bearer", secret=SECRET), "shop_getOrder", id="moved")
        assert other.requests == []
    assert (error.code, "redirect, which is not followed" in error.message) == ("http_error", True)
    assert len(shop.requests) == 1


async def test_a_slow_service_is_given_up(shop: ShopService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CALL_S", 0.2)
    error = await failure(tools_of(shop), "shop_getOrder", id="slow")
    shop.gate.set()
    assert (error.code, error.message) == ("timeout", "Shop did not answer within 0.2 seconds.")


async def test_a_service_that_is_not_there_is_told_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tools = HttpTools([tool_set(document(), f"http://127.0.0.1:{port}")], [], private_allowed=True)
    error = await failure(tools, "shop_getOrder", id="1")
    assert (error.code, error.message) == (
        "service_unreachable",
        "The service could not be reached (ConnectError).",
    )


async def test_a_service_that_breaks_off_is_told_so() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 99\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tools = HttpTools([tool_set(document(), url)], [], private_allowed=True)
        error = await failure(tools, "shop_getOrder", id="1")
    assert error.message == "The service's answer broke off (RemoteProtocolError)."


async def test_packed_answers_are_refused_as_they_could_be_of_any_length() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"accept-encoding: identity" in head.lower()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tools = HttpTools([tool_set(document(), url)], [], private_allowed=True)
        assert "packs its answers" in (await failure(tools, "shop_getOrder", id="1")).message


# -- which addresses are reached --------------------------------------------------------------------------


async def test_private_addresses_and_plain_http_are_refused(shop: ShopService) -> None:
    for url, reason in (
        (shop.url, "https only"),
        (shop.url.replace("http:", "https:"), "not on the public internet"),
        ("https://localhost/v1", "not on the public internet"),
        ("https://169.254.169.254/latest", "not on the public internet"),
        ("https://[::1]/v1", "not on the public internet"),
    ):
        tools = HttpTools([tool_set(document(), url)], [], private_allowed=False)
        error = await failure(tools, "shop_getOrder", id="1")
        assert (error.code, reason in error.message) == ("service_unreachable", True), error.message
    assert shop.requests == []


async def test_a_name_cannot_change_its_mind_after_it_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is public, every later one is not: only the first may be connected to."""
    answers = iter(["93.184.215.14"])
    reached: list[str] = []

    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (next(answers, "127.0.0.1"), 443))]

    async def connect(_: Any, request: httpx2.Request) -> httpx2.Response:
        reached.append(request.url.host)
        raise httpx2.ConnectError("no network here")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", connect)
    tools = HttpTools([tool_set(document(), "https://shop.example")], [], private_allowed=False)
    await failure(tools, "shop_getOrder", id="1")
    assert "not on the public internet" in (await failure(tools, "shop_getOrder", id="1")).message
    assert reached == ["93.184.215.14"]


# -- in a conversation ------------------------------------------------------------------------------------


async def row_of(shop: ShopService, **fields: Any) -> Row:
    made = {"name": "Shop", "slug": "shop", "document": json.dumps(document()), "base_url": shop.url}
    return await Row.objects.acreate(**{**made, **fields})


@pytest.fixture
async def clerk(transactional_db: None, shop: ShopService) -> dict[str, str]:
    row = await row_of(shop, auth="bearer", secret=SECRET)
    off = await row_of(shop, slug="off", enabled=False)
    assistant = await Assistant.objects.acreate(slug="clerk", name="Clerk", tools=["calculate"])
    await assistant.http_tools.aset([row, off])
    return {"assistant": "clerk"}


async def output_of(upstream: Service) -> str:
    item = (await upstream.expect("conversation.item.create"))["item"]
    assert item["type"] == "function_call_output"
    return str(item["output"])


@pytest.mark.django_db(transaction=True)
async def test_a_conversation_uses_such_tools_and_asks_before_it_changes_anything(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk, private_addresses=True) as (page, upstream):
        ready = page.seen[-1]
        update = await upstream.expect("session.update")
        assert [tool["name"] for tool in update["session"]["tools"]] == [
            "calculate",
            "shop_getOrder",
            "shop_cancelOrder",
            "shop_get_orders",
            "shop_createOrder",
        ]
        await call(upstream, 1, '{"id": "7"}', name="shop_getOrder")
        assert (await page.until("tool.progress"))["message"] == "Asking Shop…"
        assert json.loads(await output_of(upstream))["state"] == "on its way"
        await upstream.expect("response.create")

        await call(upstream, 2, '{"item": "tea"}', name="shop_createOrder")
        question = await page.until("approval.requested")
        assert question["name"] == "shop_createOrder"
        assert [asked.method for asked in shop.requests] == ["GET"]
        answer = {"type": "mcp_approval_response", "approval_request_id": question["approval_request_id"]}
        await page.send({"type": "conversation.item.create", "item": {**answer, "approve": True}})
        assert json.loads(await output_of(upstream))["order"] == "orders"
        assert [asked.method for asked in shop.requests] == ["GET", "POST"]
        assert len(shop.requests[1].headers["idempotency-key"]) == 32

        await call(upstream, 3, '{"id": "7"}', name="shop_cancelOrder")
        question = await page.until("approval.requested")
        answer["approval_request_id"] = question["approval_request_id"]
        await page.send({"type": "conversation.item.create", "item": {**answer, "approve": False}})
        assert json.loads(await output_of(upstream))["error"]["code"] == "not_approved"
        assert len(shop.requests) == 2
        made = await calls_made(ready)
        assert made == [("call_1", "completed"), ("call_2", "completed"), ("call_3", "denied")]
        for told in (page.seen, upstream.received):
            assert "s3cret" not in json.dumps(told)


@pytest.mark.django_db(transaction=True)
async def test_whoever_takes_a_conversation_over_brings_such_tools_along(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    await Assistant.objects.acreate(slug="front", name="Front desk", tools=["hand_over"])
    async with talking(start={"assistant": "front"}, private_addresses=True) as (page, upstream):
        update = await upstream.expect("session.update")
        assert [tool["name"] for tool in update["session"]["tools"]] == ["hand_over"]
        await call(upstream, 1, '{"name": "Clerk"}', name="hand_over")
        assert (await page.until("session.assistant"))["assistant"]["slug"] == "clerk"
        update = await upstream.expect("session.update")
        assert "shop_cancelOrder" in [tool["name"] for tool in update["session"]["tools"]]
        await page.until("session.updated")
        await call(upstream, 2, '{"id": "7"}', name="shop_cancelOrder")
        question = await page.until("approval.requested")
        assert (question["name"], shop.requests) == ("shop_cancelOrder", [])


@pytest.mark.django_db(transaction=True)
async def test_the_services_refusal_reaches_the_model_as_an_error(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk, private_addresses=True) as (page, upstream):
        await call(upstream, 1, '{"id": "broken"}', name="shop_getOrder")
        error = json.loads(await output_of(upstream))["error"]
        assert error["code"] == "http_error"
        assert "HTTP status 422" in error["message"]
        assert (await page.until("response.tool_call.error"))["error"]["code"] == "http_error"


@pytest.mark.django_db(transaction=True)
async def test_without_the_private_setting_a_private_service_is_not_reached(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk) as (_, upstream):
        await call(upstream, 1, '{"id": "7"}', name="shop_getOrder")
        assert "https only" in await output_of(upstream)
    assert shop.requests == []


@pytest.mark.django_db(transaction=True)
async def test_a_session_keeps_names_alone_and_goes_on_with_the_secret(
    shop: ShopService, clerk: dict[str, str], user: User
) -> None:
    opened = await store.open_session(user_id=user.pk, assistant_slug="clerk", upstream="embedded")
    (tools,) = opened.assistant.http_tools
    assert (tools.secret, len(tools.operations)) == (SECRET, 4)
    assert tools.asked == {"cancelOrder", "createOrder"}
    assert "s3cret" not in repr(opened)
    kept = await Session.objects.aget(id=opened.session_id)
    assert kept.configuration["http_tools"] == [{"slug": "shop", "name": "Shop"}]
    await Session.objects.filter(id=opened.session_id).aupdate(process="other")
    again = await takeover.take(opened.session_id, user.pk, "other")
    assert again.assistant.http_tools == opened.assistant.http_tools
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)


@pytest.mark.django_db(transaction=True)
async def test_a_document_that_can_no_longer_be_read_takes_nothing_else_along(
    shop: ShopService, clerk: dict[str, str], user: User
) -> None:
    await Row.objects.filter(slug="shop").aupdate(document="{}")
    opened = await store.open_session(user_id=user.pk, assistant_slug="clerk", upstream="embedded")
    assert opened.assistant.http_tools == ()
    assert opened.assistant.tools == ("calculate",)
    (offered,) = [one for one in await store.assistants_on_offer() if one.slug == "clerk"]
    assert offered.tools == ("calculate",)
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)


# -- in the admin -----------------------------------------------------------------------------------------

ADD = "/admin/records/httptoolset/add/"


def form(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Shop", "slug": "shop", "enabled": "on", "document": json.dumps(document()), "base_url": "",
        "auth": "", "auth_name": "", "new_secret": "", "operations": "[]", "asks": "[]", "unasked": "[]",
        **changes,
    }  # fmt: skip


def test_an_administrator_pastes_or_uploads_a_document(admin_client: Client) -> None:
    taken = admin_client.post(ADD, form(auth="header", auth_name="X-Key", new_secret=SECRET))
    assert taken.status_code == 302, taken.content.decode()
    row = Row.objects.get()
    assert (row.secret, row.config().base_url) == (SECRET, "https://shop.example/v1")  # type: ignore[union-attr]
    page = admin_client.get(f"/admin/records/httptoolset/{row.pk}/change/").content.decode()
    for shown in ("getOrder", "/orders/{id}", "asks first", "Tell where an order is"):
        assert shown in page
    assert "s3cret" not in page
    upload = SimpleUploadedFile("shop.json", json.dumps(document(openapi="3.0.1")).encode())
    again = admin_client.post(ADD, form(slug="shop2", document="", upload=upload))
    assert again.status_code == 302, again.content.decode()
    assert "3.0.1" in Row.objects.get(slug="shop2").document
    for address in ("/admin/", "/admin/records/httptoolset/", "/admin/records/httptoolset/?q=shop"):
        assert "s3cret" not in admin_client.get(address).content.decode()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"document": ""}, "Give a document: upload a file, or paste it."),
        ({"document": "openapi: 3.0.0"}, "YAML has to be made JSON first."),
        ({"document": json.dumps(document(paths={"/x": {"get": {"parameters": [{}]}}}))},
         "paths./x.get.parameters[0]: it has no name."),
        ({"document": json.dumps(document(paths={"/x": {"get": {"servers": [{}]}}}))},
         "No operation can be called. GET /x: it has servers of its own"),
        ({"document": json.dumps(document(servers=[]))}, "give one here"),
        ({"upload": SimpleUploadedFile("x.json", b"\xff\xfe")}, "The file is no text in UTF-8."),
        ({"base_url": "http://shop.example"}, "must be an https:// address"),
        ({"base_url": "https://me:pw@shop.example"}, "no user name, no query and no fragment"),
        ({"operations": '["nothing"]'}, "There is no operation"),
        ({"operations": '{"a": 1}'}, "Expected `array`"),
        ({"operations": "5"}, "Expected `array`"),
        ({"operations": "[" * 50_000}, "Enter a valid JSON"),
        ({"asks": '["nothing"]'}, "among those offered"),
        ({"asks": '["createOrder"]', "unasked": '["createOrder"]'}, "is asked about as well"),
        ({"auth": "bearer"}, "Give the secret."),
        ({"auth": "header", "new_secret": "x"}, "Name the header or the query parameter."),
        ({"auth": "header", "auth_name": "Host", "new_secret": "x"}, "no header that can be set"),
        ({"auth": "header", "auth_name": "idempotency-key", "new_secret": "x"}, "is set for each call"),
        ({"auth": "bearer", "new_secret": "ü"}, "printable ASCII"),
    ],
    ids=range(19),
)  # fmt: skip
def test_what_is_wrong_is_told_in_the_form(admin_client: Client, changes: dict[str, Any], told: str) -> None:
    refused = admin_client.post(ADD, form(**changes))
    assert refused.status_code == 200
    assert told in refused.content.decode().replace("&#x27;", "'")
    assert not Row.objects.exists()


def change(client: Client, row: Row, **changes: Any) -> Any:
    return client.post(f"/admin/records/httptoolset/{row.pk}/change/", form(auth="bearer", **changes))


def test_a_secret_stays_until_it_is_changed_or_no_longer_needed(admin_client: Client) -> None:
    admin_client.post(ADD, form(auth="bearer", new_secret=SECRET))
    row = Row.objects.get()
    assert change(admin_client, row, name="Other").status_code == 302
    row.refresh_from_db()
    assert (row.name, row.secret) == ("Other", SECRET)
    assert change(admin_client, row, new_secret="new").status_code == 302
    row.refresh_from_db()
    assert row.secret == "new"
    admin_client.post(f"/admin/records/httptoolset/{row.pk}/change/", form())
    row.refresh_from_db()
    assert row.secret == ""


@pytest.mark.parametrize(
    "elsewhere",
    [{"base_url": "https://evil.example/v1"}, {"document": json.dumps(document("https://evil.example/v1"))}],
)
def test_a_secret_is_not_sent_to_another_address_unless_it_is_given_again(
    admin_client: Client, elsewhere: dict[str, Any]
) -> None:
    admin_client.post(ADD, form(auth="bearer", new_secret=SECRET))
    row = Row.objects.get()
    refused = change(admin_client, row, **elsewhere)
    assert "Give the secret again" in refused.content.decode()
    row.refresh_from_db()
    assert row.address == "https://shop.example/v1"
    assert change(admin_client, row, **elsewhere, new_secret="for evil").status_code == 302
    row.refresh_from_db()
    assert (row.address, row.secret) == ("https://evil.example/v1", "for evil")


def test_the_private_setting_opens_plain_http(admin_client: Client, settings: Any) -> None:
    settings.VOICE = replace(settings.VOICE, private_addresses=True)
    assert admin_client.post(ADD, form(base_url="http://127.0.0.1:9/v1")).status_code == 302


def test_who_is_asked_about_what_can_be_chosen(admin_client: Client) -> None:
    chosen = {"operations": '["getOrder", "cancelOrder", "createOrder"]', "asks": '["getOrder"]'}
    admin_client.post(ADD, form(**chosen, unasked='["createOrder"]'))
    config = Row.objects.get().config()
    assert config is not None
    assert config.asked == {"getOrder", "cancelOrder"}
    assert [operation.key for operation in config.operations] == ["getOrder", "cancelOrder", "createOrder"]


@pytest.mark.parametrize(("auth", "name"), [("header", "x-trace"), ("query", "state")])
def test_the_model_is_not_asked_for_the_secret(admin_client: Client, auth: str, name: str) -> None:
    """Documents describe the header or the parameter that bears it as any other."""
    admin_client.post(ADD, form(auth=auth, auth_name=name, new_secret=SECRET))
    config = Row.objects.get().config()
    assert config is not None
    (listing,) = [one for one in config.operations if one.key == "GET /orders"]
    names = ["state", "tag", "X-Trace"]
    names.remove("X-Trace" if auth == "header" else "state")
    assert list(listing.parameters["properties"]) == names
    assert [argument.name for argument in listing.arguments] == names


def test_whoever_may_only_look_sees_no_secret(transactional_db: None) -> None:
    viewer = User.objects.create_user("eve", password="x", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_httptoolset"))
    row = Row.objects.create(
        name="Shop", slug="shop", document=json.dumps(document()), auth="bearer", secret=SECRET
    )
    client = Client()
    client.force_login(viewer)
    shown = client.get(f"/admin/records/httptoolset/{row.pk}/change/").content.decode()
    assert "asks first" in shown
    assert "s3cret" not in shown


def test_an_assistant_may_have_no_more_operations_than_a_service_takes(admin_client: Client) -> None:
    paths: dict[str, Any] = {f"/{n}": {"get": {}} for n in range(60)}
    rows = [
        Row.objects.create(name=slug, slug=slug, document=json.dumps(document(paths=paths))) for slug in "ab"
    ]
    fields = {
        "slug": "clerk", "name": "Clerk", "enabled": "on", "position": "0", "input_format": "audio/pcm",
        "output_format": "audio/pcm", "turn_detection": "null", "transcription": "{}",
        "mcp_servers": "[]",
    }  # fmt: skip
    address = "/admin/records/assistant/add/"
    refused = admin_client.post(address, {**fields, "http_tools": [row.pk for row in rows]})
    assert "100 operations in all: these have 120." in refused.content.decode()
    taken = admin_client.post(address, {**fields, "http_tools": [rows[0].pk]})
    assert taken.status_code == 302, taken.content.decode()
    assert len(Assistant.objects.get(slug="clerk").config().http_tools[0].operations) == 60
