"""How much a page may send: what conversations need passes with room, what no conversation needs ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.clock import pass_time, still_time
from tests.parts.page import MS, Talk, seen
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import Session
from voiceapp.relay.browser.consumer import PACE
from voiceapp.serving.consumer import MESSAGES_A_TURN
from voiceapp.serving.refusals import Refusals, refusals

pytestmark = pytest.mark.django_db(transaction=True)

FRAME = bytes(20 * MS)


def created(**item: Any) -> str:
    return json.dumps({"type": "conversation.item.create", "item": item})


FLOODS: dict[str, str | bytes] = {
    "pings": '{"type":"ping"}',
    "nonsense": "{",
    "audio": FRAME,
    "typed": created(type="message", role="user", content=[{"type": "input_text", "text": "x"}]),
    "tool answers": created(type="function_call_output", call_id="c", output=""),
}


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    with refusals.use(Refusals()):
        yield


async def send(page: Any, message: str | bytes, times: int) -> None:
    for _ in range(times):
        if isinstance(message, bytes):
            await page.socket.send_to(bytes_data=message)
        else:
            await page.socket.send_to(text_data=message)


@pytest.mark.parametrize("what", FLOODS)
async def test_a_page_that_floods_is_told_why_and_closed_and_its_session_is_kept(
    talking: Talk, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    async with talking() as (page, _):
        ready = seen(page, "session.ready")[0]
        with still_time():
            await send(page, FLOODS[what], PACE.messages_at_once + 2 * MESSAGES_A_TURN)
            # What is due to come comes without any time.
            ended = await page.until("session.ended")
        assert (ended["reason"], ended["message"]) == ("too_fast", CloseCode.TOO_FAST.words)
        assert (await page.until("close"))["code"] == CloseCode.TOO_FAST
        session = await Session.objects.aget(id=ready["session_id"])
        assert session.end_reason == "too_fast"
    assert len([line for line in caplog.messages if "sends too much" in line]) == 1


async def test_a_page_that_sends_more_bytes_than_a_voice_has_is_closed(talking: Talk) -> None:
    async with talking() as (page, _):
        with still_time():
            await send(page, bytes(96_000), PACE.bytes_at_once // 96_000 + MESSAGES_A_TURN)
            assert (await page.until("close"))["code"] == CloseCode.TOO_FAST


async def test_ten_seconds_of_audio_at_once_fit_three_times_and_the_voice_goes_on(talking: Talk) -> None:
    """A page that comes back sends what it has kept; on a bad line it comes back often."""
    async with talking() as (page, _):
        with still_time():
            for _ in range(3):
                await send(page, FRAME, 500)
                await send(page, '{"type":"ping"}', 64)
            await page.until("pong")
            for _ in range(20):
                await pass_time(1)
                await send(page, FRAME, 50)
                await send(page, '{"type":"playback.report","item_id":"i","played_ms":1}', 20)
        await send(page, '{"type":"ping"}', 1)
        await page.until("pong")
        assert page.closed is None
