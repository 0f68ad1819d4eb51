"""Services that are away, that die of everything, or that never get ready: patience, and its end in words."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.parts.clock import pass_time, still_time
from tests.parts.page import Page, Talk, call_service, rows, seen
from tests.parts.scripted import service
from tests.parts.waits import wait_until
from voiceapp.protocol.dialects import Dialect
from voiceapp.relay.upstream import link

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_service_that_takes_and_drops_every_connection_is_given_up(
    talking: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.01)
    async with talking() as (page, upstream):
        upstream.closes_when_ready = 1011
        await upstream.drop()
        ended = await page.until("session.ended")
        assert (ended["reason"], ended["code"]) == ("upstream_lost", "upstream_closed")
        assert upstream.connections == 1 + link.RECONNECTS


async def test_answers_in_between_make_a_lossy_service_a_usable_one(
    talking: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.01)
    async with talking() as (page, upstream):
        for turn in range(link.RECONNECTS + 2):
            await upstream.begin_answer()
            await upstream.end_answer(f"Answer {turn}.")
            await page.until("response.done")
            page.seen.clear()
            await upstream.drop()
            await page.until("session.updated")
        assert upstream.connections == link.RECONNECTS + 3


async def test_a_service_that_is_away_is_waited_for(talking: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls than connections may be lost: being away is no fault of the conversation."""
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(link, "LAST_PAUSE_S", 0.02)
    async with talking() as (page, upstream):
        upstream.refuse = 503
        await upstream.drop()
        while len(upstream.requests) < link.RECONNECTS + 4:
            await page.until("notice", code="upstream_reconnecting")
        upstream.refuse = None
        await page.until("session.updated")


async def test_the_service_says_when_to_call_again(talking: Talk) -> None:
    async with talking() as (page, upstream):
        upstream.refuse, upstream.retry_after = 429, "25"
        await upstream.drop()
        await pass_time(2 * link.FIRST_PAUSE_S)
        await wait_until(lambda: len(upstream.requests) == 2)
        upstream.refuse = None
        # Left to itself the relay would call again after a second.
        await pass_time(10)
        assert len(upstream.requests) == 2
        await pass_time(16)
        await page.until("session.updated")
        assert len(upstream.requests) == 3


async def test_a_service_that_stays_away_is_called_ever_more_rarely_and_in_no_fixed_beat(
    talking: Talk,
) -> None:
    async with talking() as (_, upstream):
        upstream.refuse = 503
        await upstream.drop()
        now = asyncio.get_running_loop().time
        called: list[float] = []
        with still_time():
            while len(called) < 7:
                await pass_time(0.05)
                if len(upstream.requests) > len(called) + 1:
                    called.append(now())
    pauses = [later - earlier for earlier, later in pairwise(called)]
    doubled = [min(link.FIRST_PAUSE_S * 2**attempt, link.LAST_PAUSE_S) for attempt in range(1, 7)]
    for pause, mean in zip(pauses, doubled, strict=True):
        assert mean * 0.75 - 0.1 < pause < mean * 1.25 + 0.1
    # Many sessions that lost the same service must not call it in one moment.
    assert max(abs(pause - mean) for pause, mean in zip(pauses, doubled, strict=True)) > 0.1


@pytest.mark.parametrize("status", [401, 403, 404, 400])
async def test_what_calling_again_cannot_mend_ends_at_once(talking: Talk, status: int) -> None:
    async with talking() as (page, upstream):
        upstream.refuse = status
        await upstream.drop()
        ended = await page.until("session.ended")
        assert ended["reason"] == "upstream_lost"
        assert len(upstream.requests) == 2


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
async def test_a_service_that_never_takes_the_settings_is_an_end_in_words(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    monkeypatch.setattr(link, "RECONNECTS", 0)
    async with service(dialect) as upstream:
        upstream.takes_settings = False
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        await upstream.expect("session.update")
        await pass_time(settings.VOICE.connect_timeout_s + 1)
        ended = await page.until("session.ended")
        assert (ended["reason"], ended["code"]) == ("upstream_refused", "upstream_timeout")
        assert "settings" in ended["message"]


async def test_settings_that_are_refused_to_the_end_are_the_reason(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any
) -> None:
    async with service() as upstream:
        upstream.refuse_if, upstream.refuse_with = "instructions", "No such thing here."
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        await upstream.expect("session.update")
        await pass_time(settings.VOICE.connect_timeout_s + 1)
        ended = await page.until("session.ended")
        assert ended["code"] == "configuration_refused"
        assert "No such thing here." in ended["message"]
        assert upstream.connections == 1


async def test_a_second_beginning_tells_the_service_nothing_twice(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("hello")
        await page.until("conversation.item.input_audio_transcription.completed")
        await upstream.send({"type": "session.created", "session": {"id": "again"}})
        await page.send({"type": "input_audio_buffer.clear"})
        await upstream.expect("input_audio_buffer.clear")
        kinds = [event["type"] for event in upstream.received]
        assert kinds.count("session.update") == 1
        assert "conversation.item.create" not in kinds


@pytest.mark.parametrize(
    "own",
    [
        {"type": "session.ended", "reason": "x", "code": "x", "message": "x"},
        {"type": "approval.requested", "approval_request_id": "a", "name": "pay"},
        {"type": "notice", "code": "x", "message": "Send your password to…", "level": "error"},
        {"type": "audio.item", "index": 0, "item_id": "x"},
        {"type": "response.tool_call.started", "index": 0, "item_id": "x", "call_id": "c", "name": "n"},
    ],
)
async def test_a_service_cannot_speak_for_the_relay(talking: Talk, own: dict[str, Any]) -> None:
    async with talking() as (page, upstream):
        before = len(page.seen)
        await upstream.send(own, {"type": "rate_limits.updated", "rate_limits": [], "seq": 900_000})
        last = await page.until("rate_limits.updated")
        assert last["seq"] < 1000
        assert [event["type"] for event in page.seen[before:]] == ["rate_limits.updated"]


async def test_speech_whose_answer_never_began_is_answered_by_the_next_connection(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("What time is it?")
        await page.until("conversation.item.input_audio_transcription.completed")
        await upstream.drop()
        await page.until("session.updated")
        await upstream.expect("conversation.item.create")
        await upstream.expect("response.create")
    assert [row["generated_text"] for row in await rows(page)] == ["What time is it?"]


@pytest.mark.parametrize("output", ["audio/pcm", "audio/pcmu"])
async def test_samples_that_are_cut_between_deltas_are_whole_again(talking: Talk, output: str) -> None:
    start = {"audio": {"output": output}}
    async with talking(start=start) as (page, upstream):
        await upstream.begin_answer()
        samples = bytes(range(256)) * 40
        for begin in range(0, len(samples), 333):
            await upstream.say("", samples[begin : begin + 333])
        await upstream.end_answer("")
        await page.until("response.done")
        assert not seen(page, "session.ended")
        if output == "audio/pcm":
            assert bytes(page.audio) == samples
        else:
            # A third of the samples, each one byte; the filter's first and last milliseconds apart.
            assert abs(len(page.audio) - len(samples) // 6) <= 2


async def test_empty_messages_of_the_microphone_reach_nobody(talking: Talk) -> None:
    async with talking() as (page, upstream):
        for _ in range(50):
            await page.socket.send_input({"type": "websocket.receive", "bytes": b""})
        await page.send({"type": "input_audio_buffer.clear"})
        await upstream.expect("input_audio_buffer.clear")
        assert "input_audio_buffer.append" not in [event["type"] for event in upstream.received]
