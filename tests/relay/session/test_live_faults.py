"""The page's socket against services that misbehave: races, repeats, early ends, words that nobody spoke."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile
from openai.types.beta.realtime import ConversationItemCreateEvent as BetaItemCreate
from openai.types.realtime import ConversationItemCreateEvent as ItemCreate

from tests.parts.clock import pass_time
from tests.parts.contracts import Realtime
from tests.parts.page import FORTY, MS, Page, Talk, answer, call, rows, seen
from tests.parts.waits import PATIENCE_S
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation import items as items_module
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant, Response, Session
from voiceapp.records.store.writer import writer

pytestmark = pytest.mark.django_db(transaction=True)

STARTS_SPEAKING = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}


async def settled(page: Page) -> None:
    """Read until everything that was due has come."""
    await page.send({"type": "ping", "seq": page.seq})
    await page.until("pong")


# -- barge-in -------------------------------------------------------------------------------------------


async def test_what_the_loudspeaker_does_is_told_from_the_pages_reports(talking: Talk) -> None:
    contract = Realtime()
    async with talking() as (page, upstream):
        await answer(upstream, page, 1_000, "One.")
        await settled(page)
        assert not [event for event in page.seen if event["type"].startswith("output_audio_buffer.")]
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 400})
        started = await page.until("output_audio_buffer.started")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 1000, "final": True})
        stopped = await page.until("output_audio_buffer.stopped")
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.say("Two.", b"\0\0" * 24_000, "resp_2", "item_a2")
        await page.hear(2_000 * MS)
        await page.send({"type": "playback.report", "item_id": "item_a2", "played_ms": 100})
        await page.until("output_audio_buffer.started", response_id="resp_2")
        await page.send({"type": "output_audio_buffer.clear"})
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a2", "played_ms": 120, "final": True})
        cleared = await page.until("output_audio_buffer.cleared")
    assert (started["response_id"], stopped["response_id"]) == ("resp_1", "resp_1")
    assert cleared["response_id"] == "resp_2"
    for event in (started, stopped, cleared):
        jsonschema.validate(event, contract.schema(event["type"]))


async def test_an_answer_that_had_the_time_to_be_heard_is_not_cut(talking: Talk) -> None:
    """A page that reports nothing is taken to play in real time, from a burst as well."""
    async with talking() as (page, upstream):
        await answer(upstream, page, 200, "Short.")
        await pass_time(0.25)
        await upstream.user_turn("next")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert not seen(page, "audio.cut", "caption.heard")
        assert not upstream.sent_to_me("conversation.item.truncate")


async def test_of_two_answers_the_playing_one_is_cut_where_it_is(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 1_000, "One.")
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.say("Two.", b"\0\0" * 24_000, "resp_2", "item_a2")
        await page.hear(2_000 * MS)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 300})
        await page.until("output_audio_buffer.started")
        await upstream.send(STARTS_SPEAKING)
        cuts = [(await page.until("audio.cut"))["item_id"] for _ in range(2)]
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 300, "final": True})
        await pass_time(0.5)
        where = [await upstream.expect("conversation.item.truncate") for _ in range(2)]
        assert cuts == ["item_a1", "item_a2"]
        assert [(one["item_id"], one["audio_end_ms"]) for one in where] == [("item_a1", 300), ("item_a2", 0)]


async def test_an_underrun_does_not_begin_the_count_anew(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 500, "One", whole=False)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 500, "final": True})
        await page.until("output_audio_buffer.started")
        await pass_time(0.4)
        await upstream.say(" two.", b"\0\0" * 24_000)
        await page.hear(1_500 * MS)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 690})
        await upstream.send(STARTS_SPEAKING)
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 700, "final": True})
        assert (await upstream.expect("conversation.item.truncate"))["audio_end_ms"] == 700


async def test_an_answer_that_speech_cancels_before_its_first_sound_is_never_heard(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.begin_answer()
        await page.until("response.created")
        await upstream.send(STARTS_SPEAKING)
        await page.until("input_audio_buffer.speech_started")
        await upstream.say("Late", b"\7\0" * 4_800)
        await upstream.end_answer("Late", status="cancelled", details={"reason": "turn_detected"})
        await page.until("response.done")
        assert page.audio == b""
        assert not seen(page, "audio.item", "response.output_audio_transcript.delta")


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
async def test_turns_are_answered_and_interrupted_only_as_the_assistant_wants_it(
    talking: Talk, signed_in: dict[str, Any], dialect: Dialect
) -> None:
    detection = {"type": "server_vad", "create_response": False, "interrupt_response": False}
    await Assistant.objects.acreate(slug="patient", name="Patient", turn_detection=detection)
    async with talking(dialect, start={"assistant": "patient"}) as (page, upstream):
        wish = (await upstream.expect("session.update"))["session"]["audio"]["input"]["turn_detection"]
        assert wish == detection
        await answer(upstream, page, 1_000, "A long answer.")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100})
        await upstream.user_turn("hm")
        await page.until("conversation.item.input_audio_transcription.completed")
        for kind in ("conversation.item.truncate", "response.cancel", "response.create"):
            assert not upstream.sent_to_me(kind)
        assert not seen(page, "audio.cut")
        await page.send({"type": "response.create"})
        await upstream.expect("response.create")
        assert [row["generated_text"] for row in await rows(page)] == ["A long answer.", "hm"]


# -- responses and tools --------------------------------------------------------------------------------


async def test_a_tools_output_and_two_wishes_make_no_more_than_the_two_answers(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await page.send({"type": "response.create", "event_id": "c1"})
        await upstream.expect("response.create")
        await upstream.begin_answer()
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        await upstream.expect("conversation.item.create")
        await page.send({"type": "response.create", "event_id": "c2"})
        await settled(page)
        await upstream.end_answer("One moment.")
        assert (await upstream.expect("response.create"))["event_id"] == "c2"
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.end_answer("Here it is.", "resp_2", "item_a2")
        while not [event for event in seen(page, "response.done") if event["response"]["id"] == "resp_2"]:
            await page.next()
        await settled(page)
        # The tool's output stands before the second wish, whose answer is the follow-up as well.
        assert len(upstream.sent_to_me("response.create")) == 2
        assert not seen(page, "error")
        assert "session.ended" not in [event["type"] for event in page.seen]


async def test_an_output_that_comes_too_late_for_the_wish_is_answered_by_itself(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await call(upstream, 1, '{"number": 1}')
        await page.send({"type": "response.create", "event_id": "c2"})
        await settled(page)
        await upstream.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})
        assert (await upstream.expect("response.create"))["event_id"] == "c2"
        toolbox["gates"][1].set()
        await upstream.expect("conversation.item.create")
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.end_answer("No output yet.", "resp_2", "item_a2")
        await upstream.expect("response.create")


async def test_an_answer_that_was_cancelled_before_it_began_is_never_heard(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create"})
        await page.send({"type": "response.cancel"})
        await upstream.expect("response.create")
        await upstream.begin_answer("resp_9", "item_9")
        await upstream.say("Never", b"\7\0" * 24_000, "resp_9", "item_9")
        assert (await upstream.expect("response.cancel"))["response_id"] == "resp_9"
        await upstream.end_answer("Never", "resp_9", "item_9", "cancelled", {"reason": "client_cancelled"})
        await page.until("response.done")
        assert page.audio == b""
        assert not seen(page, "audio.item", "response.output_audio_transcript.delta")
        await answer(upstream, page, 100, "The next one.")


async def test_a_cancel_that_came_too_late_is_no_news(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await answer(upstream, page, 100, "Done already.")
        await page.send({"type": "response.cancel", "response_id": "resp_1", "event_id": "mine"})
        await upstream.expect("response.cancel")
        error = {"code": "response_cancel_not_active", "event_id": "mine", "message": "Cancellation failed"}
        await upstream.send({"type": "error", "error": error})
        await upstream.user_turn("go on")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert not seen(page, "error", "notice")


async def test_words_calls_and_outputs_keep_the_order_of_the_conversation(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await upstream.user_turn("what is the time?")
        await answer(upstream, page, 100, "Let me see.", whole=False)
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        output = (await upstream.expect("conversation.item.create"))["item"]
        await upstream.end_answer("Let me see.")
        item = {"id": "out_1", "status": "completed", **output}
        await upstream.send({"type": "conversation.item.added", "previous_item_id": "fc_1", "item": item})
        await upstream.send({"type": "conversation.item.done", "previous_item_id": "fc_1", "item": item})
        await page.until("conversation.item.done", previous_item_id="fc_1")
        kept = [(row["type"], row["role"]) for row in await rows(page)]
        assert kept == [
            ("message", "user"), ("message", "assistant"),
            ("function_call", ""), ("function_call_output", ""),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "details", "code"),
    [
        ("failed", {"type": "failed", "error": {"code": "rate_limit_exceeded"}}, "response_failed"),
        ("incomplete", {"type": "incomplete", "reason": "content_filter"}, "response_filtered"),
        ("incomplete", {"type": "incomplete", "reason": "max_output_tokens"}, "response_cut_short"),
        ("cancelled", {"type": "cancelled", "reason": "turn_detected"}, "response_interrupted"),
        ("cancelled", {"type": "cancelled", "reason": "client_cancelled"}, "response_stopped"),
    ],
)
async def test_how_a_response_ended_is_told_and_kept(
    talking: Talk, status: str, details: dict[str, Any], code: str
) -> None:
    async with talking() as (page, upstream):
        ready = page.seen[-1]
        await upstream.begin_answer()
        await upstream.end_answer("", status=status, details=details)
        told = await page.until("notice")
        assert (told["code"], told["message"][-1]) == (code, ".")
        await writer().flush()
        row = await Response.objects.aget(session_id=ready["session_id"])
        assert (row.status, row.status_details) == (status, details)
        assert not seen(page, "rate_limits.updated")


# -- transcripts and history ----------------------------------------------------------------------------


async def test_a_transcript_that_does_not_come_is_given_up_and_the_sound_is_kept(
    talking: Talk, tmp_path: Path
) -> None:
    async with talking() as (page, upstream):
        ready = page.seen[-1]
        for _ in range(50):
            await page.socket.send_to(bytes_data=b"\1\2" * 480)
        await upstream.user_turn(None)
        await pass_time(items_module.TRANSCRIPT_TIMEOUT_MS / 1000 + 1)
        assert (await page.until("caption.failed"))["item_id"] == "item_u1"
        [row] = await rows(page)
        assert (row["generated_text"], row["transcript_status"]) == ("", "failed")
        # One that comes after all takes its place.
        await upstream.transcript("better late")
        await page.until("conversation.item.input_audio_transcription.completed")
        [row] = await rows(page)
        assert (row["generated_text"], row["transcript_status"]) == ("better late", "completed")
        await page.hang_up()
        session = await Session.objects.aget(id=ready["session_id"])
        kept = tmp_path / session.recording
        async with asyncio.timeout(PATIENCE_S):
            while not kept.exists():
                await asyncio.sleep(0.01)
        sound, _ = soundfile.read(kept)
        assert abs(sound[:, 0]).max() > 0.01


def noise(dbfs: float, audio_format: AudioFormat) -> list[bytes]:
    """Return three seconds of noise in frames of 20 ms."""
    sigma = 32768 * 10 ** (dbfs / 20)
    samples = np.random.default_rng(4).normal(0, sigma, audio_format.rate_hz * 3).astype("<i2").tobytes()
    data = samples if audio_format is AudioFormat.PCM16 else g711.encode(samples, audio_format)
    size = 20 * audio_format.bytes_per_ms
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("audio_format", list(AudioFormat))
@pytest.mark.parametrize(("dbfs", "status"), [(-200, "doubtful"), (-50, "doubtful"), (-30, "completed")])
async def test_a_phrase_for_a_turn_without_speech_is_marked(
    talking: Talk, audio_format: AudioFormat, dbfs: float, status: str
) -> None:
    await Assistant.objects.acreate(slug="held", name="Held", turn_detection=None)
    start = {"assistant": "held", "audio": {"input": audio_format.value}}

    async with talking(start=start) as (page, upstream):
        for number, loud in enumerate((False, True)):
            for frame in noise(-20 if loud else dbfs, audio_format):
                await page.socket.send_to(bytes_data=frame)
            await page.send({"type": "input_audio_buffer.commit"})
            await upstream.expect("input_audio_buffer.commit")
            item = f"item_u{number}"
            await upstream.send({"type": "input_audio_buffer.committed", "item_id": item})
            user = {"id": item, "type": "message", "role": "user", "status": "completed",
                    "content": [{"type": "input_audio", "transcript": None}]}  # fmt: skip
            await upstream.send({"type": "conversation.item.added", "item": user})
            await upstream.send({"type": "conversation.item.done", "item": user})
            await upstream.transcript("Thank you for watching.", item)
            await page.until("conversation.item.input_audio_transcription.completed")
        await settled(page)
        doubts = [event["item_id"] for event in seen(page, "caption.doubtful")]
        assert doubts == (["item_u0"] if status == "doubtful" else [])
        assert [row["transcript_status"] for row in await rows(page)] == [status, "completed"]


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
async def test_history_is_told_in_words_that_the_dialect_has(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any], dialect: Dialect
) -> None:
    async with talking(dialect, start=handy) as (page, upstream):
        await upstream.user_turn("what is the time?")
        await answer(upstream, page, 1_000, FORTY, whole=False)
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        output = (await upstream.expect("conversation.item.create"))["item"]
        item = {"id": "out_1", "status": "completed", **output}
        for kind in ("conversation.item.added", "conversation.item.done"):
            await upstream.send({"type": kind, "item": item})
        await upstream.end_answer(FORTY)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 500})
        await upstream.send(STARTS_SPEAKING)
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 500, "final": True})
        heard = (await page.until("caption.heard"))["heard_text"]
        before = len(upstream.as_it_came)
        await upstream.drop()
        await pass_time(0.5)
        await page.until("session.updated")
        await settled(page)
        while len([e for e in upstream.as_it_came[before:] if e["type"] == "conversation.item.create"]) < 4:
            await upstream.expect("conversation.item.create")
        told = [
            event for event in upstream.as_it_came[before:] if event["type"] == "conversation.item.create"
        ]
        types: Any = ItemCreate if dialect is Dialect.GA else BetaItemCreate
        for event in told:
            types.model_validate(event, strict=True)
        told_items = [event["item"] for event in told]
        assert [item["type"] for item in told_items] == [
            "message", "message", "function_call", "function_call_output",
        ]  # fmt: skip
        kind = "output_text" if dialect is Dialect.GA else "text"
        assert told_items[1]["content"] == [{"type": kind, "text": heard}]
        assert told_items[2]["call_id"] == told_items[3]["call_id"]


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
@pytest.mark.parametrize(
    "odd",
    [
        {"type": "conversation.item.added", "item": {"id": [], "type": "message"}},
        {"type": "conversation.item.added", "item": {"id": "a", "type": "message", "content": 5}},
        {"type": "conversation.item.added", "item": {"id": "a", "type": "message", "content": [None]}},
        {"type": "conversation.item.added", "item": "a"},
        {"type": "response.done", "response": {"id": "r", "status": "failed", "status_details": [1]}},
        {"type": "error", "error": {"code": ["x"], "message": {}}},
        {"type": "session.updated", "session": {"audio": {"input": {"turn_detection": True}}}},
    ],
)
async def test_an_event_that_cannot_be_read_ends_nothing(
    talking: Talk, odd: dict[str, Any], dialect: Dialect
) -> None:
    async with talking(dialect) as (page, upstream):
        await upstream.send(odd)
        started = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "item_u1"}
        await upstream.send(started)
        await upstream.user_turn("hello")
        await page.until("conversation.item.input_audio_transcription.completed")
        kept = {row["item_id"]: row["generated_text"] for row in await rows(page)}
        # What can be read of an item is kept; one without an id is none.
        assert kept in ({"item_u1": "hello"}, {"a": "", "item_u1": "hello"})
        assert upstream.connections == 1
