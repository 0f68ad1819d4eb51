"""The page's socket against a Realtime service on a real socket that the test directs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.parts.page import MS, Page, Talk, answer, call_service, rows
from tests.parts.scripted import service
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Session

pytestmark = pytest.mark.django_db(transaction=True)


# -- connecting -----------------------------------------------------------------------------------------


async def test_the_service_is_configured_and_the_page_told(talking: Talk) -> None:
    async with talking() as (page, upstream):
        update = await upstream.expect("session.update")
        assert update["session"]["type"] == "realtime"
        assert update["session"]["audio"]["input"]["transcription"] == {"model": "my-transcriber"}
        assert upstream.requests[0].headers["api-key"] == "key"
        assert upstream.requests[0].path == "/openai/v1/realtime?model=dep"
        ready = page.seen[-1]
        assert ready["audio"]["input"] == {"type": "audio/pcm", "rate": 24000}
        assert ready["upstream"] == "azure-ga"


async def test_the_page_never_sees_the_operators_text(talking: Talk) -> None:
    async with talking() as (page, _):
        told = json.dumps(page.seen)
        assert "session.created" in told
        assert "SECRET" not in told
        assert "instructions" not in told


async def test_a_preview_service_looks_the_same_to_the_page(talking: Talk) -> None:
    """One scripted conversation through both services: equal events, whatever the dialect."""

    async def converse(dialect: Dialect) -> list[dict[str, Any]]:
        async with talking(dialect) as (page, upstream):
            begun = len(page.seen)
            await upstream.user_turn("hello there")
            await upstream.begin_answer()
            await upstream.say("Hi.", b"\1\0" * 4800)
            await upstream.end_answer("Hi.")
            await page.until("response.done")
            events: list[dict[str, Any]] = page.seen[begun:]
            return events

    def bare(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # Ids of events and the preview's own extra (temperature) aside, the two are equal.
        return [{k: v for k, v in event.items() if k not in ("event_id", "seq")} for event in events]

    ga, preview = bare(await converse(Dialect.GA)), bare(await converse(Dialect.PREVIEW))
    assert ga == preview


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "upstream_unauthorized"),
        (404, "upstream_not_found"),
        (429, "upstream_busy"),
        (400, "upstream_bad_request"),
        (503, "upstream_unavailable"),
    ],
)
async def test_a_refusal_is_a_plain_sentence(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any, status: int, code: str
) -> None:
    async with service(refuse=status) as upstream:
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        ended = await page.until("session.ended")
        assert ended["reason"] == "upstream_refused"
        assert ended["code"] == code
        assert ended["message"].endswith(".")
        assert (await page.until("close"))["code"] == 4011
        kept = await Session.objects.aget()
        assert (kept.end_code, kept.end_message) == (code, ended["message"])


@pytest.mark.parametrize("staff", [True, False])
async def test_only_staff_is_told_which_host_refused_and_it_is_not_kept(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any, staff: bool
) -> None:
    await User.objects.aupdate(is_staff=staff)
    async with service(refuse=401) as upstream:
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        ended = await page.until("session.ended")
        host = upstream.url.partition("://")[2].strip("/")
        more = f" For administrators: {host} was called, as AZURE_OPENAI_ENDPOINT says."
        assert ended["message"].endswith(more) is staff
        assert (host in str(page.seen)) is staff
        await page.until("close")
        assert (await Session.objects.aget()).end_message == ended["message"].removesuffix(more)


async def test_an_end_that_the_service_did_not_cause_names_no_host(talking: Talk) -> None:
    await User.objects.aupdate(is_staff=True)
    async with talking() as (page, _):
        await page.hang_up()
        assert "administrators" not in str(page.seen)
    kept = await Session.objects.aget()
    assert (kept.end_code, kept.end_message) == ("hung_up", "The conversation has ended.")


# -- audio ----------------------------------------------------------------------------------------------


async def test_audio_passes_through_untouched_in_both_directions(talking: Talk) -> None:
    async with talking() as (page, upstream):
        frames = [bytes([n, 0]) * 480 for n in range(20)]
        for frame in frames:
            await page.socket.send_to(bytes_data=frame)
        while len(upstream.audio) < 20 * 960:
            await upstream.expect("input_audio_buffer.append")
        assert bytes(upstream.audio) == b"".join(frames)
        answer = bytes(range(256)) * 200
        await upstream.begin_answer()
        await upstream.say("Hi.", answer)
        item = await page.until("audio.item")
        assert item["index"] == 0
        assert item["item_id"] == "item_a1"
        await page.hear(len(answer))
        assert bytes(page.audio) == answer


async def test_the_pages_format_may_differ_from_the_services(talking: Talk) -> None:
    start = {"audio": {"input": "g711_ulaw", "output": {"type": "audio/pcma"}}}
    async with talking(start=start) as (page, upstream):
        assert page.seen[-1]["audio"] == {"input": {"type": "audio/pcmu"}, "output": {"type": "audio/pcma"}}
        for _ in range(50):
            await page.socket.send_to(bytes_data=b"\xff" * 160)
        while len(upstream.audio) < 960 * MS:
            await upstream.expect("input_audio_buffer.append")
        # The resampler dithers by one.
        assert set(upstream.audio) <= {0, 1, 255}
        await upstream.begin_answer()
        await upstream.say("Hi.", b"\0\0" * 24_000)
        await upstream.end_answer("Hi.")
        # To the last sample: what the resampler holds back comes with the end of the item.
        await page.hear(8000)
        assert len(page.audio) == 8000
        assert set(page.audio) <= {0xD5, 0x55}


async def test_speech_before_the_service_answers_is_not_lost(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any
) -> None:
    async with service() as upstream:
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        for n in range(10):
            await page.socket.send_to(bytes_data=bytes([n, 0]) * 480)
        await page.until("session.ready")
        while len(upstream.audio) < 10 * 960:
            await upstream.expect("input_audio_buffer.append")
        assert bytes(upstream.audio) == b"".join(bytes([n, 0]) * 480 for n in range(10))
        await page.hang_up()


# -- transcripts ----------------------------------------------------------------------------------------


async def test_a_transcript_may_come_after_the_answer(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn(None)
        await answer(upstream, page, 100, "Good day.")
        await upstream.transcript("hello")
        await page.until("conversation.item.input_audio_transcription.completed")
        texts = [(row["role"], row["generated_text"]) for row in await rows(page)]
        assert texts == [("user", "hello"), ("assistant", "Good day.")]


async def test_repeated_events_make_one_row(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("hello")
        for _ in range(3):
            await upstream.transcript("hello")
        await upstream.user_turn("hello")
        await page.until("conversation.item.input_audio_transcription.completed")
        await answer(upstream, page, 100, "Done.")
        assert [row["generated_text"] for row in await rows(page)] == ["hello", "Done."]


async def test_a_transcript_that_fails_is_marked(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn(None)
        await upstream.send(
            {
                "type": "conversation.item.input_audio_transcription.failed",
                "item_id": "item_u1",
                "content_index": 0,
                "error": {"code": "DeploymentNotFound"},
            }
        )
        await page.until("conversation.item.input_audio_transcription.failed")
        [row] = await rows(page)
        assert row["transcript_status"] == "failed"


async def test_a_pending_transcript_is_kept_as_failed_when_the_session_ends(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn(None)
        await page.until("conversation.item.done")
        await page.hang_up()
        [row] = await rows(page)
        assert (row["role"], row["transcript_status"]) == ("user", "failed")


# -- bad input ------------------------------------------------------------------------------------------


async def test_an_error_of_the_service_names_the_pages_event(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "conversation.item.delete", "event_id": "mine", "item_id": "nope"})
        sent = await upstream.expect("conversation.item.delete")
        assert sent["event_id"] == "mine"
        error = {"type": "invalid_request_error", "code": "item_delete_invalid_item_id", "event_id": "mine"}
        await upstream.send({"type": "error", "error": error})
        assert (await page.until("error"))["error"]["event_id"] == "mine"


async def test_unknown_events_are_forwarded(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.send({"type": "response.telepathy.delta", "delta": {"deep": [1]}})
        assert (await page.until("response.telepathy.delta"))["delta"] == {"deep": [1]}
