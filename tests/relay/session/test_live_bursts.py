"""Services speak faster than anybody listens: all of it is heard by a page that reads."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, seen
from tests.parts.scripted import Service
from tests.parts.waits import wait_until
from voiceapp.relay.session import outbox
from voiceapp.relay.session.attachment import STALL_S

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = b"\1\0" * 24_000


async def burst(upstream: Service, seconds: int, at_once: int) -> bytes:
    """Let the service say so much, in messages of ``at_once`` seconds; return the samples."""
    samples = b"".join(n.to_bytes(2, "little") * 24_000 for n in range(seconds))
    await upstream.begin_answer()
    for at in range(0, len(samples), at_once * len(SECOND)):
        await upstream.say("la ", samples[at : at + at_once * len(SECOND)], whole=True)
    await upstream.end_answer("la " * seconds)
    return samples


async def read(page: Page, size: int) -> None:
    """Read as a page does, which says every now and then what it has."""
    said = 0
    while len(page.audio) < size:
        await page.hear(min(size, len(page.audio) + 480_000))
        if page.seq > said:
            said = page.seq
            await page.send({"type": "ping", "seq": said})


@pytest.mark.parametrize("at_once", [1, 160])
async def test_five_minutes_in_one_moment_are_heard_whole(talking: Talk, at_once: int) -> None:
    async with talking() as (page, upstream):
        speaking = asyncio.create_task(burst(upstream, 300, at_once))
        await read(page, 300 * len(SECOND))
        samples = await speaking
        assert hashlib.sha256(page.audio).digest() == hashlib.sha256(samples).digest()
        await page.until("response.done")
        assert page.closed is None


async def test_of_what_nobody_can_keep_the_service_is_not_read(
    talking: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "FULL_BYTES", 4 * outbox.ROOM_BYTES)
    async with talking() as (page, upstream):
        speaking = asyncio.create_task(burst(upstream, 600, 1))
        await pass_time(1)
        assert not speaking.done(), "the service could send all of it"
        await read(page, 600 * len(SECOND))
        await speaking
        await page.until("response.done")


async def test_a_page_that_reads_nothing_is_let_go(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await burst(upstream, 60, 1)
        await page.hear(20 * len(SECOND))
        await pass_time(STALL_S + 1)
        assert (await page.until("close"))["code"] == 4014


async def test_many_small_messages_within_one_moment_are_no_reason_to_let_a_page_go(talking: Talk) -> None:
    async with talking() as (page, upstream):
        error = {"type": "error", "error": {"type": "server_error", "code": "odd", "message": "x" * 300}}
        await upstream.send(*[error] * 10_000)
        for _ in range(10_000):
            event = await page.until("error")
            if event["seq"] % 1_000 == 0:
                await page.send({"type": "ping", "seq": event["seq"]})
        assert page.closed is None
        assert len(seen(page, "error")) == 10_000


async def test_queued_sound_and_an_open_microphone_are_life(talking: Talk) -> None:
    async with talking(idle_s=5.0) as (page, upstream):
        samples = await burst(upstream, 20, 1)
        await page.hear(len(samples))
        await page.until("response.done")
        for played_ms in range(0, 20_000, 1_000):
            await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": played_ms,
                             "final": False, "seq": page.seq})  # fmt: skip
            await pass_time(1)
        assert page.closed is None
        # The speaker stands still, and so does the conversation.
        await pass_time(8)
        assert (await page.until("close"))["code"] == 4008


async def test_a_page_that_never_reports_is_taken_to_play(talking: Talk) -> None:
    async with talking(idle_s=5.0) as (page, upstream):
        await burst(upstream, 20, 1)
        await page.until("response.done")
        await pass_time(18)
        assert page.closed is None
        await pass_time(8)
        assert (await page.until("close"))["code"] == 4008


async def test_who_speaks_is_there(talking: Talk) -> None:
    """Hands-free the service says so; with a button the microphone is open only while it is held."""
    async with talking(idle_s=5.0) as (page, upstream):
        await upstream.send(
            {"type": "input_audio_buffer.speech_started", "item_id": "u", "audio_start_ms": 0}
        )
        await pass_time(9)
        assert page.closed is None
        stopped = {"type": "input_audio_buffer.speech_stopped", "item_id": "u", "audio_end_ms": 9_000}
        await upstream.send(stopped)
        await page.until("input_audio_buffer.speech_stopped")
        held = {"type": "session.updated", "session": {"audio": {"input": {"turn_detection": None}}}}
        await upstream.send(held)
        await page.until("session.updated")
        for _ in range(9):
            await page.socket.send_to(bytes_data=bytes(960))
            await pass_time(1)
        assert page.closed is None
        await wait_until(lambda: len(upstream.audio) >= 9 * 960)
        await pass_time(8)
        assert (await page.until("close"))["code"] == 4008
