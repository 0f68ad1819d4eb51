"""The numbered messages to a page: odd acknowledgements, and a page that does not read to the end."""

from __future__ import annotations

import asyncio

import pytest

from voiceapp.relay.session.outbox import MAX_KEPT_BYTES, WINDOW_BYTES, Outbox


def sent(count: int) -> Outbox:
    """Return an outbox that has sent so many messages."""
    outbox = Outbox()
    for _ in range(count):
        outbox.put_text('{"type":"notice"}')
        outbox.take()
    return outbox


@pytest.mark.parametrize("seq", [-(10**30), -1, 0, 4, 10**30])
def test_a_number_that_was_never_sent_acknowledges_nothing(seq: int) -> None:
    outbox = sent(3)
    outbox.acknowledge(seq)
    assert outbox.rewind(0) == (0, False)


@pytest.mark.parametrize("seq", [-(10**30), -1, 4, 10**30])
def test_a_page_that_comes_back_with_such_a_number_is_told_everything_again(seq: int) -> None:
    outbox = sent(3)
    assert outbox.rewind(seq) == (0, True)
    assert [message.seq for message in iter(outbox.take, None)] == [1, 2, 3]


async def test_waiting_for_a_page_that_does_not_read_leaves_no_task() -> None:
    outbox = Outbox()
    for _ in range(3):
        outbox.put_text('{"type":"' + "x" * WINDOW_BYTES + '"}')
    sender = asyncio.create_task(asyncio.Event().wait())
    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await outbox.drained(sender)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    sender.cancel()


def test_what_is_kept_is_counted_in_bytes() -> None:
    outbox = Outbox()
    outbox.put_text('{"type":"' + "語" * (MAX_KEPT_BYTES // 3) + '"}')
    assert outbox.overfull
