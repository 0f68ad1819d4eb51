"""The self-check's socket: what it sends back, and where it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.conf import settings as product
from django.contrib.auth.models import AnonymousUser, User
from django.test import AsyncClient, Client

from tests.parts.clock import pass_time
from tests.parts.raw_sockets import BINARY, frame, raw_socket
from tests.parts.sockets import PatientSocket
from voiceapp.relay.browser.echo import LIFE_S, MAX_BYTES, DeviceChecks, EchoConsumer, device_checks
from voiceapp.serving.refusals import Refusals, refusals

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
ELSEWHERE = [(b"host", b"testserver"), (b"origin", b"https://elsewhere.example")]


@pytest.fixture(autouse=True)
def checks() -> Iterator[DeviceChecks]:
    """The table of checks, empty before the test and, since every socket is over then, after it."""
    with device_checks.use(DeviceChecks()) as table, refusals.use(Refusals()):
        yield table


@pytest.fixture(autouse=True)
def host(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver", "127.0.0.1"]


async def socket_of(user: User | AnonymousUser, headers: list[tuple[bytes, bytes]] = ORIGIN) -> PatientSocket:
    """Return a socket of a user's page, not connected yet."""
    socket = PatientSocket(EchoConsumer.as_asgi(), "/ws/echo/", headers=headers)
    socket.scope["user"] = user
    if isinstance(user, User):
        client = AsyncClient()
        await client.aforce_login(user)
        socket.scope["session"] = await client.asession()
    return socket


@pytest.fixture
async def socket(user: User) -> AsyncIterator[PatientSocket]:
    """The open socket of a signed-in user."""
    opened = await socket_of(user)
    assert (await opened.connect())[0]
    yield opened
    await opened.disconnect()


async def goodbye(socket: PatientSocket) -> tuple[int, str]:
    """Return the code and the reason of the close, which is the next that is sent."""
    message = await socket.receive_output()
    assert message["type"] == "websocket.close", message
    await socket.wait()
    return message["code"], message["reason"]


async def test_binary_messages_come_back_as_they_are_and_in_their_order(socket: PatientSocket) -> None:
    for data in (b"\x00", b"", bytes(range(256)), b"last"):
        # The communicator's own way refuses an empty one.
        await socket.send_input({"type": "websocket.receive", "bytes": data})
        assert await socket.receive_from() == data


async def test_the_socket_ends_by_itself_when_its_time_is_up(
    socket: PatientSocket, checks: DeviceChecks
) -> None:
    await pass_time(LIFE_S - 0.1)
    await socket.send_to(bytes_data=b"still")
    assert await socket.receive_from() == b"still"
    await pass_time(0.2)
    assert await goodbye(socket) == (1000, "done")
    assert len(checks) == 0


@pytest.mark.parametrize(
    "sizes", [[MAX_BYTES, 1], [1, MAX_BYTES], [1024] * 65], ids=["last", "large", "many"]
)
async def test_a_page_that_sends_more_than_a_check_needs_is_closed(
    socket: PatientSocket, checks: DeviceChecks, sizes: list[int]
) -> None:
    taken = 0
    for size in sizes:
        await socket.send_to(bytes_data=bytes(size))
        taken += size
        if taken > MAX_BYTES:
            break
        assert len(await socket.receive_from()) == size
    assert await goodbye(socket) == (1009, "too_much")
    assert len(checks) == 0


async def test_text_is_not_what_is_measured(socket: PatientSocket) -> None:
    await socket.send_to(text_data="hello")
    assert await goodbye(socket) == (1003, "binary_only")


async def test_a_user_has_one_check_at_a_time_and_others_are_not_in_the_way(
    socket: PatientSocket, user: User, checks: DeviceChecks
) -> None:
    second = await socket_of(user)
    assert (await second.connect())[0], "it is opened, since a page cannot read why one is not"
    assert await goodbye(second) == (4009, "too_many_checks")
    await socket.send_to(bytes_data=b"first")
    assert await socket.receive_from() == b"first"
    other = await socket_of(await User.objects.acreate(username="eve"))
    assert (await other.connect())[0]
    await other.send_to(bytes_data=b"hers")
    assert await other.receive_from() == b"hers"
    assert len(checks) == 2
    await other.disconnect()
    assert len(checks) == 1


async def test_a_check_that_is_over_makes_room_for_the_next(user: User, checks: DeviceChecks) -> None:
    for _ in range(3):
        socket = await socket_of(user)
        assert (await socket.connect())[0]
        await socket.send_to(bytes_data=b"again")
        assert await socket.receive_from() == b"again"
        await socket.disconnect()
        assert len(checks) == 0


@pytest.mark.parametrize("who", ["stranger", "elsewhere"])
async def test_whoever_may_not_talk_may_not_check(user: User, checks: DeviceChecks, who: str) -> None:
    socket = await socket_of(AnonymousUser()) if who == "stranger" else await socket_of(user, ELSEWHERE)
    assert await socket.connect() == (False, 4001 if who == "stranger" else 4003)
    await socket.wait()
    assert len(checks) == 0


@pytest.fixture
def cookie(user: User) -> tuple[str, str]:
    """The header of a browser in which the user is signed in."""
    client = Client()
    client.force_login(user)
    return "Cookie", f"{product.SESSION_COOKIE_NAME}={client.cookies[product.SESSION_COOKIE_NAME].value}"


async def test_the_bounds_hold_on_a_real_socket(server: str, site: str, cookie: tuple[str, str]) -> None:
    stranger: list[tuple[str, str]] = [("Origin", site)]
    own = [*stranger, cookie]
    async with raw_socket(server, "/ws/echo/", stranger) as line:
        assert line.status == 403
        assert b"not_signed_in" in await line.rest()
    async with raw_socket(server, "/ws/echo/", own) as first:
        assert first.status == 101
        first.send(frame(BINARY, b"ping"))
        assert await first.frame() == (BINARY, b"ping")
        async with raw_socket(server, "/ws/echo/", own) as second:
            assert await second.until_closed() == (4009, "too_many_checks")
        half = frame(BINARY, bytes(MAX_BYTES // 2))
        first.send(half, half)
        assert await first.until_closed() == (1009, "too_much")
