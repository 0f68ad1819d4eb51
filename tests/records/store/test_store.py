"""Sessions and what belongs to them survive as rows: once, in order, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from tests.parts.kept_records import item, opened
from voiceapp.conversation.records import ItemRecord, ResponseRecord, ToolCallRecord
from voiceapp.errors import VoiceAppError
from voiceapp.records.models import Assistant, Item, Response, Session, ToolCall
from voiceapp.records.store import store
from voiceapp.records.store.writer import writer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_session_keeps_the_assistant_it_began_with(user: User) -> None:
    opened = await store.open_session(user_id=user.pk, assistant_slug="assistant", upstream="embedded")
    await Assistant.objects.filter(slug="assistant").aupdate(instructions="Something else.")
    session = await Session.objects.aget(id=opened.session_id)
    assert session.assistant_config() == opened.assistant
    assert "friendly" in opened.assistant.instructions
    assert opened.assistant.turn_detection == {
        "type": "server_vad", "create_response": True, "interrupt_response": True
    }  # fmt: skip
    assert session.ended_at is None


async def test_unknown_and_disabled_assistants_are_refused(user: User) -> None:
    await Assistant.objects.acreate(slug="hidden", name="Hidden", enabled=False)
    for slug in ("nobody", "hidden", "no\0body"):
        with pytest.raises(VoiceAppError) as refusal:
            await store.open_session(user_id=user.pk, assistant_slug=slug, upstream="embedded")
        assert refusal.value.code == "assistant_unknown"
    assert not await Session.objects.aexists()


async def test_the_first_assistant_by_position_is_chosen(user: User) -> None:
    await Assistant.objects.acreate(slug="zoe", name="Zoe", position=-1)
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    assert opened.assistant.slug == "zoe"


async def said_before(session_id: UUID, user_id: int) -> tuple[ItemRecord, ...]:
    """Return what a session knows that goes on from this one."""
    again = await store.open_session(
        user_id=user_id, assistant_slug=None, upstream="embedded", continues=session_id
    )
    return again.earlier[-1].items


async def test_saving_an_item_again_updates_its_row(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    keep.save_item(session_id, item("a", transcript_status="pending"))
    keep.save_item(session_id, item("b", "a", role="assistant"))
    await keep.flush()
    for _ in range(3):
        keep.save_item(session_id, item("a", transcript_status="completed", generated_text="hello"))
        await keep.flush()
    rows = [row async for row in Item.objects.filter(session_id=session_id)]
    assert [(row.item_id, row.generated_text, row.transcript_status) for row in rows] == [
        ("a", "hello", "completed"),
        ("b", "", ""),
    ]


async def test_all_fields_come_back(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    whole = ItemRecord(
        item_id="x", previous_item_id=None, type="message", role="assistant", status="incomplete",
        response_id="resp_1", generated_text="one two three", heard_text="one", cut_ms=400,
        transcript_status="", modality="audio", started_ms=10, ended_ms=900, raw={"id": "x", "content": [1]},
    )  # fmt: skip
    response = ResponseRecord(
        response_id="resp_1",
        status="cancelled",
        status_details={"reason": "turn_detected"},
        usage={"total_tokens": 7},
        latency_ms=210,
        metadata={"k": "v"},
    )
    call = ToolCallRecord(call_id="call_1", item_id="x", name="clock", arguments="{nonsense", output="12:00",
                          status="completed", started_ms=1, ended_ms=2)  # fmt: skip
    keep.save_item(session_id, whole)
    keep.save_response(session_id, response)
    keep.save_tool_call(session_id, call)
    await keep.flush()
    assert await said_before(session_id, user.pk) == (whole,)
    for model, record in ((Response, response), (ToolCall, call)):
        row = await model.objects.aget(session_id=session_id)
        assert {name: getattr(row, name) for name in record.__struct_fields__} == {
            name: getattr(record, name) for name in record.__struct_fields__
        }


async def test_history_is_in_the_conversations_order_and_private(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    # The user's transcript comes after the answer to it.
    keep.save_item(session_id, item("answer", "question", role="assistant"))
    await keep.flush()
    keep.save_item(session_id, item("question"))
    await keep.flush()
    assert [record.item_id for record in await said_before(session_id, user.pk)] == [
        "question",
        "answer",
    ]
    eve = await User.objects.acreate(username="eve")
    for someone, which in ((eve.pk, session_id), (user.pk, uuid4())):
        with pytest.raises(VoiceAppError) as refusal:
            await said_before(which, someone)
        assert refusal.value.code == "session_not_found"


async def test_closing_counts_items_and_happens_once(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    keep.save_item(session_id, item("a"))
    keep.save_item(session_id, item("b", "a"))
    await store.close_session(session_id, reason="hung_up", expected=True, duration_ms=5000)
    await store.close_session(session_id, reason="server_stopped", expected=False, duration_ms=1)
    session = await Session.objects.aget()
    assert session.ended_at is not None
    assert (session.end_reason, session.expected, session.duration_ms, session.item_count) == (
        "hung_up", True, 5000, 2
    )  # fmt: skip


async def test_a_cancelled_close_still_closes(user: User) -> None:
    session_id = await opened(user)
    task = asyncio.create_task(store.close_session(session_id, reason="idle", expected=True, duration_ms=1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer().flush()
    assert (await Session.objects.aget()).end_reason == "idle"


async def test_a_session_whose_opening_was_given_up_does_not_stay_open(user: User) -> None:
    task = asyncio.create_task(store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer().flush()
    session = await Session.objects.aget()
    assert (session.end_reason, session.expected) == ("never_begun", False)
    assert session.ended_at is not None
