"""The user's time zone: from the page's first message to the model, the tools and the next session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parts.page import Page, Talk, used
from voiceapp.records.models import Session

pytestmark = pytest.mark.django_db(transaction=True)

TOKYO = "Asia/Tokyo"


async def test_the_model_and_the_tools_know_where_the_user_is(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start={**able, "time_zone": TOKYO}) as (page, upstream):
        told = upstream.sent_to_me("session.update")[0]["session"]["instructions"]
        assert "The user's time zone is Asia/Tokyo." in told
        assert " in Tokyo, on " in await used(upstream, "current_time")
        assert "Asia/Tokyo" not in json.dumps(page.seen)
    assert (await Session.objects.aget()).time_zone == TOKYO


async def test_an_assistant_that_goes_on_knows_it_too(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start={**able, "time_zone": TOKYO}) as (page, upstream):
        await used(upstream, "hand_over", name="Grace")
        await page.until("session.assistant")
        while True:
            told = (await upstream.expect("session.update"))["session"]["instructions"]
            if told.startswith("Be Grace."):
                break
        assert "The user's time zone is Asia/Tokyo." in told
    kept = await Session.objects.aget()
    # What is kept, and shown to administrators, is the assistant as it was written.
    assert (kept.configuration["instructions"], kept.time_zone) == ("Be Grace.", TOKYO)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../UTC", "", "x" * 100_000])
async def test_a_zone_that_nobody_knows_is_said_and_the_servers_counts(
    talking: Talk, able: dict[str, str], zone: str
) -> None:
    async with talking(start={**able, "time_zone": zone}) as (page, upstream):
        (notice,) = [event for event in page.seen if event["type"] == "notice"]
        assert (notice["code"], notice["level"]) == ("time_zone_unknown", "info")
        assert notice["message"].endswith("times are those of UTC.")
        assert len(notice["message"]) < 200
        assert "time zone" not in upstream.sent_to_me("session.update")[0]["session"]["instructions"]
        assert " UTC, on " in await used(upstream, "current_time")
    assert (await Session.objects.aget()).time_zone == ""


async def test_a_page_that_says_nothing_is_told_nothing(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        assert not [event for event in page.seen if event["type"] == "notice"]
        assert " UTC, on " in await used(upstream, "current_time")


async def test_a_continuation_and_another_process_go_on_in_the_same_zone(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any], tmp_path: Path
) -> None:
    async with talking(start={**able, "time_zone": TOKYO}) as (page, upstream):
        first = page.seen[-1]["session_id"]
        await page.hang_up()
        then = Page(signed_in)
        await then.connect(**{"continue": first})
        second = (await then.until("session.ready"))["session_id"]
        await then.hang_up()
        assert (await Session.objects.aget(id=second)).time_zone == TOKYO
        # Its process has died since.
        (tmp_path / "processes" / "gone").touch()
        await Session.objects.filter(id=second).aupdate(process="gone", ended_at=None)
        upstream.pass_over()
        again = Page(signed_in)
        await again.connect(resume={"session_id": second, "seq": 1})
        await again.until("session.resumed")
        told = (await upstream.expect("session.update"))["session"]["instructions"]
        assert "The user's time zone is Asia/Tokyo." in told
        await again.hang_up()
