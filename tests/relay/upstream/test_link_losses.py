"""A connection that is lost at any point loses nothing, doubles nothing, and undoes no stop."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, call, rows, seen
from tests.parts.scripted import Service
from voiceapp.relay.upstream import link

pytestmark = pytest.mark.django_db(transaction=True)

TYPED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Good day"}]}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.01)


async def lost(page: Page, upstream: Service) -> list[dict[str, Any]]:
    """Lose the connection; return what the next one is sent until it is configured, and after it."""
    before = len(upstream.received)
    await upstream.drop()
    await page.until("session.updated")
    await pass_time(1)
    return upstream.received[before:]


async def returned(upstream: Service, toolbox: dict[str, Any]) -> dict[str, Any]:
    """Let the model call a tool, and the tool return; return the event that brings its output."""
    await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
    await call(upstream, 1, '{"number": 1}')
    toolbox["gates"][1].set()
    return await upstream.expect("conversation.item.create")


def created(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["item"] for event in sent if event["type"] == "conversation.item.create"]


async def test_a_tools_output_that_was_not_echoed_is_given_to_the_next_connection(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await returned(upstream, toolbox)
        sent = await lost(page, upstream)
        pair = [(item["type"], item["call_id"]) for item in created(sent)]
        assert pair == [("function_call", "call_1"), ("function_call_output", "call_1")]
        assert [event["type"] for event in sent].count("response.create") == 1
        outputs = [row for row in await rows(page) if row["type"] == "function_call_output"]
        assert [row["generated_text"] for row in outputs] == ["gate 1"]


async def test_an_output_whose_call_the_service_does_not_know_is_given_with_it_once(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        output = await returned(upstream, toolbox)
        unknown = {"type": "invalid_request_error", "code": "invalid_tool_call_id", "message": "Unknown."}
        await upstream.send({"type": "error", "error": {**unknown, "event_id": output["event_id"]}})
        again = [await upstream.expect("conversation.item.create") for _ in range(2)]
        assert [one["item"]["type"] for one in again] == ["function_call", "function_call_output"]
        assert again[1]["item"]["output"] == output["item"]["output"]
        await upstream.send({"type": "error", "error": {**unknown, "event_id": again[1]["event_id"]}})
        await upstream.expect_none("conversation.item.create", 1)
        assert seen(page, "session.ended") == []


async def test_an_output_that_the_service_refuses_is_a_notice(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        output = await upstream.expect("conversation.item.create")
        error = {"code": "string_above_max_length", "message": "Too long.", "event_id": output["event_id"]}
        await upstream.send({"type": "error", "error": error})
        assert "Too long." in (await page.until("notice", code="tool_output_refused"))["message"]


async def test_a_typed_message_that_was_not_echoed_is_given_to_the_next_connection(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "conversation.item.create", "item": TYPED})
        await page.send({"type": "response.create"})
        await upstream.expect("response.create")
        sent = await lost(page, upstream)
        assert [item["content"][0]["text"] for item in created(sent)] == ["Good day"]
        assert [event["type"] for event in sent][-2:] == ["conversation.item.create", "response.create"]


@pytest.mark.parametrize("when", ["before it begins", "when it has begun"])
async def test_an_answer_that_the_user_stopped_is_not_asked_for_again(talking: Talk, when: str) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create"})
        await upstream.expect("response.create")
        if when == "when it has begun":
            await upstream.begin_answer()
            await page.until("response.created")
        await page.send({"type": "response.cancel"})
        await page.send({"type": "ping"})
        await page.until("pong")
        sent = await lost(page, upstream)
        assert "response.create" not in [event["type"] for event in sent]


async def test_an_answer_that_the_user_stopped_before_the_service_began_it_is_cancelled(
    talking: Talk,
) -> None:
    """Hands-free: the service answers what was spoken by itself, and had not begun to."""
    async with talking() as (page, upstream):
        await upstream.send({"type": "input_audio_buffer.committed", "item_id": "item_u1"})
        await page.until("input_audio_buffer.committed")
        await page.send({"type": "response.cancel"})
        await page.send({"type": "ping"})
        await page.until("pong")
        await upstream.begin_answer()
        assert (await upstream.expect("response.cancel"))["response_id"] == "resp_1"


async def test_what_was_spoken_and_is_never_answered_is_told(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.send({"type": "input_audio_buffer.committed", "item_id": "item_u1"})
        await page.until("input_audio_buffer.committed")
        await pass_time(31)
        assert "did not begin" in (await page.until("notice", code="response_lost"))["message"]


async def test_silence_that_is_not_answered_is_no_matter(talking: Talk) -> None:
    words = {"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u1"}
    async with talking() as (page, upstream):
        await upstream.send({"type": "input_audio_buffer.committed", "item_id": "item_u1"})
        await upstream.send({**words, "content_index": 0, "transcript": ""})
        await page.until(words["type"])
        await pass_time(31)
        assert seen(page, "notice") == []


@pytest.mark.parametrize("named", [True, False])
async def test_a_refused_answer_is_told(talking: Talk, *, named: bool) -> None:
    async with talking() as (page, upstream):
        await page.send({"type": "response.create", **({"event_id": "mine"} if named else {})})
        asked = await upstream.expect("response.create")
        error = {"type": "invalid_request_error", "code": "rate_limit_exceeded", "message": "Slow down."}
        await upstream.send({"type": "error", "error": {**error, "event_id": asked["event_id"]}})
        if named:
            assert (await page.until("error"))["error"]["event_id"] == "mine"
        else:
            assert "asked too much" in (await page.until("notice", code="response_failed"))["message"]


async def test_an_answer_whose_end_was_lost_ends_where_the_next_one_begins(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.begin_answer()
        await upstream.say("Good ", bytes(960))
        await upstream.begin_answer("resp_2", "item_a2")
        await upstream.end_answer("Fine.", "resp_2", "item_a2")
        while "resp_2" not in [one["response"].get("id") for one in seen(page, "response.done")]:
            await page.next()
        ended = {one["response"]["id"]: one["response"]["status"] for one in seen(page, "response.done")}
        assert ended == {"resp_1": "failed", "resp_2": "completed"}
        kept = {row["item_id"]: row["status"] for row in await rows(page)}
        assert kept == {"item_a1": "incomplete", "item_a2": "completed"}


async def test_audio_as_json_takes_the_way_of_binary_audio(talking: Talk) -> None:
    frame = bytes(range(240)) * 4
    async with talking() as (page, upstream):
        ready = page.seen[-1]
        for data in (frame, frame[:-1]):
            audio = base64.b64encode(data).decode()
            await page.send({"type": "input_audio_buffer.append", "audio": audio})
        refused = (await page.until("error"))["error"]
        assert (refused["code"], refused["message"]) == (
            "invalid_value", "16-bit audio must have an even number of bytes."
        )  # fmt: skip
        await upstream.expect("input_audio_buffer.append")
        assert bytes(upstream.audio) == frame
        assert ready["type"] == "session.ready"


@pytest.mark.parametrize("echoed", [{"type": "audio/opus"}, {"type": "audio/pcm", "rate": 16000}])
async def test_a_format_that_cannot_be_played_ends_the_conversation_in_words(
    talking: Talk, echoed: dict[str, Any]
) -> None:
    async with talking() as (page, upstream):
        session = {"type": "realtime", "audio": {"output": {"format": echoed}}}
        await upstream.send({"type": "session.updated", "session": session})
        ended = await page.until("session.ended")
        assert ended["code"] == "configuration_refused"
        assert "format of audio" in ended["message"]


async def test_a_service_that_always_ends_soon_is_not_renewed_for_ever(talking: Talk) -> None:
    async with talking() as (page, upstream):
        upstream.expires_in_s = 3
        await upstream.drop()
        await page.until("session.updated")
        await pass_time(60)
        assert upstream.connections <= 2 + 2 * link.RECONNECTS
        assert json.dumps(page.seen).count("session.renewed") <= link.RECONNECTS


async def test_a_renewal_that_fails_is_tried_again_when_the_service_says(
    talking: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "RENEW_BEFORE_S", 1_000)
    async with talking() as (page, upstream):
        upstream.expires_in_s = 100
        await upstream.drop()
        await page.until("session.updated")
        upstream.refuse, upstream.retry_after = 503, "20"
        before = len(upstream.requests)
        await pass_time(80)
        first = len(upstream.requests) - before
        await pass_time(10)
        assert (first, len(upstream.requests) - before) == (1, 1)
        assert "upstream_starting" not in json.dumps(page.seen)


async def test_a_service_that_tells_of_responses_alone_is_kept(talking: Talk) -> None:
    """Some send ``response.output_item`` and ``response.done``, and nothing of the conversation's items."""
    item = {"id": "item_a1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    where = {"response_id": "resp_1", "output_index": 0}
    words = {**item, "status": "completed", "content": [{"type": "output_audio", "transcript": "Good day."}]}
    async with talking() as (page, upstream):
        await upstream.send(
            {"type": "response.created", "response": {"id": "resp_1", "output": []}},
            {"type": "response.output_item.added", **where, "item": item},
            {"type": "response.output_item.done", **where, "item": words},
            {"type": "response.done", "response": {"id": "resp_1", "status": "completed", "output": [words]}},
        )
        await page.until("response.done")
        kept = [(row["item_id"], row["generated_text"], row["status"]) for row in await rows(page)]
        assert kept == [("item_a1", "Good day.", "completed")]
        assert [item["content"][0]["text"] for item in created(await lost(page, upstream))] == ["Good day."]


def said(number: int, role: str = "user") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": f"Sentence {number}."}]
    item = {"id": f"item_{number}", "type": "message", "role": role, "status": "completed"}
    return {**item, "content": content}


async def test_what_a_service_echoes_under_ids_of_its_own_is_not_said_twice(talking: Talk) -> None:
    async with talking() as (page, upstream):
        for number, role in ((1, "user"), (2, "assistant"), (3, "user")):
            await upstream.send({"type": "conversation.item.done", "item": said(number, role)})
        await page.until("conversation.item.done", item=said(3))
        shown = len(seen(page, "conversation.item.added", "conversation.item.done"))
        before = len(upstream.received)
        await upstream.drop()
        await page.until("session.updated")
        for item in created(upstream.received[before:]):
            echo = {**item, "id": f"other_{item['id']}"}
            await upstream.send(
                {"type": "conversation.item.added", "item": echo, "previous_item_id": None},
                {"type": "conversation.item.done", "item": echo, "previous_item_id": None},
            )
        await upstream.user_turn("And new.", "item_4")
        await page.until("conversation.item.input_audio_transcription.completed", item_id="item_4")
        assert len(seen(page, "conversation.item.added", "conversation.item.done")) == shown + 2
        texts = [row["generated_text"] for row in await rows(page)]
        assert texts == ["Sentence 1.", "Sentence 2.", "Sentence 3.", "And new."]


@pytest.mark.parametrize("first", ["item", "transcript"])
async def test_the_next_connection_is_told_in_the_order_of_the_conversation(
    talking: Talk, first: str
) -> None:
    """The last item comes first, or only its words do; the links say later what was before it."""
    async with talking() as (page, upstream):
        if first == "transcript":
            await upstream.transcript("Sentence 3.", "item_3")
        order = ((3, "item_2"), (1, None), (2, "item_1"))
        for number, previous in order if first == "item" else (*order[1:], order[0]):
            item = {"item": said(number), "previous_item_id": previous}
            await upstream.send({"type": "conversation.item.done", **item})
        await page.until("conversation.item.done", item=said(2 if first == "item" else 3))
        kept = [row["item_id"] for row in await rows(page)]
        again = [item["id"] for item in created(await lost(page, upstream))]
        assert kept == again == ["item_1", "item_2", "item_3"]


async def test_a_connection_may_number_its_calls_anew(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        toolbox["gates"][1].set()
        for _ in range(2):
            await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
            await call(upstream, 1, '{"number": 1}')
            output = (await upstream.expect("conversation.item.create"))["item"]
            while output["type"] != "function_call_output":
                output = (await upstream.expect("conversation.item.create"))["item"]
            assert (output["call_id"], output["output"]) == ("call_1", "gate 1")
            await lost(page, upstream)
            upstream.pass_over()
