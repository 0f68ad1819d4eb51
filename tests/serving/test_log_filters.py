"""What strangers can have logged: no traceback of a TLS handshake, and a line a minute of no requests."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import pytest

from tests.parts.quick_server import in_this_loop
from voiceapp.config import UpstreamKind
from voiceapp.errors import UpstreamRefused
from voiceapp.relay.upstream.connection import open_upstream
from voiceapp.relay.upstream.target import Target
from voiceapp.serving.log_filters import LostLines
from voiceapp.serving.refusals import Refusals, refusals


@pytest.mark.parametrize("answer", [b"", b"\x16\x03\x03\x00\x7a\x02"], ids=["nothing", "half of it"])
async def test_a_service_that_hangs_up_in_the_tls_handshake_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(UpstreamRefused):
            await open_upstream(Target(UpstreamKind.AZURE_GA, url, "key"), 60.0)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize(
    ("message", "error", "logged"),
    [
        ("SSL handshake failed\nprotocol: x", ConnectionResetError(), False),
        ("SSL handshake failed", ConnectionResetError, False),
        ("SSL handshake failed", ssl.SSLError(), False),
        ("SSL handshake failed", KeyError("x"), True),
        ("SSL handshake failed", None, True),
        ("Exception in callback", ConnectionResetError(), True),
        ("Task exception was never retrieved", KeyError("x"), True),
    ],
)
def test_only_those_are_dropped(message: str, error: Any, logged: bool) -> None:
    info = None if error is None else (type(error), error, None)
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, message, None, info)
    assert LostLines().filter(record) is logged


NO_REQUESTS = [
    b"\x16\x03\x01\0\xa5 TLS\r\n\r\n",
    b"GET / HTTP/1.1\r\nUpgrade: tea\r\nConnection: Upgrade\r\n\r\n",
]


@pytest.mark.parametrize("sent", NO_REQUESTS, ids=["no HTTP", "no WebSocket"])
async def test_what_is_no_request_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with refusals.use(Refusals()):
        async with in_this_loop(app) as address:
            for _ in range(3):
                host, port = address.removeprefix("ws://").split(":")
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(sent)
                await reader.read(1)
                writer.close()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("Refused a connection: ")
