"""What a scope says of who comes, and how a WebSocket is refused before it is one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from voiceapp.errors import Refusal
from voiceapp.serving.scope import bearer_token, can_refuse_by_http, headers_of, query_of, refuse_upgrade

BY_HTTP: dict[str, Any] = {"extensions": {"websocket.http.response": {}}}


def test_headers_and_parameters_are_read() -> None:
    scope = {"headers": [(b"X-Key", b"\xe9"), (b"a", b"1"), (b"A", b"2")], "query_string": b"a=1&b=x%20y&a=2"}
    assert headers_of(scope) == {"x-key": "é", "a": "2"}
    assert query_of(scope) == {"a": "2", "b": "x y"}
    assert headers_of({}) == query_of({}) == {}


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("", ""),
        ("abc", ""),
    ],
)
def test_a_bearer_token_is_read_where_one_is_brought(header: str, token: str) -> None:
    assert bearer_token({"authorization": header}) == token


async def refused(scope: dict[str, Any], refusal: Refusal) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await refuse_upgrade(scope, send, refusal, {"code": refusal.code})
    return sent


async def test_an_upgrade_is_refused_by_http_where_the_server_can() -> None:
    start, body = await refused(BY_HTTP, Refusal("not_authorized", "No.", status=401))
    assert can_refuse_by_http(BY_HTTP)
    assert start["status"] == 401
    assert (b"www-authenticate", b"Bearer") in start["headers"]
    assert json.loads(body["body"]) == {"code": "not_authorized"}


@pytest.mark.parametrize("scope", [{}, {"extensions": None}, {"extensions": {}}])
async def test_elsewhere_the_socket_is_closed_with_a_code(scope: dict[str, Any]) -> None:
    assert not can_refuse_by_http(scope)
    assert await refused(scope, Refusal("busy", "No.", close_code=4009)) == [
        {"type": "websocket.close", "code": 4009, "reason": "busy"}
    ]
