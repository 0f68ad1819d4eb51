"""The tools that come along, in a live session: hanging up, handing over, notes, recalling."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.parts.clock import pass_time
from tests.parts.page import Talk, answer, call, heard, rows, used
from voiceapp.conversation.records import ItemRecord
from voiceapp.errors import ToolFailed, VoiceAppError
from voiceapp.records.models import Assistant, Note, Session
from voiceapp.records.store import notes, search, store
from voiceapp.records.store.writer import writer
from voiceapp.tools.capabilities import KeptNote

pytestmark = pytest.mark.django_db(transaction=True)


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
        await pass_time(0.6)
        assert page.closed is None
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 1000, "final": True})
        await pass_time(0.5)
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
        await pass_time(0.5)
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
        await pass_time(0.5)
        await upstream.user_turn("wait, one more thing", "u")
        await page.send({"type": "response.create"})
        await heard(page, upstream, "Yes?", 2)
        await pass_time(0.8)
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
        await pass_time(0.8)
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
        await upstream.expect_none("response.create", within_s=0.3)
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
        await pass_time(0.6)
        assert upstream.connections == 1
        await upstream.user_turn("No, hang up.")
        await used(upstream, "hang_up", 2)
        await heard(page, upstream, "Goodbye.", 1)
        await pass_time(0.5)
        assert (await page.until("session.ended"))["reason"] == "ended_by_assistant"
        assert upstream.connections == 1


async def test_who_is_handed_over_is_not_hung_up_on(talking: Talk, able: dict[str, str]) -> None:
    async with talking(start=able) as (page, upstream):
        await used(upstream, "hang_up")
        await used(upstream, "hand_over", 2, name="grace")
        await page.until("session.updated")
        await heard(page, upstream, "Grace here.", 3)
        await pass_time(0.6)
        assert page.closed is None


async def test_words_that_a_lost_service_still_owed_do_not_hold_the_call_up(
    talking: Talk, able: dict[str, str]
) -> None:
    async with talking(start=able) as (page, upstream):
        await upstream.user_turn(None)
        await page.until("conversation.item.done")
        await upstream.drop()
        assert (await page.until("caption.failed"))["item_id"] == "item_u1"
        await pass_time(0.5)
        await page.until("session.updated")
        await used(upstream, "hang_up", 2)
        await heard(page, upstream, "Goodbye.", 1)
        await pass_time(0.5)
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
        assert await deleting == "Deleted: buy milk. It can be brought back for a day."
        assert await used(upstream, "list_notes", 7) == "There is one note: call Bob."


async def test_notes_are_their_users_and_have_bounds(user: User, monkeypatch: Any) -> None:
    eve = await User.objects.acreate(username="eve")
    await notes.save(user.pk, "mine \0")
    [mine] = await notes.find(user.pk, "MINE")
    assert mine.text == "mine \u2400"
    assert await notes.find(eve.pk, "") == []
    assert await notes.delete(eve.pk, [mine]) == []
    assert await notes.restore(eve.pk) == []
    assert await notes.find(user.pk, "...") == []
    assert await notes.delete(user.pk, [KeptNote(mine.note_id, "others")]) == []
    assert await notes.find(user.pk, " ") == [mine]
    with pytest.raises(VoiceAppError) as too_long:
        await notes.save(user.pk, "x" * 1001)
    assert too_long.value.code == "note_too_long"
    monkeypatch.setattr(notes, "MAX_NOTES", 1)
    with pytest.raises(VoiceAppError) as too_many:
        await notes.save(user.pk, "one more")
    assert too_many.value.code == "too_many_notes"


async def test_what_was_deleted_last_can_be_brought_back_for_a_day(user: User, monkeypatch: Any) -> None:
    for text in ("one", "two", "three"):
        await notes.save(user.pk, text)
    three, two, one = await notes.find(user.pk, "")
    assert await notes.delete(user.pk, [one]) == [one]
    assert await notes.delete(user.pk, [two, three, one]) == [two, three]
    assert await notes.find(user.pk, "") == []
    await notes.save(user.pk, "four")
    with monkeypatch.context() as small:
        small.setattr(notes, "MAX_NOTES", 2)
        with pytest.raises(VoiceAppError) as too_many:
            await notes.restore(user.pk)
        assert too_many.value.code == "too_many_notes"
    assert sorted(note.text for note in await notes.restore(user.pk)) == ["three", "two"]
    assert [note.text for note in await notes.find(user.pk, "")] == ["four", "three", "two"]
    await Note.objects.filter(text="one").aupdate(deleted_at=timezone.now() - notes.DELETED_FOR)
    assert await notes.restore(user.pk) == []


async def test_what_cannot_be_brought_back_any_more_is_erased(user: User, monkeypatch: Any) -> None:
    for text in ("old", "kept", "new"):
        await notes.save(user.pk, text)
    day_ago = timezone.now() - notes.DELETED_FOR
    await Note.objects.filter(text="old").aupdate(deleted_at=day_ago)
    await Note.objects.filter(text="new").aupdate(deleted_at=day_ago + timedelta(minutes=5))
    # The end of any session is the time for it.
    await said(await User.objects.acreate(username="eve"), "Hello.")
    assert [note.text async for note in Note.objects.order_by("id")] == ["kept", "new"]
    # And nobody fills the table by deleting.
    monkeypatch.setattr(notes, "MAX_DELETED", 1)
    await notes.delete(user.pk, await notes.find(user.pk, "kept"))
    assert [note.text async for note in Note.objects.all()] == ["kept"]


async def said(user: User, *texts: str) -> Any:
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    for n, text in enumerate(texts):
        record = ItemRecord(item_id=f"i{n}", previous_item_id=None, type="message", role="user",
                            generated_text=text, raw={})  # fmt: skip
        writer().save_item(opened.session_id, record)
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
