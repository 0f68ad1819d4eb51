"""A page that comes back to a session of a process that is gone, in awkward moments."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.parts.page import Page, Talk
from voiceapp.records.models import Session
from voiceapp.records.recording import recorder
from voiceapp.records.store.writer import writer
from voiceapp.relay.process.sessions import sessions
from voiceapp.relay.session.ending import EndReason

pytestmark = pytest.mark.django_db(transaction=True)


async def left(session_id: str, data_dir: Path, **changes: Any) -> None:
    """Let a session's row say that it is one of a process that has died."""
    (data_dir / "processes" / "gone").touch()
    await Session.objects.filter(id=session_id).aupdate(process="gone", ended_at=None, **changes)


async def came_back(scope: dict[str, Any], session_id: str) -> Page:
    page = Page(scope)
    await page.connect(resume={"session_id": session_id, "seq": 1})
    return page


async def test_a_page_that_comes_twice_finds_its_session_each_time(
    talking: Talk, signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with talking() as (page, _):
        session_id = page.seen[-1]["session_id"]
        await page.hang_up()
        await left(session_id, tmp_path)
        pages = await asyncio.gather(*(came_back(signed_in, session_id) for _ in range(2)))
        for again in pages:
            await again.until("session.resumed")
        live = sessions().find(UUID(session_id), (await Session.objects.aget()).user_id)
        assert live is not None
        assert live.attached
        await pages[1].hang_up()


async def test_a_session_that_still_ends_here_does_not_end_the_one_that_comes_back(
    talking: Talk, signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with talking(record_audio=True) as (page, upstream):
        session_id = page.seen[-1]["session_id"]
        await page.socket.send_to(bytes_data=b"\0\0" * 480)
        await upstream.expect("input_audio_buffer.append")
        slow = threading.Event()
        recorder.disk().submit(slow.wait)  # type: ignore[arg-type]
        before = sessions().find(UUID(session_id), (await Session.objects.aget()).user_id)
        assert before is not None
        # Another process took it, and let it go again.
        await left(session_id, tmp_path)
        before.end(EndReason.MOVED)
        again = await came_back(signed_in, session_id)
        asyncio.get_running_loop().call_later(0.3, slow.set)
        await again.until("session.resumed")
        await before.finished.wait()
        row = await Session.objects.aget(id=session_id)
        assert row.ended_at is None
        assert sessions().find(before.id, before.user_id) not in (None, before)
        page.closed = 4017
        await again.hang_up()


async def test_a_session_that_another_process_went_on_with_is_taken_back(
    talking: Talk, signed_in: dict[str, Any], tmp_path: Path, settings: Any
) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    async with talking() as (page, _):
        session_id = page.seen[-1]["session_id"]
        # This process hung; the one that the page went to has died since.
        await left(session_id, tmp_path)
        again = await came_back(signed_in, session_id)
        assert (await again.until("session.resumed"))["moved"] is True
        await again.until("session.renewed")
        assert (await Session.objects.aget(id=session_id)).ended_at is None
        page.closed = 4017
        await again.hang_up()


async def test_what_cannot_go_on_here_may_go_on_elsewhere(
    talking: Talk, signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with talking() as (page, _):
        session_id = page.seen[-1]["session_id"]
        await page.hang_up()
        thinker = {"slug": "thinker", "name": "Thinker", "thinking": "embedded"}
        await left(session_id, tmp_path, configuration=thinker)
        again = Page(signed_in)
        # A server on a Unix socket: its own engine has no address.
        again.socket.scope["server"] = ("/run/voiceapp.sock", None)
        await again.connect(resume={"session_id": session_id, "seq": 1})
        assert (await again.until("notice"))["code"] == "configuration_error"
        await again.until("close")
        await writer().flush()
        row = await Session.objects.aget(id=session_id)
        assert row.end_reason == "moved"
