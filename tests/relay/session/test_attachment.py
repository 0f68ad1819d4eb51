"""Which of the page's sockets a session talks to."""

from __future__ import annotations

from tests.parts.clock import pass_time
from voiceapp.relay.session.attachment import STALL_S, Attachment


class Socket:
    """A socket of a page that nobody releases."""

    def release(self, close_code: int, reason: str) -> None:
        raise AssertionError("nobody asked for it")


async def test_a_page_is_away_while_it_has_no_socket() -> None:
    attachment, socket = Attachment(), Socket()
    await pass_time(3)
    assert attachment.away_s >= 3
    attachment.attach(socket)
    assert attachment.away_s == 0
    assert not attachment.alone.is_set()
    attachment.detach(socket)
    assert attachment.alone.is_set()
    assert attachment.browser is None
    await pass_time(2)
    assert 2 <= attachment.away_s < 3


async def test_an_old_socket_that_goes_takes_nothing_along() -> None:
    attachment, old, new = Attachment(), Socket(), Socket()
    attachment.attach(old)
    attachment.attach(new)
    attachment.detach(old)
    assert attachment.browser is new
    assert not attachment.alone.is_set()


async def test_a_page_stalls_where_it_reads_nothing_for_too_long() -> None:
    attachment = Attachment()
    attachment.attach(Socket())
    assert not attachment.stalled(blocked=True, acknowledged_seq=0)
    await pass_time(STALL_S / 2)
    assert not attachment.stalled(blocked=True, acknowledged_seq=0)
    await pass_time(STALL_S / 2 + 1)
    assert attachment.stalled(blocked=True, acknowledged_seq=0)
    # It has read again, and is given the whole time anew.
    assert not attachment.stalled(blocked=False, acknowledged_seq=0)
    assert not attachment.stalled(blocked=True, acknowledged_seq=0)


async def test_a_new_socket_is_given_the_whole_time() -> None:
    attachment = Attachment()
    attachment.attach(Socket())
    await pass_time(STALL_S + 1)
    attachment.attach(Socket())
    assert not attachment.stalled(blocked=True, acknowledged_seq=0)


async def test_a_page_that_reads_what_is_long_does_not_stall() -> None:
    attachment = Attachment()
    attachment.attach(Socket())
    for seq in range(10):
        await pass_time(STALL_S - 1)
        assert not attachment.stalled(blocked=True, acknowledged_seq=seq)
    await pass_time(STALL_S + 1)
    assert attachment.stalled(blocked=True, acknowledged_seq=9)
