"""An MCP server's certificate must bear its name, although the connection goes to a checked address."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from voiceapp.outbound.guard import Guard


def certificate(folder: Path, name: str) -> Path:
    """Write a key and a certificate for a name, signed by itself, into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("host", ["tools.example", "other.example"])
async def test_the_name_is_checked(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path, "tools.example")
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(pem)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served)
    port = server.sockets[0].getsockname()[1]

    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    guard = Guard(private_allowed=True)
    trusting = ssl.create_default_context(cafile=str(pem))
    monkeypatch.setattr(guard, "_inner", httpx2.AsyncHTTPTransport(verify=trusting, trust_env=False))
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)
    async with server, httpx2.AsyncClient(transport=guard, trust_env=False) as client:
        if host == "tools.example":
            assert (await client.post(f"https://{host}:{port}/mcp")).text == "hi"
            assert f"host: {host}:{port}".encode() in asked[0].lower()
        else:
            with pytest.raises(httpx2.ConnectError):
                await client.post(f"https://{host}:{port}/mcp")
            assert not asked
