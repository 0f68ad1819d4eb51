"""Addresses, credentials and every way in which a service can refuse."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.asyncio.server import ServerConnection, serve
from websockets.utils import accept_key

from tests.parts.clock import pass_time
from tests.parts.scripted import service
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.config import UpstreamKind, VoiceConfig
from voiceapp.errors import ConfigurationError, UpstreamError, VoiceAppError
from voiceapp.protocol.dialects import Dialect
from voiceapp.relay.upstream.connection import open_upstream
from voiceapp.relay.upstream.target import Target, choose

EMPTY, _ = VoiceConfig.load({})


def config(**values: Any) -> VoiceConfig:
    return replace(EMPTY, **values)


@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("https://a.openai.azure.com", "wss://a.openai.azure.com"),
        ("https://a.openai.azure.com/", "wss://a.openai.azure.com"),
        ("wss://a.openai.azure.com", "wss://a.openai.azure.com"),
        ("a.openai.azure.com", "wss://a.openai.azure.com"),
        ("https://a.openai.azure.com/openai/v1/", "wss://a.openai.azure.com"),
        ("https://gateway.example/team/openai/realtime?x=1", "wss://gateway.example/team"),
        ("http://127.0.0.1:9000", "ws://127.0.0.1:9000"),
    ],
)
def test_endpoints_are_taken_as_portals_give_them(endpoint: str, base: str) -> None:
    ga = choose(config(azure_endpoint=endpoint, azure_deployment="my dep"), None)
    assert (ga.kind, ga.url) == (UpstreamKind.AZURE_GA, f"{base}/openai/v1/realtime?model=my%20dep")
    preview = choose(
        config(azure_endpoint=endpoint, azure_deployment="d", azure_api_version="2025-04-01-preview"), None
    )
    assert preview.kind is UpstreamKind.AZURE_PREVIEW
    assert preview.url == f"{base}/openai/realtime?api-version=2025-04-01-preview&deployment=d"


@pytest.mark.parametrize(
    ("own", "base"),
    [
        (("127.0.0.1", 8000), "ws://127.0.0.1:8000"),
        (("0.0.0.0", 8000), "ws://127.0.0.1:8000"),
        (("::", 8000), "ws://[::1]:8000"),
        (("192.0.2.7", 80), "ws://192.0.2.7:80"),
    ],
)
def test_without_azure_the_engine_of_this_very_server_answers(own: tuple[str, int], base: str) -> None:
    target = choose(config(engine_api_key="k"), own)
    assert target.kind is UpstreamKind.EMBEDDED
    assert target.url.startswith(f"{base}/openai/v1/realtime?model=")
    assert target.api_key == "k"


def test_the_engine_may_live_elsewhere() -> None:
    target = choose(config(engine_url="https://engine.example/"), ("127.0.0.1", 1))
    assert target.url.startswith("wss://engine.example/openai/v1/realtime?")


def test_a_server_that_does_not_know_its_address_says_so() -> None:
    with pytest.raises(ConfigurationError, match="VOICEAPP_ENGINE_URL"):
        choose(EMPTY, None)


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(choose(config(azure_endpoint="https://a.b", azure_api_key="secret"), None))


@asynccontextmanager
async def says(*messages: str, then_close: int | None = None) -> AsyncIterator[str]:
    """A service that upgrades, says something, and perhaps closes."""

    async def handle(socket: ServerConnection) -> None:
        for message in messages:
            await socket.send(message)
        if then_close is not None:
            await socket.close(then_close, "reason")
        await socket.wait_closed()

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def refused(
    url: str, timeout_s: float = 5.0, kind: UpstreamKind = UpstreamKind.AZURE_GA
) -> VoiceAppError:
    with pytest.raises(UpstreamError) as caught:
        await open_upstream(Target(kind, url, "key"), timeout_s)
    assert caught.value.message.endswith(".")
    assert "key" not in caught.value.message.replace("the key", "").replace("API_KEY", "")
    return caught.value


def error(code: str) -> str:
    return json.dumps(
        {"type": "error", "event_id": "e", "error": {"type": "x", "code": code, "message": "m"}}
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("invalid_request_error.invalid_api_key", "upstream_unauthorized"),
        ("invalid_api_key", "upstream_unauthorized"),
        ("missing_model", "upstream_not_found"),
        ("insufficient_quota", "upstream_busy"),
        ("beta_api_shape_disabled", "upstream_bad_request"),
    ],
)
async def test_a_service_that_refuses_after_the_upgrade(code: str, expected: str) -> None:
    async with says(error(code), then_close=3000) as url:
        assert (await refused(url)).code == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((), "upstream_refused"),
        (("not json",), "upstream_protocol"),
        (('{"type":"hello"}',), "upstream_protocol"),
        (('{"type":"error","error":"no"}',), "upstream_bad_request"),
    ],
)
async def test_a_service_that_is_none(messages: tuple[str, ...], expected: str) -> None:
    async with says(*messages, then_close=1000) as url:
        assert (await refused(url)).code == expected


async def test_a_service_that_says_nothing_is_not_awaited_for_ever() -> None:
    async with says() as url:
        assert (await refused(url, timeout_s=0.2)).code == "upstream_timeout"


class Slow:
    """A service that answers the upgrade once ``answer`` is set, and never closes by itself."""

    def __init__(self) -> None:
        self.asked, self.answer, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = next(line for line in await read_head(reader) if line.lower().startswith("sec-websocket-key"))
        self.asked.set()
        left = asyncio.create_task(reader.read(1))
        answer = asyncio.create_task(self.answer.wait())
        await asyncio.wait({left, answer}, return_when=asyncio.FIRST_COMPLETED)
        answer.cancel()
        accept = accept_key(key.partition(":")[2].strip())
        created = b'{"type":"session.created","session":{}}'
        with suppress(OSError):
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
                + bytes((0x81, len(created)))
                + created
            )
            while await left:
                left = asyncio.create_task(reader.read(1))
        self.gone.set()
        writer.close()


async def read_head(reader: asyncio.StreamReader) -> list[str]:
    return (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()


@asynccontextmanager
async def slow() -> AsyncIterator[tuple[Slow, Target]]:
    service = Slow()
    async with await asyncio.start_server(service.serve, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield service, Target(UpstreamKind.AZURE_GA, url, "key")


@pytest.mark.parametrize("answers", [True, False])
async def test_a_call_that_is_given_up_leaves_no_line_open(*, answers: bool) -> None:
    async with slow() as (service, target), asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(open_upstream(target, 20.0))
        await service.asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        if answers:
            service.answer.set()
        else:
            await pass_time(21)
        # A service bills the line for as long as it is there.
        await service.gone.wait()


async def test_a_line_whose_closing_is_not_waited_for_is_closed_all_the_same() -> None:
    async with slow() as (service, target), asyncio.timeout(PATIENCE_S):
        service.answer.set()
        upstream, _ = await open_upstream(target, PATIENCE_S)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await upstream.aclose()
        await service.gone.wait()


async def test_a_name_that_does_not_exist() -> None:
    assert (await refused("wss://nowhere.invalid/openai")).code == "upstream_dns"


async def test_nobody_listens() -> None:
    assert (await refused("ws://127.0.0.1:9/")).code == "upstream_unreachable"


def self_signed(folder: Path) -> ssl.SSLContext:
    """Return a server's TLS with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


async def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    async def handle(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with serve(handle, "127.0.0.1", 0, ssl=self_signed(tmp_path)) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await refused(f"wss://localhost:{port}/")).code == "upstream_tls"


async def test_something_that_is_no_websocket() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-nothing here\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await refused(f"ws://127.0.0.1:{port}/")).code in ("upstream_unreachable", "upstream_refused")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (UpstreamKind.AZURE_GA, "AZURE_OPENAI_API_VERSION"),
        (UpstreamKind.AZURE_PREVIEW, "leave AZURE_OPENAI_API_VERSION empty"),
        (UpstreamKind.EMBEDDED, "VOICEAPP_ENGINE_URL"),
    ],
)
async def test_a_wrong_kind_of_address_gets_a_hint(kind: UpstreamKind, words: str) -> None:
    async with service(refuse=404) as upstream:
        assert words in (await refused(upstream.url, kind=kind)).message


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
async def test_the_first_frame_decides_the_dialect_not_the_address(dialect: Dialect) -> None:
    # A preview service on GA's address and the other way round, as gateways have it.
    async with service(dialect) as upstream:
        kind = UpstreamKind.AZURE_PREVIEW if dialect is Dialect.GA else UpstreamKind.AZURE_GA
        opened, _ = await open_upstream(Target(kind, upstream.url, "key"), 5)
        assert opened.dialect is dialect
        await opened.aclose()


async def test_a_service_that_is_gone_before_anybody_listens_is_lost() -> None:
    created = json.dumps({"type": "session.created", "event_id": "e", "session": {}})
    async with says(created, then_close=1011) as url:
        opened, first = await open_upstream(Target(UpstreamKind.AZURE_GA, url, "key"), 5)
        await wait_until(lambda: opened.disconnected)
        lost: list[UpstreamError] = []
        received: list[str] = []
        opened.start(first, lambda event, text: received.append(text), lost.append)
        assert [error.code for error in lost] == ["upstream_closed"]
        assert len(received) == 1
