"""Lines that end in their TLS handshake leave no traceback; other faults of a loop do."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import pytest

from voiceapp.config import UpstreamKind
from voiceapp.errors import UpstreamRefused
from voiceapp.relay.upstream.connection import open_upstream
from voiceapp.relay.upstream.target import Target
from voiceapp.serving.lost_lines import LostLines


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
