"""How to test the page's consumer, from its first message to its last: an example for consumers of your own.

Channels' ``WebsocketCommunicator``, here one with patience, stands for the ASGI server and the browser: it
runs a consumer in this very event loop, without a socket. The consumer is given what ``AuthMiddlewareStack``
would have put into its scope. The voice service is a scripted one: it says what the test lets it say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import AsyncClient

from tests.parts.page import call_service
from tests.parts.scripted import Service, service
from tests.parts.sockets import PatientSocket
from voiceapp.records.models import Assistant, Session
from voiceapp.relay.browser.consumer import VoiceConsumer

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
"""The consumer serves pages of its own site only, as ``AllowedHostsOriginValidator`` would have it."""

FRAME = b"\x01\x00" * 480
"""20 ms of sound: 16-bit samples at 24 kHz, mono."""


# -- 1. A service to talk to, and a socket of a user who is signed in -----------------------------------


@pytest.fixture
async def upstream(settings: Any, tmp_path: Path) -> AsyncIterator[Service]:
    """The voice service; sessions that begin now call it."""
    async with service() as scripted:
        call_service(settings, scripted, tmp_path)
        yield scripted


@pytest.fixture
async def socket(user: User, upstream: Service) -> AsyncIterator[PatientSocket]:
    """The socket of a signed-in user's page, not connected yet."""
    client = AsyncClient()
    await client.aforce_login(user)
    communicator = PatientSocket(VoiceConsumer.as_asgi(), "/ws/voice/", headers=ORIGIN)
    communicator.scope["user"] = user
    communicator.scope["session"] = await client.asession()
    yield communicator
    await communicator.wait()


async def event(socket: PatientSocket, kind: str) -> dict[str, Any]:
    """Receive until an event of a type comes; return it."""
    while True:
        found: dict[str, Any] = await socket.receive_json_from()
        if found["type"] == kind:
            return found


# -- 2. Connect, and start a session with an assistant --------------------------------------------------


async def start(socket: PatientSocket, **wanted: Any) -> dict[str, Any]:
    """Connect and start a session; return ``session.ready``."""
    connected, _ = await socket.connect()
    assert connected
    await socket.send_json_to({"type": "session.start", **wanted})
    return await event(socket, "session.ready")


async def hang_up(socket: PatientSocket) -> dict[str, Any]:
    """End the session; return how the socket was closed."""
    await socket.send_json_to({"type": "session.end"})
    assert (await event(socket, "session.ended"))["reason"] == "hung_up"
    closed: dict[str, Any] = await socket.receive_output()
    return closed


async def test_a_session_starts_with_the_assistant_that_the_page_names(
    socket: PatientSocket, upstream: Service
) -> None:
    await Assistant.objects.acreate(slug="grace", name="Grace Hopper", instructions="Be Grace.")
    ready = await start(socket, assistant="grace")
    assert ready["assistant"] == {"slug": "grace", "name": "Grace Hopper"}
    # The service knows how to be her; the page is not told.
    assert "Be Grace." in (await upstream.expect("session.update"))["session"]["instructions"]
    assert "Be Grace." not in str(ready)
    await hang_up(socket)


# -- 3. Send audio and text -----------------------------------------------------------------------------


async def test_the_microphone_reaches_the_service(socket: PatientSocket, upstream: Service) -> None:
    await start(socket)
    await socket.send_to(bytes_data=FRAME)
    await upstream.expect("input_audio_buffer.append")
    assert upstream.audio == FRAME
    await hang_up(socket)


async def test_what_the_user_types_reaches_the_service(socket: PatientSocket, upstream: Service) -> None:
    await start(socket)
    content = [{"type": "input_text", "text": "Hello"}]
    await socket.send_json_to(
        {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}}
    )
    assert (await upstream.expect("conversation.item.create"))["item"]["content"] == content
    await hang_up(socket)


# -- 4. Receive captions and audio ----------------------------------------------------------------------


async def test_the_page_reads_what_the_user_said(socket: PatientSocket, upstream: Service) -> None:
    await start(socket)
    await upstream.user_turn("What time is it?")
    caption = await event(socket, "conversation.item.input_audio_transcription.completed")
    assert caption["transcript"] == "What time is it?"
    await hang_up(socket)


async def test_the_page_reads_and_hears_the_answer(socket: PatientSocket, upstream: Service) -> None:
    await start(socket)
    await upstream.begin_answer()
    await upstream.say("Noon.", FRAME)
    assert (await event(socket, "response.output_audio_transcript.delta"))["delta"] == "Noon."
    announced = await event(socket, "audio.item")
    # Audio is a binary message: the number of its item, 4 bytes, and the samples.
    assert await socket.receive_from() == announced["index"].to_bytes(4, "big") + FRAME
    await hang_up(socket)


# -- 5. Hang up -----------------------------------------------------------------------------------------


async def test_a_session_that_is_hung_up_is_kept(socket: PatientSocket) -> None:
    ready = await start(socket)
    closed = await hang_up(socket)
    assert (closed["type"], closed["code"], closed["reason"]) == ("websocket.close", 4000, "hung_up")
    session = await Session.objects.aget(id=ready["session_id"])
    assert (session.end_reason, session.ended_at is not None) == ("hung_up", True)


# -- 6. Be refused --------------------------------------------------------------------------------------


async def test_a_page_of_another_site_is_refused_before_it_is_connected(
    socket: PatientSocket,
) -> None:
    socket.scope["headers"] = [(b"host", b"testserver"), (b"origin", b"http://evil.example")]
    assert await socket.connect() == (False, 4003)


async def test_a_stranger_is_refused_before_it_is_connected(socket: PatientSocket) -> None:
    socket.scope["user"] = AnonymousUser()
    assert await socket.connect() == (False, 4001)


async def test_an_assistant_that_is_not_there_is_refused(socket: PatientSocket) -> None:
    await socket.connect()
    await socket.send_json_to({"type": "session.start", "assistant": "nobody"})
    assert (await event(socket, "notice"))["code"] == "assistant_unknown"
    assert (await socket.receive_output())["code"] == 4004
