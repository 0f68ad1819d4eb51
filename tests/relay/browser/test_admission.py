"""Who may open the page's socket, and what others are answered: on real sockets of the whole product."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings as product
from django.contrib.auth.models import User
from django.test import Client

from tests.parts.raw_sockets import raw_socket
from tests.parts.waits import PATIENCE_S
from voiceapp.protocol.page import CloseCode
from voiceapp.relay.browser.admission import WHY, origin_allowed
from voiceapp.serving.handshake import MAX_HEAD_BYTES
from voiceapp.serving.refusals import Refusals, refusals

pytestmark = pytest.mark.django_db(transaction=True)

Headers = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    with refusals.use(Refusals()):
        yield


@pytest.fixture
def cookie(user: User) -> tuple[str, str]:
    """The header of a browser in which a user is signed in."""
    client = Client()
    client.force_login(user)
    return "Cookie", f"{product.SESSION_COOKIE_NAME}={client.cookies[product.SESSION_COOKIE_NAME].value}"


def headers_of(who: str, site: str, cookie: tuple[str, str]) -> Headers:
    """Return what a page of a kind sends."""
    origin = ("Origin", site)
    return {
        "signed in": [origin, cookie],
        "stranger": [origin],
        "forged": [origin, ("Cookie", f"{product.SESSION_COOKIE_NAME}=forged")],
        "elsewhere": [("Origin", "https://elsewhere.example"), cookie],
        "other port": [("Origin", "http://127.0.0.1:1"), cookie],
        "no origin": [cookie],
        "hidden origin": [("Origin", "null"), cookie],
        "both": [("Origin", "https://elsewhere.example")],
        "large": [origin, cookie, *[("X", "x" * 8_000)] * (MAX_HEAD_BYTES // 8_000 + 1)],
    }[who]


REFUSED = {
    "stranger": (403, CloseCode.NOT_SIGNED_IN, "not_signed_in"),
    "forged": (403, CloseCode.NOT_SIGNED_IN, "not_signed_in"),
    "elsewhere": (403, CloseCode.FOREIGN_ORIGIN, "foreign_origin"),
    "other port": (403, CloseCode.FOREIGN_ORIGIN, "foreign_origin"),
    "no origin": (403, CloseCode.FOREIGN_ORIGIN, "foreign_origin"),
    "hidden origin": (403, CloseCode.FOREIGN_ORIGIN, "foreign_origin"),
    "both": (403, CloseCode.FOREIGN_ORIGIN, "foreign_origin"),
    "large": (431, 431, "65,536 bytes"),
}


@pytest.mark.parametrize("who", REFUSED)
async def test_whoever_may_not_is_refused_before_the_upgrade_and_logged_once(
    server: str, site: str, cookie: tuple[str, str], caplog: pytest.LogCaptureFixture, who: str
) -> None:
    status, _, word = REFUSED[who]
    for _ in range(3):
        async with raw_socket(server, "/ws/voice/", headers_of(who, site, cookie)) as line:
            assert line.status == status
            assert word in (await line.rest()).decode()
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(logged) == 1
    assert word in logged[0]
    assert cookie[1] not in caplog.text
    if word == "foreign_origin":
        assert "VOICEAPP_TRUSTED_ORIGINS" in logged[0]


async def test_who_is_signed_in_is_let_in_and_refused_there_for_another_reason(
    server: str, site: str, cookie: tuple[str, str]
) -> None:
    async with raw_socket(server, "/ws/voice/", headers_of("signed in", site, cookie)) as line:
        assert line.status == 101
        line.send(b"\x81\x81\0\0\0\0{")
        _, notice = await line.frame()
        assert json.loads(notice)["code"] == "bad_start"
        assert await line.until_closed() == (4010, "bad_start")


async def ask(site: str, headers: Headers, method: str = "POST") -> httpx.Response:
    async with httpx.AsyncClient(base_url=site, timeout=PATIENCE_S, verify=False) as client:
        return await client.request(method, WHY, headers=headers)


@pytest.mark.parametrize("who", [*REFUSED, "signed in"])
async def test_a_page_that_asks_why_is_answered_as_its_socket_would_be(
    site: str, cookie: tuple[str, str], who: str
) -> None:
    answer = await ask(site, headers_of(who, site, cookie))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    _, code, _ = REFUSED.get(who, (101, None, ""))
    assert answer.json()["code"] == code
    assert bool(answer.json()["message"]) == (code is not None)
    if isinstance(code, CloseCode):
        assert answer.json()["message"] == code.words


async def test_the_question_is_a_post(site: str) -> None:
    answer = await ask(site, [], "GET")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


PROGRAMS = [
    "/nnrp",
    "/openai/v1/realtime?model=m",
    "/openai/realtime?api-version=1&deployment=d",
    "/ws/model-host/",
]


@pytest.mark.parametrize("address", PROGRAMS)
async def test_a_program_without_a_credential_is_refused_before_the_upgrade_and_logged_once(
    server: str, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    for _ in range(3):
        async with raw_socket(server, address, [("Authorization", "Bearer va_secret")]) as line:
            assert line.status == 401
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    assert "va_secret" not in caplog.text


async def test_a_socket_at_no_address_is_refused_and_logged(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/nowhere", "/elsewhere"):
        async with raw_socket(server, path) as line:
            assert line.status == 403
    assert [record.getMessage() for record in caplog.records] == [
        "Refused a WebSocket at '/nowhere': nothing is there."
    ]


@pytest.mark.parametrize(
    ("origin", "host", "trusted", "allowed"),
    [
        ("https://a.example", "a.example", [], True),
        ("https://a.example:8443", "a.example:8443", [], True),
        ("http://[::1]:8000", "[::1]:8000", [], True),
        ("https://proxy.example", "a.example", ["https://proxy.example"], True),
        ("https://proxy.example", "a.example", [], False),
        ("https://b.example", "b.example", [], False),
        ("https://a.example.evil", "a.example", [], False),
        ("chrome-extension://a.example", "a.example", [], False),
        ("http://[", "a.example", [], False),
    ],
)
def test_origins(settings: Any, origin: str, host: str, trusted: list[str], allowed: bool) -> None:
    settings.ALLOWED_HOSTS = ["a.example", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = trusted
    headers = [(b"origin", origin.encode()), (b"host", host.encode())]
    assert origin_allowed({"headers": headers}) is allowed
