"""Services that an assistant may call: their addresses, their secrets, their operations."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.assistants.http_tools import (
    HttpArgument,
    HttpOperation,
    HttpToolsConfig,
    Place,
    address_fault,
    secret_fault,
)
from voiceapp.assistants.mcp_servers import HIDDEN, MAX_SECRET_CHARS


def config(**fields: Any) -> HttpToolsConfig:
    return HttpToolsConfig(**{"slug": "shop", "secret": "s3cret key+1", **fields})


def operation(key: str = "getOrder", method: str = "GET", path: str = "/orders") -> HttpOperation:
    places: list[tuple[str, Place]] = [("id", "path"), ("X-Key", "header"), ("key", "query")]
    return HttpOperation(
        key=key, method=method, path=path, description="",
        parameters={"properties": {name: {} for name, _ in places}, "required": ["id", "key"]},
        arguments=tuple(HttpArgument(name=name, target=name, place=place) for name, place in places),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "name"),
    [("getOrder", "getOrder"), ("get order!", "get_order"), ("GET /orders", "get_orders"), ("!", "call")],
)
def test_an_operation_has_a_plain_name(key: str, name: str) -> None:
    assert operation(key).plain_name == name


@pytest.mark.parametrize(
    ("method", "changes"), [("GET", False), ("HEAD", False), ("POST", True), ("DELETE", True)]
)
def test_a_method_changes_something_or_not(method: str, changes: bool) -> None:
    assert operation(method=method).changes is changes


def test_a_parameter_that_bears_the_secret_is_no_argument() -> None:
    without = operation().without("query", "key")
    assert [one.name for one in without.arguments] == ["id", "X-Key"]
    assert without.parameters == {"properties": {"id": {}, "X-Key": {}}, "required": ["id"]}
    # A header's name may be in any case, a parameter's not.
    assert [one.name for one in operation().without("header", "x-key").arguments] == ["id", "key"]
    same = operation()
    assert same.without("query", "KEY") is same


@pytest.mark.parametrize(
    ("auth", "name", "headers", "query"),
    [
        ("", "", {}, ""),
        ("bearer", "", {"Authorization": "Bearer s3cret key+1"}, ""),
        ("header", "X-Key", {"X-Key": "s3cret key+1"}, ""),
        ("query", "api key", {}, "api%20key=s3cret%20key%2B1"),
    ],
)
def test_the_secret_goes_where_it_is_wanted(
    auth: Any, name: str, headers: dict[str, str], query: str
) -> None:
    tools = config(auth=auth, auth_name=name)
    assert (tools.headers(), tools.query()) == (headers, query)
    assert "s3cret" not in repr(tools)
    assert tools.without_secrets() == HttpToolsConfig(slug="shop")


def test_the_secret_is_taken_out_of_what_a_service_says_however_it_is_written() -> None:
    tools = config(secret='Token s3cret"key')
    for said in ('Token s3cret"key', 's3cret"key', "Token%20s3cret%22key", 'Token s3cret\\"key'):
        assert tools.scrub(f"<{said}>").endswith(f"{HIDDEN}>")
    assert config(secret="abc").scrub("abc") == "abc", "so short a text stands anywhere"


@pytest.mark.parametrize(
    ("url", "private", "right"),
    [
        ("https://shop.example/v1", False, True),
        ("http://10.0.0.1", False, False),
        ("http://10.0.0.1", True, True),
        ("https://", False, False),
        ("https://shop.example/ö", False, False),
        ("https://shop.example/?key=1", False, False),
        ("https://shop.example/#a", False, False),
        ("https://me:pw@shop.example", False, False),
        ("ftp://shop.example", True, False),
    ],
)
def test_an_address_is_right_or_said_to_be_wrong(url: str, private: bool, right: bool) -> None:
    assert (address_fault(url, private_allowed=private) == "") is right


@pytest.mark.parametrize(
    ("auth", "name", "secret", "field"),
    [
        ("", "", "", ""),
        ("bearer", "", "key", ""),
        ("header", "X-Key", "key", ""),
        ("query", "key", "key", ""),
        ("bearer", "", "", "new_secret"),
        ("bearer", "", "line\nbreak", "new_secret"),
        ("bearer", "", "x" * (MAX_SECRET_CHARS + 1), "new_secret"),
        ("header", "", "key", "auth_name"),
        ("header", "Host", "key", "auth_name"),
        ("header", "a b", "key", "auth_name"),
        ("header", "idempotency-key", "key", "auth_name"),
        ("query", "ö", "key", "auth_name"),
    ],
)
def test_how_a_service_is_signed_in_to_is_right_or_said_to_be_wrong(
    auth: str, name: str, secret: str, field: str
) -> None:
    wrong, sentence = secret_fault(auth, name, secret)
    assert wrong == field
    assert bool(sentence) is bool(field)
