"""The head of a WebSocket's handshake, read once more for the parser of its frames. Pure."""

from __future__ import annotations

from typing import Final

from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeaderValue
from websockets.http11 import Request

from voiceapp.errors import Refusal

MAX_HEAD_BYTES: Final = 64 * 1024
"""Longest head of a handshake: fifteen cookies of 4,096 bytes, which browsers keep (RFC 6265, 6.1)."""


def head_size(headers: list[tuple[bytes, bytes]]) -> int:
    """Return how many bytes the headers of an ASGI scope have on the wire."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


def head_too_large() -> Refusal:
    """Return what whoever sends a longer head is answered."""
    return Refusal(
        "head_too_large",
        f"The request has more than {MAX_HEAD_BYTES:,} bytes of headers. Delete this site's cookies.",
        status=431,
    )


def read_head(head: bytes) -> Request:
    """Return the request of a head that an HTTP parser has taken apart and put together again.

    Raises ``Refusal``: ``head_too_large`` (431), ``bad_handshake`` (400).
    """
    if len(head) > MAX_HEAD_BYTES:
        raise head_too_large()
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    headers = Headers()
    try:
        method, path, _ = first.decode("ascii").split(" ", 2)
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon:
                raise ValueError("a line without a name")
            headers[name.decode("ascii")] = value.strip(b" \t").decode("latin-1")
    except (ValueError, InvalidHeaderValue):
        raise _malformed("Its head cannot be read.") from None
    if "transfer-encoding" in headers or not set(headers.get_all("content-length")) <= {"0"}:
        raise _malformed("It has a body.")
    return Request(path, headers, method)


def _malformed(why: str) -> Refusal:
    return Refusal("bad_handshake", f"This is no handshake of a WebSocket. {why}", status=400)
