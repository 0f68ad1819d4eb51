"""Packed answers: opened whatever the pieces they come in, and never more at once than a piece."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.outbound.unpacking import MAX_CODINGS, PIECE_BYTES, CannotOpen, Unpacked, codings_of


class Pieces(httpx2.AsyncByteStream):
    """A stream of these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def opened(coding: str, *pieces: bytes) -> list[bytes]:
    return [piece async for piece in Unpacked(Pieces(*pieces), coding)]


def raw(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "raw": raw}


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=400), st.integers(1, 400), st.integers(1, 9))
async def test_any_answer_in_any_pieces_is_opened(how: str, text: bytes, times: int, size: int) -> None:
    packed = PACKERS[how](text * times)
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    found = await opened("gzip" if how == "gzip" else "deflate", *pieces)
    assert b"".join(found) == text * times
    assert max(map(len, found), default=0) <= PIECE_BYTES


@given(st.sampled_from(["gzip", "deflate"]), st.lists(st.binary(max_size=99), max_size=9))
async def test_any_bytes_are_opened_or_refused_in_words(coding: str, pieces: list[bytes]) -> None:
    with contextlib.suppress(CannotOpen):
        assert max(map(len, await opened(coding, *pieces)), default=0) <= PIECE_BYTES


async def test_what_grows_comes_in_pieces() -> None:
    found = Unpacked(Pieces(gzip.compress(bytes(50_000_000))), "gzip").__aiter__()
    assert len(await anext(found)) == PIECE_BYTES


@pytest.mark.parametrize(
    ("header", "codings"),
    [
        ("", []),
        ("identity", []),
        ("GZIP", ["gzip"]),
        ("deflate, gzip", ["gzip", "deflate"]),
        (" gzip ,, identity", ["gzip"]),
    ],
)
def test_codings_are_opened_from_the_outermost(header: str, codings: list[str]) -> None:
    assert codings_of(header) == codings


@pytest.mark.parametrize("header", ["br", "gzip, zstd", "compress", ",".join(["gzip"] * (MAX_CODINGS + 1))])
def test_other_codings_are_refused(header: str) -> None:
    with pytest.raises(CannotOpen):
        codings_of(header)
