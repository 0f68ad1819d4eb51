"""Answers of a Realtime service on their way to the page: one at a time, and cut where they were heard."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import FORTY, MS, Talk, answer, rows

pytestmark = pytest.mark.django_db(transaction=True)


# -- barge-in -------------------------------------------------------------------------------------------


async def test_barge_in_truncates_at_what_was_played(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 10_000, FORTY)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 3000, "seq": page.seq})
        await page.until("output_audio_buffer.started")
        await upstream.send(
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}
        )
        assert (await page.until("audio.cut"))["item_id"] == "item_a1"
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 3010, "final": True})
        truncate = await upstream.expect("conversation.item.truncate")
        assert (truncate["item_id"], truncate["content_index"]) == ("item_a1", 0)
        assert truncate["audio_end_ms"] == 3010
        heard = await page.until("caption.heard")
        assert 10 <= len(heard["heard_text"].split()) <= 13
        [row] = [row for row in await rows(page) if row["item_id"] == "item_a1"]
        assert row["generated_text"] == FORTY
        assert row["heard_text"] == heard["heard_text"]
        assert row["cut_ms"] == 3010


async def test_a_page_that_does_not_answer_is_cut_where_it_last_was(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 10_000, FORTY)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 3000})
        await page.until("output_audio_buffer.started")
        await upstream.send(
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}
        )
        await pass_time(0.5)
        truncate = await upstream.expect("conversation.item.truncate")
        assert truncate["audio_end_ms"] == 3000


async def test_nothing_is_cut_once_all_was_heard(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 2_000, "All of it.")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 2000, "final": True})
        await page.until("output_audio_buffer.stopped")
        await upstream.user_turn("next")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert not upstream.sent_to_me("conversation.item.truncate")
        assert not [event for event in page.seen if event["type"] == "audio.cut"]


async def test_a_claim_to_have_played_more_than_was_sent_is_clamped(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 2_000, "Two seconds.", whole=False)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 60_000})
        await upstream.send(
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}
        )
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 60_000, "final": True})
        assert (await upstream.expect("conversation.item.truncate"))["audio_end_ms"] == 2000


async def test_late_audio_of_a_cut_answer_never_reaches_the_speaker(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 1_000, "One.", whole=False)
        await upstream.send(
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}
        )
        await upstream.say(" Two.", b"\7\0" * 60_000)
        await upstream.end_answer("One. Two.", status="cancelled")
        await page.until("response.done")
        assert 7 not in page.audio
        assert len(page.audio) == 1_000 * MS


async def test_interrupting_may_be_switched_off(talking: Talk) -> None:
    async with talking() as (page, upstream):
        detection = {"type": "server_vad", "interrupt_response": False}
        session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
        await upstream.send({"type": "session.updated", "session": session})
        await page.until("session.updated")
        await answer(upstream, page, 1_000, "One.")
        await upstream.user_turn("hm")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert not upstream.sent_to_me("conversation.item.truncate")


async def test_the_stop_button_cancels_and_cuts(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 5_000, "A long answer.", whole=False)
        await page.send({"type": "output_audio_buffer.clear"})
        assert (await upstream.expect("response.cancel"))["response_id"] == "resp_1"
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 700, "final": True})
        assert (await upstream.expect("conversation.item.truncate"))["audio_end_ms"] == 700


# -- responses ------------------------------------------------------------------------------------------


async def test_responses_are_asked_for_one_at_a_time(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create", "event_id": "c1"})
        await page.send({"type": "response.create", "event_id": "c2"})
        assert (await upstream.expect("response.create"))["event_id"] == "c1"
        await answer(upstream, page, 100, "First.")
        assert (await upstream.expect("response.create"))["event_id"] == "c2"
        assert len(upstream.sent_to_me("response.create")) == 2


async def test_a_collision_with_the_services_own_response_is_not_a_failure(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create", "event_id": "c1"})
        await upstream.expect("response.create")
        await upstream.begin_answer()
        error = {"code": "conversation_already_has_active_response", "event_id": "c1", "message": "busy"}
        await upstream.send({"type": "error", "error": error})
        await upstream.say("Mine.", b"\0\0" * 2400)
        await upstream.end_answer("Mine.")
        assert (await upstream.expect("response.create"))["event_id"] == "c1"
        await page.until("response.done")
        assert not [event for event in page.seen if event["type"] == "error"]


async def test_a_cancel_before_created_cancels_by_id(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create"})
        await page.send({"type": "response.cancel"})
        await upstream.expect("response.create")
        await upstream.begin_answer("resp_9", "item_9")
        assert (await upstream.expect("response.cancel"))["response_id"] == "resp_9"


@pytest.mark.parametrize(
    ("status", "details", "code"),
    [
        ("failed", {"type": "failed", "error": {"code": "rate_limit_exceeded"}}, "response_failed"),
        ("incomplete", {"type": "incomplete", "reason": "content_filter"}, "response_filtered"),
        ("incomplete", {"type": "incomplete", "reason": "max_output_tokens"}, "response_cut_short"),
    ],
)
async def test_each_bad_end_of_a_response_has_its_own_notice(
    talking: Talk, status: str, details: dict[str, Any], code: str
) -> None:
    async with talking() as (page, upstream):
        await upstream.begin_answer()
        await upstream.end_answer("", status=status, details=details)
        assert (await page.until("notice"))["code"] == code
