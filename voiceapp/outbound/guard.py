"""Requests to addresses that others named: which of them may be reached, and how much may come back.

``httpx2`` comes with the ``openai`` package. The transport is used as it is, without a client around it,
where redirects shall not be followed and addresses not be logged.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import Final

import httpx2

from voiceapp.outbound.unpacking import CannotOpen, Unpacked, codings_of

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of an answer as it is sent, and of what is packed in it."""
# By these, an IPv4 address is reached through an IPv6 one.
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, whatever it is wrapped in."""
    try:
        ip: _Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None or ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast


@cache
def _trusted() -> ssl.SSLContext:
    # Reading them takes 20 to 50 ms, which no call shall wait for twice.
    return httpx2.create_ssl_context(trust_env=False)


class AddressRefused(httpx2.TransportError):
    """A request that must not be sent, or an answer that is not to be read."""


class Guard(httpx2.AsyncBaseTransport):
    """Sends requests to checked addresses only.

    The name is resolved here and the connection made to the very address that was checked, so that a name
    cannot change its mind in between. ``status`` is that of the last answer to a request, ``fault`` says why
    there was none.
    """

    def __init__(self, *, private_allowed: bool, who: str = "MCP server") -> None:
        """``private_allowed`` opens plain HTTP and addresses that are not public; ``who`` is asked.

        Blocks where it is the first one: the certificates that connections trust are read for it.
        """
        self._private_allowed = private_allowed
        self.who = who
        self._inner = httpx2.AsyncHTTPTransport(verify=_trusted(), trust_env=False)
        self.status = 0
        self.fault = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; redirects come here as requests of their own."""
        try:
            response = await self._send(request)
        except AddressRefused as refused:
            self.fault = str(refused)
            raise
        except httpx2.TransportError as error:
            self.fault = f"The {self.who} could not be reached ({type(error).__name__})."
            raise
        # The stream that an MCP client opens beside its requests is refused by many servers.
        if request.method == "POST":
            self.status = response.status_code
            self.fault = ""
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https" and not self._private_allowed:
            raise AddressRefused(f"The {self.who} is reached over https only.")
        host = request.url.raw_host.decode("ascii")
        addresses = await self._addresses(host, request.url.port or 443)
        for address in addresses[:-1]:
            try:
                return await self._send_to(address, host, request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send_to(addresses[-1], host, request)

    async def _addresses(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except OSError:
            raise AddressRefused(f"The {self.who}'s name cannot be resolved.") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not addresses:
            raise AddressRefused(f"The {self.who}'s name cannot be resolved.")
        if not self._private_allowed and not all(is_public(address) for address in addresses):
            raise AddressRefused(f"The {self.who}'s address is not on the public internet.")
        return addresses

    async def _send_to(self, address: str, host: str, request: httpx2.Request) -> httpx2.Response:
        sent = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        response = await self._inner.handle_async_request(sent)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream: httpx2.AsyncByteStream = _Capped(response.stream, self)
        try:
            codings = codings_of(response.headers.get("content-encoding", ""))
        except CannotOpen as error:
            await response.aclose()
            raise AddressRefused(f"The {self.who} {error}.") from None
        headers = response.headers
        for coding in codings:
            stream = _Capped(Unpacked(stream, coding), self)
        if codings:
            packed = ("content-encoding", "content-length")
            headers = httpx2.Headers([(k, v) for k, v in headers.multi_items() if k.lower() not in packed])
        return httpx2.Response(
            response.status_code,
            headers=headers,
            stream=stream,
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Capped(httpx2.AsyncByteStream):
    """An answer that ends in a fault where it grows too long, or cannot be unpacked."""

    def __init__(self, stream: httpx2.AsyncByteStream, guard: Guard) -> None:
        self._stream = stream
        self._guard = guard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BYTES
        try:
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    self._guard.fault = f"The {self._guard.who}'s answer is too long."
                    raise AddressRefused(self._guard.fault)
                yield chunk
        except CannotOpen as error:
            self._guard.fault = f"The {self._guard.who} {error}."
            raise AddressRefused(self._guard.fault) from None

    async def aclose(self) -> None:
        await self._stream.aclose()
