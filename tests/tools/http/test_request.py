"""A call's arguments as an HTTP request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from voiceapp.assistants.http_tools import HttpArgument, HttpOperation, HttpToolsConfig, Place
from voiceapp.errors import InvalidArguments
from voiceapp.tools.http.operation import FORM
from voiceapp.tools.http.request import MAX_ADDRESS_CHARS, Prepared, prepare

SET = HttpToolsConfig(slug="shop", base_url="https://shop.example/v1/")


def argument(place: Place, name: str = "a", **fields: Any) -> HttpArgument:
    return HttpArgument(name=name, target=name, place=place, **fields)


def request(
    *arguments: HttpArgument,
    method: str = "GET",
    path: str = "/orders",
    tools: HttpToolsConfig = SET,
    body_required: bool = False,
    body_type: str = "application/json",
    **given: Any,
) -> Prepared:
    operation = HttpOperation(
        key="k", method=method, path=path, description="", parameters={}, arguments=arguments,
        body_required=body_required, body_type=body_type,
    )  # fmt: skip
    return prepare(tools, operation, given, "key-1")


def in_header(name: str, value: Any, tools: HttpToolsConfig = SET) -> Prepared:
    """Return the request of a call whose one argument is a header."""
    given: dict[str, Any] = {name: value}
    return request(argument("header", name), tools=tools, **given)


@pytest.mark.parametrize(
    ("fields", "value", "query"),
    [
        ({}, "a b&c", "?a=a%20b%26c"),
        ({}, 7.0, "?a=7"),
        ({}, True, "?a=true"),
        ({}, None, ""),
        ({}, [], ""),
        ({"explode": True}, ["x", "y"], "?a=x&a=y"),
        ({"style": "form"}, ["x", "y"], "?a=x,y"),
        ({"style": "spaceDelimited"}, ["x", "y"], "?a=x%20y"),
        ({"style": "pipeDelimited"}, ["x", "y"], "?a=x%7Cy"),
        ({"style": "deepObject"}, {"k": "v"}, "?a%5Bk%5D=v"),
        ({"style": "form", "explode": True}, {"k": "v", "l": 1}, "?k=v&l=1"),
        ({"style": "form"}, {"k": "v"}, "?a=k,v"),
        ({"as_json": True}, {"k": [1]}, "?a=%7B%22k%22%3A%5B1%5D%7D"),
    ],
)
def test_a_query_is_written_in_its_style(fields: dict[str, Any], value: Any, query: str) -> None:
    made = request(argument("query", **fields), a=value)
    assert made.url == f"https://shop.example/v1/orders{query}"


@pytest.mark.parametrize(
    ("fields", "value", "step"),
    [
        ({}, "a/b", "a%2Fb"),
        ({}, ["x", "y"], "x,y"),
        ({}, {"k": "v"}, "k,v"),
        ({"explode": True}, {"k": "v"}, "k=v"),
    ],
)
def test_a_path_is_filled(fields: dict[str, Any], value: Any, step: str) -> None:
    made = request(argument("path", **fields), path="/orders/{a}/lines", a=value)
    assert made.url == f"https://shop.example/v1/orders/{step}/lines"


@pytest.mark.parametrize("value", ["", [], None, "..", "."])
def test_a_part_of_the_path_is_never_empty_and_never_leads_elsewhere(value: Any) -> None:
    with pytest.raises(InvalidArguments):
        request(argument("path"), path="/orders/{a}", a=value)


@pytest.mark.parametrize(("value", "sent"), [("x", "x"), (["x", 1], "x,1"), ({"k": "v"}, "k,v")])
def test_a_header_is_sent(value: Any, sent: str) -> None:
    assert in_header("X-A", value).headers["X-A"] == sent


@pytest.mark.parametrize("value", ["é", "a\r\nX: 1"])
def test_a_header_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InvalidArguments):
        in_header("X-A", value)


def test_the_bodys_fields_are_one_object() -> None:
    made = request(argument("body", "a"), argument("body", "b"), method="POST", a=None, b=[1])
    assert made.content is not None
    assert json.loads(made.content) == {"a": None, "b": [1]}
    assert made.headers["Content-Type"] == "application/json"
    whole = request(argument("whole body"), method="POST", a=[1, 2])
    assert whole.content == b"[1,2]"


def test_a_body_that_is_required_is_there_even_where_it_is_empty() -> None:
    assert request(argument("body"), method="POST", body_required=True).content == b"{}"
    assert request(argument("body"), method="POST").content is None


def test_what_changes_something_has_a_key() -> None:
    assert request(method="POST").headers["Idempotency-Key"] == "key-1"
    assert "Idempotency-Key" not in request(method="GET").headers


@pytest.mark.parametrize(
    ("auth", "name", "where"),
    [("bearer", "", ("Authorization", "Bearer s3cret")), ("header", "X-Key", ("X-Key", "s3cret"))],
)
def test_the_secret_goes_where_the_service_wants_it(auth: Any, name: str, where: tuple[str, str]) -> None:
    tools = HttpToolsConfig(slug="s", base_url="https://x.y", auth=auth, auth_name=name, secret="s3cret")
    made = in_header(where[0].lower(), "forged", tools)
    assert where in made.headers.items()
    assert "forged" not in made.headers.values()
    assert "s3cret" not in repr(made)


def test_a_secret_in_the_query_stands_behind_the_arguments() -> None:
    tools = HttpToolsConfig(slug="s", base_url="https://x.y", auth="query", auth_name="k", secret="s&t")
    assert request(argument("query"), tools=tools, a="1").url == "https://x.y/orders?a=1&k=s%26t"


def test_an_address_that_no_server_takes_is_refused() -> None:
    with pytest.raises(InvalidArguments, match=f"more than {MAX_ADDRESS_CHARS}"):
        request(argument("query"), a="x" * MAX_ADDRESS_CHARS)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/search?kind=user", "/search?kind=user&q=ann"),
        ("/oauth/token#refresh", "/oauth/token?q=ann"),
        ("/search?kind=a user&flag#two", "/search?kind=a%20user&flag&q=ann"),
        ("/search?&", "/search?q=ann"),
        ("/search?where={at}", "/search?where=..%2F%3F%23&q=ann"),
        ("/{at}", "/..%2F%3F%23?q=ann"),
    ],
)
def test_a_paths_own_query_is_joined_and_its_fragment_left_away(path: str, url: str) -> None:
    made = request(argument("query", "q"), argument("path", "at"), path=path, q="ann", at="../?#")
    assert made.url == "https://shop.example/v1" + url


def test_the_secret_is_not_the_paths_to_set() -> None:
    tools = HttpToolsConfig(slug="s", base_url="https://h", auth="query", auth_name="key", secret="mine")
    assert request(path="/a?key=demo&b=1", tools=tools).url == "https://h/a?b=1&key=mine"


@pytest.mark.parametrize(
    ("fields", "value", "sent"),
    [
        ({}, "a b&c", b"a=a%20b%26c"),
        ({"explode": True}, [1, 2], b"a=1&a=2"),
        ({"explode": True}, {"k": 1}, b"a=%7B%22k%22%3A1%7D"),
        ({"style": "deepObject"}, {"k": 1}, b"a%5Bk%5D=1"),
        ({"as_json": True}, [1], b"a=%5B1%5D"),
        ({}, None, None),
    ],
)
def test_a_form_is_written_as_its_document_wants_it(fields: Any, value: Any, sent: bytes | None) -> None:
    made = request(argument("body", **fields), method="POST", body_type=FORM, a=value)
    assert made.content == sent
    assert made.headers.get("Content-Type") == (FORM if sent else None)
    assert request(method="POST", body_type=FORM, body_required=True).content == b""
