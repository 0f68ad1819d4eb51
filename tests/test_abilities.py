"""The tools that come along, in a live session: timers, hanging up, handing over, notes, recalling."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.page import Page, Talk, answer, call, rows
from tests.scripted import Service
from voiceapp.errors import ToolFailed, VoiceAppError
from voiceapp.records import notes, search, store
from voiceapp.records.entries import ItemRecord
from voiceapp.records.models import Assistant, Note, Session
from voiceapp.records.seeding import TOOLS
from voiceapp.relay.timers import MAX_TIMERS, SessionTimers
from voiceapp.tools.timers import spoken_duration

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def able(transactional_db: None) -> dict[str, str]:
    await Assistant.objects.acreate(slug="able", name="Able", tools=list(TOOLS))
    await Assistant.objects.acreate(
        slug="grace", name="Grace Hopper", instructions="Be Grace.", voice="verse", turn_detection=None
    )
    return {"assistant": "able"}


async def used(upstream: Service, name: str, number: int = 1, /, **arguments: Any) -> str:
    """Let the model call a tool in a response of its own; return the tool's output."""
    response = {"id": f"resp_c{number}", "output": []}
    await upstream.send({"type": "response.created", "response": response})
    await call(upstream, number, json.dumps(arguments), name=name)
    while True:
        item = (await upstream.expect("conversation.item.create"))["item"]
        if item["type"] == "function_call_output":
            break
    echo = {"id": f"fo_{number}", **item}
    await upstream.send(
        {"type": "conversation.item.added", "previous_item_id": f"fc_{number}", "item": echo},
        {"type": "conversation.item.done", "previous_item_id": f"fc_{number}", "item": echo},
        {"type": "response.done", "response": {**response, "status": "completed"}},
    )
    return str(item["output"])


async def heard(page: Page, upstream: Service, words: str, number: int) -> None:
    """Answer, and let the page hear all of it."""
    await upstream.expect("response.create")
    before = len(page.audio)
    await upstream.begin_answer(f"resp_{number}", f"item_a{number}")
    await upstream.say(words, b"\0\0" * 2400, f"resp_{number}", f"item_a{number}")
    await upstream.end_answer(words, f"resp_{number}", f"item_a{number}")
    await page.hear(before + 4800)
    report = {"type": "playback.report", "item_id": f"item_a{number}", "played_ms": 100, "final": True}
    await page.send(report)


async def news(upstream: Service) -> str:
    while (item := (await upstream.expect("conversation.item.create"))["item"]).get("role") != "system":
        pass
    return str(item["content"][0]["text"])


# -- timers ---------------------------------------------------------------------------------------------


async def test_a_timer_speaks_once_when_it_is_due_and_nobody_is_speaking(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "set_timer", seconds=1) == "The timer for 1 second is set."
        await heard(page, upstream, "It is set.", 1)
        # The user speaks when it is due, and is not interrupted.
        speech = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "u"}
        await upstream.send(speech)
        await page.until("input_audio_buffer.speech_started")
        with pytest.raises(TimeoutError):
            await upstream.expect("conversation.item.create", timeout_s=1.5)
        await upstream.user_turn("so that was that", "u")
        assert await news(upstream) == "The timer for 1 second is over. Tell the user so now."
        await heard(page, upstream, "Your timer is over.", 2)
        with pytest.raises(TimeoutError):
            await upstream.expect("response.create", timeout_s=0.6)
        assert len(upstream.sent_to_me("response.create")) == 2


async def test_a_timer_survives_the_loss_of_the_service(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "set_timer", seconds=1, label="tea")
        await heard(page, upstream, "It is set.", 1)
        await upstream.drop()
        await page.until("session.updated")
        assert "for tea is over" in await news(upstream)
        await upstream.expect("response.create")
        # The connection is lost again before anything was said of it: it is said on the next one, once.
        await upstream.drop()
        assert "for tea is over" in await news(upstream)
        await heard(page, upstream, "Tea is ready.", 2)
        with pytest.raises(TimeoutError):
            await upstream.expect("response.create", timeout_s=0.6)


async def test_timers_are_listed_and_cancelled(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "list_timers") == "No timer is running."
        await used(upstream, "set_timer", 2, seconds=600, label="tea")
        await used(upstream, "set_timer", 3, seconds=60)
        listed = await used(upstream, "list_timers", 4)
        assert listed == "2 timers run: 1 minute left; 10 minutes left for tea."
        assert await used(upstream, "cancel_timer", 5, label="Tea") == "The timer was cancelled."
        assert await used(upstream, "cancel_timer", 6, label="tea") == "There is no such timer."
        assert "1 timer runs" in await used(upstream, "list_timers", 7)
        assert page.closed is None


async def test_timers_have_bounds(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able, max_session_s=600.0) as (_, upstream):
        late = json.loads(await used(upstream, "set_timer", seconds=700))
        assert late["error"]["code"] == "timer_too_long"
        for number in range(2, MAX_TIMERS + 2):
            await used(upstream, "set_timer", number, seconds=300)
        many = json.loads(await used(upstream, "set_timer", MAX_TIMERS + 2, seconds=300))
        assert many["error"]["code"] == "too_many_timers"
        wrong = json.loads(await used(upstream, "set_timer", MAX_TIMERS + 3, seconds=0))
        assert wrong["error"]["code"] == "invalid_arguments"


async def test_a_session_with_a_timer_is_not_idle_and_tells_which_will_not_be_heard(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able, idle_s=0.3) as (page, upstream):
        await used(upstream, "set_timer", seconds=60, label="tea")
        await heard(page, upstream, "It is set.", 1)
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=1)
        await page.send({"type": "session.end"})
        told = await page.until("notice", code="timers_dropped")
        assert "1 minute for tea" in told["message"]
        await page.until("close")


async def test_timers_go_along_into_a_session_that_continues(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    async with talking(start=able) as (page, upstream):
        session_id = next(e["session_id"] for e in page.seen if e["type"] == "session.ready")
        await used(upstream, "set_timer", seconds=1, label="tea")
        await heard(page, upstream, "It is set.", 1)
        other = Page(signed_in)
        await other.connect(**{"continue": session_id})
        await other.until("session.ready")
        assert "timers_dropped" not in str(page.seen)
        assert "for tea is over" in await news(upstream)
        await page.until("close")
        await other.hang_up()


def test_durations_are_said_as_people_say_them() -> None:
    said = [spoken_duration(seconds) for seconds in (0, 1, 59.6, 90, 3600, 3661, 86_400)]
    assert said == [
        "less than a second", "1 second", "1 minute", "1 minute and 30 seconds", "1 hour",
        "1 hour, 1 minute and 1 second", "24 hours",
    ]  # fmt: skip


def test_timers_are_taken_once_and_in_order() -> None:
    clock = 0.0
    timers = SessionTimers(lambda: clock, 1e9)
    timers.start("b", 2)
    timers.start("a", 1)
    clock = 1500.0
    assert [timer.label for timer in timers.take_due()] == ["a"]
    assert timers.take_due() == []
    moved = SessionTimers(lambda: 100.0, 1e9)
    moved.adopt(timers.hand_on())
    # Nobody is told twice: they are with one session only.
    assert timers.hand_on() == []
    assert [(timer.label, timer.due_ms) for timer in moved.pending] == [("b", 600.0)]


# -- the call -------------------------------------------------------------------------------------------


async def test_the_call_ends_once_the_goodbye_was_heard(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "hang_up") == "Goodbye. The call ends now."
        await upstream.expect("response.create")
        await upstream.begin_answer()
        await upstream.say("Goodbye!", b"\0\0" * 24_000)
        await upstream.end_answer("Goodbye!")
        await page.hear(48_000)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 500})
        await page.until("output_audio_buffer.started")
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.6)
        assert page.closed is None
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 1000, "final": True})
        ended = await page.until("session.ended")
        assert ended["reason"] == "ended_by_assistant"
        assert (await page.until("close"))["code"] == 4000
        kept = await Session.objects.aget(end_reason="ended_by_assistant")
        assert kept.expected is True


async def test_a_goodbye_that_came_with_the_call_is_not_asked_for_again(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able) as (page, upstream):
        await answer(upstream, page, 100, "Goodbye!", whole=False)
        await call(upstream, 1, "{}", name="hang_up")
        await upstream.expect("conversation.item.create")
        await upstream.end_answer("Goodbye!")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True})
        assert (await page.until("session.ended"))["reason"] == "ended_by_assistant"
        assert not upstream.sent_to_me("response.create")


async def test_who_speaks_during_the_goodbye_stays(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "hang_up")
        await upstream.expect("response.create")
        await upstream.begin_answer()
        await upstream.say("Goodbye, it was a pleasure.", b"\0\0" * 48_000)
        await page.hear(96_000)
        speech = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "u"}
        await upstream.send(speech)
        await page.until("audio.cut")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 300, "final": True})
        await upstream.expect("conversation.item.truncate")
        await upstream.end_answer("Goodbye, it was a pleasure.", status="cancelled")
        # Longer than a tick, as speech is.
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.5)
        await upstream.user_turn("wait, one more thing", "u")
        await page.send({"type": "response.create"})
        await heard(page, upstream, "Yes?", 2)
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.8)
        await page.send({"type": "ping", "seq": page.seq})
        await page.until("pong")


async def test_who_types_during_the_goodbye_stays(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "hang_up")
        content = [{"type": "input_text", "text": "wait"}]
        message = {"type": "message", "role": "user", "content": content}
        await page.send({"type": "conversation.item.create", "item": message})
        echo = {"id": "typed", "status": "completed", **message}
        await upstream.expect("response.create")
        await upstream.send({"type": "conversation.item.added", "item": echo})
        await upstream.send({"type": "conversation.item.done", "item": echo})
        await upstream.begin_answer()
        await upstream.say("Goodbye.", b"\0\0" * 2400)
        await upstream.end_answer("Goodbye.")
        await page.hear(4800)
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True})
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.8)
        await page.send({"type": "ping", "seq": page.seq})
        await page.until("pong")


async def test_another_assistant_takes_the_call_over(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        session_id = next(e["session_id"] for e in page.seen if e["type"] == "session.ready")
        await upstream.user_turn("let me talk to Grace")
        assert await used(upstream, "hand_over", name="grace") == "You are talking to Grace Hopper now."
        told = await page.until("session.assistant")
        assert told["assistant"] == {"slug": "grace", "name": "Grace Hopper"}
        assert told["turn_detection"] is None
        await page.until("session.updated")
        assert upstream.connections == 2
        update = upstream.sent_to_me("session.update")[-1]["session"]
        assert (update["instructions"], update["audio"]["output"]["voice"]) == ("Be Grace.", "verse")
        restored = [event["item"] for event in upstream.sent_to_me("conversation.item.create")]
        assert [item["type"] for item in restored][-3:] == [
            "message", "function_call", "function_call_output",
        ]  # fmt: skip
        # Who was asked says nothing more; the new one has the word.
        assert len(upstream.sent_to_me("response.create")) <= 1
        await heard(page, upstream, "Grace here.", 3)
        assert not [e for e in page.seen if e["type"] == "notice"]
        row = await Session.objects.select_related("assistant").aget(id=session_id)
        assert (row.assistant_name, row.assistant and row.assistant.slug) == ("Grace Hopper", "grace")
        assert [line["generated_text"] for line in await rows(page)][-1] == "Grace here."


async def test_who_wants_to_hang_up_while_another_takes_over_is_understood(
    talking: Talk, able: dict[str, str]
) -> None:
    """What is typed until the new connection listens comes before the answer that it is asked for."""
    async with talking(start=able) as (page, upstream):
        await used(upstream, "hand_over", name="grace")
        await page.until("session.assistant")
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hang up"}]}
        await page.send({"type": "conversation.item.create", "item": message})
        await page.send({"type": "response.create"})
        await page.until("session.updated")
        await upstream.expect("response.create")
        with pytest.raises(TimeoutError):
            await upstream.expect("response.create", timeout_s=0.3)
        kinds = [event["type"] for event in upstream.received]
        assert kinds[-2:] == ["conversation.item.create", "response.create"]
        assert upstream.received[-2]["item"]["content"] == message["content"]


async def test_nobody_takes_over_in_the_middle_of_a_turn(talking: Talk, able: dict[str, str]) -> None:
    """Between the end of speech and the answer all is silent; a turn whose line is left then is lost."""
    async with talking(start=able) as (page, upstream):
        spoken = {"audio_start_ms": 0, "item_id": "item_u1"}
        await upstream.send({"type": "input_audio_buffer.speech_started", **spoken})
        await page.until("input_audio_buffer.speech_started")
        await used(upstream, "hand_over", name="grace")
        await upstream.send({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 9, **spoken})
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.6)
        assert upstream.connections == 1
        await upstream.user_turn("No, hang up.")
        await used(upstream, "hang_up", 2)
        await heard(page, upstream, "Goodbye.", 1)
        assert (await page.until("session.ended"))["reason"] == "ended_by_assistant"
        assert upstream.connections == 1


async def test_who_is_handed_over_is_not_hung_up_on(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "hang_up")
        await used(upstream, "hand_over", 2, name="grace")
        await page.until("session.updated")
        await heard(page, upstream, "Grace here.", 3)
        with pytest.raises(TimeoutError):
            await upstream.expect("nothing", timeout_s=0.6)
        assert page.closed is None


async def test_words_that_a_lost_service_still_owed_do_not_hold_the_call_up(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able) as (page, upstream):
        await upstream.user_turn(None)
        await page.until("conversation.item.done")
        await upstream.drop()
        assert (await page.until("caption.failed"))["item_id"] == "item_u1"
        await page.until("session.updated")
        await used(upstream, "hang_up", 2)
        await heard(page, upstream, "Goodbye.", 1)
        assert (await page.until("session.ended"))["reason"] == "ended_by_assistant"


async def test_nobody_takes_over_who_is_not_there(talking: Talk, able: dict[str, str]) -> None:
    await Assistant.objects.acreate(slug="off", name="Off Duty", enabled=False)
    async with talking(start=able) as (page, upstream):
        output = json.loads(await used(upstream, "hand_over", name="Off Duty"))
        assert output["error"]["code"] == "assistant_unknown"
        assert "Grace Hopper" in output["error"]["message"]
        await heard(page, upstream, "There is nobody of that name.", 1)
        assert upstream.connections == 1


# -- notes and what was said ----------------------------------------------------------------------------


async def test_notes_are_kept_found_and_deleted(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        assert await used(upstream, "list_notes") == "There are no notes."
        assert await used(upstream, "take_note", 2, text="buy milk") == "I noted: buy milk."
        await used(upstream, "take_note", 3, text="call Bob")
        assert await used(upstream, "list_notes", 4) == "There are 2 notes: call Bob; buy milk."
        assert await used(upstream, "list_notes", 5, words="Milk") == "There is one note: buy milk."
        # What cannot be undone is asked for on the page first.
        deleting = asyncio.create_task(used(upstream, "delete_note", 6, words="milk"))
        asked = await page.until("approval.requested")
        assert (asked["name"], json.loads(asked["arguments"])) == ("delete_note", {"words": "milk"})
        allowed = {"approval_request_id": asked["approval_request_id"], "approve": True}
        item = {"type": "mcp_approval_response", **allowed}
        await page.send({"type": "conversation.item.create", "item": item})
        assert await deleting == "Deleted: buy milk."
        assert [note.text async for note in Note.objects.all()] == ["call Bob"]


async def test_notes_are_their_users_and_have_bounds(user: User, monkeypatch: Any) -> None:
    eve = await User.objects.acreate(username="eve")
    await notes.save(user.pk, "mine \0")
    assert await notes.find(eve.pk, "") == []
    assert await notes.delete(eve.pk, "mine") == []
    assert await notes.find(user.pk, "MINE") == ["mine \u2400"]
    assert await notes.delete(user.pk, " ") == []
    with pytest.raises(VoiceAppError) as too_long:
        await notes.save(user.pk, "x" * 1001)
    assert too_long.value.code == "note_too_long"
    monkeypatch.setattr(notes, "MAX_NOTES", 1)
    with pytest.raises(VoiceAppError) as too_many:
        await notes.save(user.pk, "one more")
    assert too_many.value.code == "too_many_notes"


async def said(user: User, *texts: str) -> Any:
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    for n, text in enumerate(texts):
        record = ItemRecord(item_id=f"i{n}", previous_item_id=None, type="message", role="user",
                            generated_text=text, raw={})  # fmt: skip
        store.writer().save_item(opened.session_id, record)
    await store.close_session(opened.session_id, reason="hung_up", expected=True, duration_ms=1)
    return opened.session_id


async def test_own_conversations_are_searched(user: User) -> None:
    eve = await User.objects.acreate(username="eve")
    await said(eve, "a secret about chess openings")
    await said(user, "Hello.", "Tell me about chess " + "and more " * 60 + "openings")
    this = await said(user, "chess openings now")
    await said(user, "chess", "openings")
    found = await search.search(user.pk, "CHESS openings", but=this)
    [one] = found
    assert one.title == "Hello."
    assert "chess" in one.excerpt
    assert len(one.excerpt) <= search.EXCERPT_CHARS + 1
    assert await search.search(user.pk, "  ", but=this) == []
    assert await search.search(user.pk, "100%_\0", but=this) == []
    for _ in range(search.MAX_FOUND + 2):
        await said(user, "many chess openings")
    assert len(await search.search(user.pk, "chess openings", but=this)) == search.MAX_FOUND


async def test_a_search_tells_when_it_was(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    await said(await User.objects.aget(username="ada"), "My cat is called Tom.")
    async with talking(start=able) as (_, upstream):
        told = await used(upstream, "search_conversations", words="cat Tom")
        assert told.startswith("1 conversation found. On ")
        assert told.endswith(": My cat is called Tom.")
        nothing = await used(upstream, "search_conversations", 2, words="dog")
        assert nothing == "Nothing was said about dog in earlier conversations."


def test_outside_of_a_session_these_tools_say_so() -> None:
    from uuid import uuid4

    from voiceapp.tools.registry import ToolContext

    with pytest.raises(ToolFailed):
        _ = ToolContext(uuid4(), 1, "c").session
