"""Packed answers (``Content-Encoding``, RFC 9110, 8.4), opened piece by piece; pure but for the stream.

Nobody here asks for them, but some services and the proxies before them pack whatever they send.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Final

import httpx2

PIECE_BYTES: Final = 64 * 1024
"""Opened at once: a thousandth of that may hold it, so what is cut is cut before it has grown."""
MAX_CODINGS: Final = 3
"""Codings of one answer, one in another: two are seen where a proxy packs again, and each costs as much."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_CODINGS: Final = frozenset(("gzip", "x-gzip", "deflate"))


class CannotOpen(Exception):
    """What is packed cannot be opened; the message ends a sentence."""


def codings_of(header: str) -> list[str]:
    """Return the codings that an answer is in, the outermost first; raise ``CannotOpen`` for unknown ones."""
    named = [name for part in header.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    for name in named:
        if name not in _CODINGS:
            raise CannotOpen(f"packs its answers in a way that cannot be opened here ({name[:20]!r})")
    if len(named) > MAX_CODINGS:
        raise CannotOpen(f"packs its answers more than {MAX_CODINGS} times")
    return named[::-1]


class Unpacked(httpx2.AsyncByteStream):
    """A stream in one coding as what it holds; raises ``CannotOpen`` where it is broken or ends early."""

    def __init__(self, stream: httpx2.AsyncByteStream, coding: str) -> None:
        self._stream = stream
        self._deflate = coding == "deflate"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        opener: zlib._Decompress | None = None
        begun = False
        async for packed in self._stream:
            if opener is None and begun:
                # Zeros may stand behind what was packed, in a piece of their own.
                packed = packed.lstrip(b"\0")
            more = bool(packed)
            while more:
                opener, begun = opener or self._opener(packed), True
                try:
                    piece = opener.decompress(packed, PIECE_BYTES)
                except zlib.error:
                    raise CannotOpen("sent an answer that is packed and cannot be opened") from None
                if piece:
                    yield piece
                packed = opener.unconsumed_tail
                # What was taken in whole may still hold more than was given out.
                more = bool(packed) or len(piece) == PIECE_BYTES
                if opener.eof and not self._deflate:
                    # Several may stand one after the other (RFC 1952, 2.2), and zeros behind them.
                    packed, opener = opener.unused_data.lstrip(b"\0"), None
                    more = bool(packed)
                elif opener.eof:
                    return
                if more:
                    # Others on this loop go first.
                    await asyncio.sleep(0)
        if opener is not None and not opener.eof:
            raise CannotOpen("broke off in a packed answer")

    def _opener(self, begun: bytes) -> zlib._Decompress:
        if not self._deflate:
            return zlib.decompressobj(_GZIP)
        # Some services leave the wrapper away, by whose first byte it is known (RFC 1950, 2.2).
        return zlib.decompressobj(zlib.MAX_WBITS if begun[0] & 0x0F == 8 else -zlib.MAX_WBITS)

    async def aclose(self) -> None:
        """Close the stream that is unpacked."""
        await self._stream.aclose()
