"""HTTP tools called: over real sockets, behind the address guard, in a conversation, and in the admin."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import zlib
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.examples import examples
from tests.parts.http_service import SECRET, ShopService, document, shop_service, tool_set
from voiceapp.assistants.http_tools import MAX_HTTP_TOOLS
from voiceapp.assistants.mcp_servers import HIDDEN
from voiceapp.errors import InvalidArguments, ToolError, ToolFailed, UnknownTool
from voiceapp.tools.functions import MAX_OUTPUT_CHARS
from voiceapp.tools.http import tools as http_client
from voiceapp.tools.http.request import prepare
from voiceapp.tools.http.tools import HttpTools
from voiceapp.tools.registry import ToolContext

CONTEXT = ToolContext(uuid4(), 7, "call_1")


def tools_of(shop: ShopService, root: Any = None, **options: Any) -> HttpTools:
    return HttpTools([tool_set(root or document(), shop.url, **options)], [], private_allowed=True)


async def run(tools: HttpTools, name: str, **arguments: Any) -> str:
    return await tools.run(name, json.dumps(arguments), CONTEXT)


async def failure(tools: HttpTools, name: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await run(tools, name, **arguments)
    return caught.value


# -- what is offered ------------------------------------------------------------------------------------


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
    assert len(HttpTools(sets, [], private_allowed=False).names()) == MAX_HTTP_TOOLS


# -- what is sent ---------------------------------------------------------------------------------------


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


@settings(max_examples=examples(100), deadline=None)
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


# -- what comes back ------------------------------------------------------------------------------------


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


@contextlib.asynccontextmanager
async def answering(raw: bytes) -> AsyncIterator[tuple[HttpTools, list[bytes]]]:
    """A service that answers with these bytes and hangs up, and the heads of the requests that it got."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(raw)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield HttpTools([tool_set(document(), url)], [], private_allowed=True), heads


async def test_a_service_that_breaks_off_is_told_so() -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 99\r\n\r\nhalf"
    async with answering(half) as (tools, _):
        error = await failure(tools, "shop_getOrder", id="1")
    assert error.message == "The service's answer broke off (RemoteProtocolError)."


def answer(coding: str, body: bytes, *more: str) -> bytes:
    head = ["HTTP/1.1 200 OK", "content-type: text/plain", f"content-encoding: {coding}", *more]
    return "\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"It is on its way.", mtime=0)),
        ("X-GZip", gzip.compress(b"It is ", mtime=0) + gzip.compress(b"on its way.", mtime=0) + bytes(3)),
        ("deflate", zlib.compress(b"It is on its way.")),
        ("deflate", zlib.compress(b"It is on its way.")[2:-4]),
        ("deflate, gzip", gzip.compress(zlib.compress(b"It is on its way."), mtime=0)),
        ("identity", b"It is on its way."),
        ("gzip, identity", gzip.compress(b"It is on its way.", mtime=0)),
    ],
    ids=range(7),
)
async def test_packed_answers_are_opened_though_nobody_asks_for_them(coding: str, body: bytes) -> None:
    async with answering(answer(coding, body)) as (tools, heads):
        assert await run(tools, "shop_getOrder", id="1") == "It is on its way."
    assert b"accept-encoding: identity" in heads[0].lower()


async def test_an_empty_answer_may_call_itself_packed() -> None:
    async with answering(answer("gzip", b"")) as (tools, _):
        assert "brought nothing" in await run(tools, "shop_getOrder", id="1")


async def test_a_packed_answer_is_cut_where_others_are() -> None:
    bomb = gzip.compress(gzip.compress(b"a" * 200_000_000, 9, mtime=0), 9)
    async with answering(answer("gzip, gzip", bomb)) as (tools, _):
        assert await run(tools, "shop_getOrder", id="1") == "a" * MAX_OUTPUT_CHARS + "… (cut)"


@pytest.mark.parametrize(
    ("coding", "body", "sentence"),
    [
        ("br", b"x", "The service packs its answers in a way that cannot be opened here ('br')."),
        ("gzip, zstd", b"x", "The service packs its answers in a way that cannot be opened here ('zstd')."),
        ("gzip", b"It is plain.", "The service sent an answer that is packed and cannot be opened."),
        ("deflate", b"\xff\xff", "The service sent an answer that is packed and cannot be opened."),
        ("gzip", gzip.compress(bytes(99), mtime=0)[:-9], "The service broke off in a packed answer."),
        ("deflate", zlib.compress(bytes(99))[:-1], "The service broke off in a packed answer."),
        (", ".join(["gzip"] * 4), b"x", "The service packs its answers more than 3 times."),
    ],
    ids=range(7),
)
async def test_what_is_packed_and_cannot_be_opened_is_told(coding: str, body: bytes, sentence: str) -> None:
    async with answering(answer(coding, body)) as (tools, _):
        assert (await failure(tools, "shop_getOrder", id="1")).message == sentence


async def test_the_type_that_the_document_names_is_the_one_that_is_sent(shop: ShopService) -> None:
    fields = {"type": "object", "properties": {"state": {"type": ["string", "null"]}}}
    steps = {"type": "array", "items": {"type": "object"}}
    kinds: dict[str, tuple[Any, dict[str, Any], bytes]] = {
        "application/merge-patch+json": (fields, {"state": None}, b'{"state":null}'),
        "application/vnd.api+json; ext=bulk": (fields, {"state": "x"}, b'{"state":"x"}'),
        "application/json-patch+json": (steps, {"body": [{"op": "test"}]}, b'[{"op":"test"}]'),
        "application/x-www-form-urlencoded": (fields, {"state": "a b&c"}, b"state=a%20b%26c"),
        "application/*": (fields, {"state": "x"}, b'{"state":"x"}'),
    }
    for kind, (schema, arguments, sent) in kinds.items():
        body = {"required": True, "content": {kind: {"schema": schema}}}
        root = document(paths={"/orders/7": {"patch": {"operationId": "change", "requestBody": body}}})
        await run(tools_of(shop, root), "shop_change", **arguments)
        assert shop.requests[-1].headers["content-type"] == kind.replace("/*", "/json")
        assert shop.requests[-1].body == sent


# -- which addresses are reached ------------------------------------------------------------------------


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
