"""What is due to a client: in order, bounded, and nothing after the end."""

from __future__ import annotations

import asyncio

from voiceapp.nnrp.operations import End
from voiceapp.nnrp.packet_queue import MAX_BYTES, MAX_PACKETS, PacketQueue

END = End(1000, "done")


async def test_packets_come_in_their_order_and_nothing_after_the_end() -> None:
    queue = PacketQueue()
    for item in (b"a", b"b", END, b"c"):
        queue.put(item)
    assert [await queue.next() for _ in range(3)] == [b"a", b"b", END]
    late = asyncio.ensure_future(queue.next())
    await asyncio.sleep(0)
    assert not late.done()
    late.cancel()


async def test_who_waits_for_a_packet_is_given_the_next_one() -> None:
    queue = PacketQueue()
    waiting = asyncio.ensure_future(queue.next())
    await asyncio.sleep(0)
    queue.put(b"a")
    assert await waiting == b"a"


async def room_in(queue: PacketQueue) -> bool:
    """Return whether whoever asks for room need not wait."""
    asking = asyncio.ensure_future(queue.room())
    await asyncio.sleep(0)
    there = asking.done()
    asking.cancel()
    return there


async def test_there_is_room_for_so_many_packets_or_bytes() -> None:
    many, large = PacketQueue(), PacketQueue()
    for _ in range(MAX_PACKETS):
        assert await room_in(many)
        many.put(b"x")
    large.put(bytes(MAX_BYTES))
    for queue in (many, large):
        assert not await room_in(queue)
        await queue.next()
        assert await room_in(queue)


async def test_nobody_waits_for_room_behind_the_end() -> None:
    queue = PacketQueue()
    queue.put(bytes(MAX_BYTES))
    waiting = asyncio.ensure_future(queue.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.put(END)
    await waiting
