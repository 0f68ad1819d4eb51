"""Which consumer serves a socket's address."""

from __future__ import annotations

import pytest
from channels.routing import URLRouter

from tests.parts.sockets import PatientSocket
from voiceapp.routing import websocket_urlpatterns


@pytest.mark.parametrize(
    "address", ["/", "/ws/", "/ws/voice", "/ws/voice/x", "/ws/echo", "/nnrp/", "/openai/v2/realtime"]
)
async def test_a_socket_at_an_address_that_nothing_has_is_refused(address: str) -> None:
    socket = PatientSocket(URLRouter(websocket_urlpatterns), address)
    assert await socket.connect() == (False, 4004)
    await socket.wait()


@pytest.mark.parametrize("address", ["/ws/model-host/", "/nnrp", "/openai/v1/realtime", "/openai/realtime"])
@pytest.mark.django_db(transaction=True)
async def test_a_program_without_a_token_or_key_is_refused_with_4001(address: str) -> None:
    socket = PatientSocket(URLRouter(websocket_urlpatterns), address)
    assert await socket.connect() == (False, 4001)
    await socket.wait()


@pytest.mark.parametrize("address", ["/ws/voice/", "/ws/echo/"])
@pytest.mark.django_db(transaction=True)
async def test_a_page_of_another_site_is_refused_with_4003(address: str) -> None:
    socket = PatientSocket(URLRouter(websocket_urlpatterns), address)
    assert await socket.connect() == (False, 4003)
    await socket.wait()
