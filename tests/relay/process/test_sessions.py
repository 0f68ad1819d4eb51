"""Who is let in: how many sessions a user may hold, and whose they are."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.parts.page import Page, Talk, call_service, scope_of
from tests.parts.scripted import service
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant, Session
from voiceapp.records.store.writer import writer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_sessions_per_user_are_limited(talking: Talk, signed_in: dict[str, Any]) -> None:
    async with talking(max_sessions_per_user=1):
        second = Page(signed_in)
        await second.connect()
        assert (await second.until("close"))["code"] == 4009


async def test_pages_that_begin_at_the_same_moment_share_the_limit(
    settings: Any, signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with service(Dialect.GA) as upstream:
        call_service(settings, upstream, tmp_path, max_sessions_per_user=2)
        pages = [Page(signed_in) for _ in range(5)]
        await asyncio.gather(*(page.connect() for page in pages))
        reading = [asyncio.create_task(page.until("close")) for page in pages]
        for refused in islice(asyncio.as_completed(reading), 3):
            assert (await refused)["code"] == 4009
        # Nobody was let in and then sent away: every session that was opened goes on.
        await writer().call(lambda: None)
        assert await Session.objects.filter(ended_at=None).acount() == await Session.objects.acount() == 2
        for page in reading:
            page.cancel()


async def test_a_session_that_cannot_begin_is_not_left_open(
    settings: Any, signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with service(Dialect.GA) as upstream:
        call_service(settings, upstream, tmp_path)
        await Assistant.objects.acreate(slug="thinker", name="Thinker", thinking="embedded")
        page = Page(signed_in)
        # A server on a Unix socket: its own engine has no address.
        page.socket.scope["server"] = ("/run/voiceapp.sock", None)
        await page.connect(assistant="thinker")
        assert (await page.until("notice"))["code"] == "configuration_error"
        await page.until("close")
        kept = await Session.objects.aget()
        await writer().flush()
        await kept.arefresh_from_db()
        assert (kept.end_reason, kept.expected) == ("never_begun", False)


async def test_somebody_elses_session_is_not_found(talking: Talk) -> None:
    async with talking() as (page, _):
        other = Page(await scope_of("eve"))
        await other.connect(resume={"session_id": page.seen[-1]["session_id"], "seq": 0})
        assert (await other.until("close"))["code"] == 4004
