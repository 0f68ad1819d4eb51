"""The head of a handshake: what it may be, and how it is refused."""

from __future__ import annotations

import pytest

from voiceapp.errors import Refusal
from voiceapp.serving.handshake import MAX_HEAD_BYTES, head_size, read_head


def head(*lines: bytes, first: bytes = b"GET /ws/voice/?a=1 HTTP/1.1") -> bytes:
    return b"\r\n".join([first, *lines, b"", b""])


@pytest.mark.parametrize("size", [1, 8_190, 9_000, 50_000])
def test_a_header_may_be_as_long_as_the_head(size: int) -> None:
    request = read_head(head(b"host: a", b"cookie: " + b"x" * size))
    assert (request.method, request.path) == ("GET", "/ws/voice/?a=1")
    assert request.headers["cookie"] == "x" * size


def test_many_headers_odd_ones_and_those_that_come_twice_are_taken() -> None:
    lines = [b"x-%d: %d" % (number, number) for number in range(500)]
    request = read_head(head(*lines, b"a:1", b"a:  2\t", b"empty:", b"latin: \xe9"))
    assert request.headers["x-499"] == "499"
    assert request.headers.get_all("a") == ["1", "2"]
    assert (request.headers["empty"], request.headers["latin"]) == ("", "é")


REFUSED = [
    (head(b"cookie: " + b"x" * MAX_HEAD_BYTES), 431, "head_too_large"),
    (head(*[b"x: 1"] * (MAX_HEAD_BYTES // 6)), 431, "head_too_large"),
    (head(b"nothing"), 400, "bad_handshake"),
    (head(b"n\xe9: 1"), 400, "bad_handshake"),
    (head(b"a: 1\x00"), 400, "bad_handshake"),
    (head(first=b"GET /\xe9 HTTP/1.1"), 400, "bad_handshake"),
    (head(first=b"GET"), 400, "bad_handshake"),
    (head(b"transfer-encoding: chunked"), 400, "bad_handshake"),
    (head(b"content-length: 5"), 400, "bad_handshake"),
    (b"", 400, "bad_handshake"),
]


@pytest.mark.parametrize(("sent", "status", "code"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_head_or_too_long_is_refused_in_words(sent: bytes, status: int, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_head(sent)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert caught.value.message.endswith(".")


def test_the_size_of_a_scope_s_headers_is_that_on_the_wire() -> None:
    assert head_size([(b"host", b"a"), (b"cookie", b"bc")]) == len(b"host: a\r\ncookie: bc\r\n")
