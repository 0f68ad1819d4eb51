"""Sessions and what belongs to them survive as rows: once, in order, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from tests.parts.stalls import growth
from voiceapp.conversation.records import ItemRecord, Record, ResponseRecord, ToolCallRecord
from voiceapp.errors import VoiceAppError
from voiceapp.records.models import Assistant, Item, Response, Session, ToolCall
from voiceapp.records.store import rows, store, writer
from voiceapp.records.store.entries import in_order

pytestmark = pytest.mark.django_db(transaction=True)


def item(name: str, previous: str | None = None, **fields: Any) -> ItemRecord:
    """Return a user's message."""
    values: dict[str, Any] = {"type": "message", "role": "user", "raw": {"id": name}, **fields}
    return ItemRecord(item_id=name, previous_item_id=previous, **values)


async def opened(user: User) -> UUID:
    return (await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")).session_id


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
    keep = store.writer()
    keep.save_item(session_id, item("a", transcript_status="pending"))
    keep.save_item(session_id, item("b", "a", role="assistant"))
    await keep.flush(session_id)
    for _ in range(3):
        keep.save_item(session_id, item("a", transcript_status="completed", generated_text="hello"))
        await keep.flush(session_id)
    rows = [row async for row in Item.objects.filter(session_id=session_id)]
    assert [(row.item_id, row.generated_text, row.transcript_status) for row in rows] == [
        ("a", "hello", "completed"),
        ("b", "", ""),
    ]


async def test_all_fields_come_back(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
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
    await keep.flush(session_id)
    assert await said_before(session_id, user.pk) == (whole,)
    for model, record in ((Response, response), (ToolCall, call)):
        row = await model.objects.aget(session_id=session_id)
        assert {name: getattr(row, name) for name in record.__struct_fields__} == {
            name: getattr(record, name) for name in record.__struct_fields__
        }


async def test_a_write_that_fails_is_repeated(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = await opened(user)
    attempts: list[int] = []

    def fails_twice(batch: dict[rows.Key, Record]) -> None:
        attempts.append(len(batch))
        if len(attempts) <= 2:
            raise OperationalError("database is locked")
        rows.write_rows(batch)

    monkeypatch.setattr(writer, "write_rows", fails_twice)
    monkeypatch.setattr(writer, "BATCH_S", 0.01)
    keep = store.writer()
    keep.save_item(session_id, item("a", generated_text="first"))
    flushed = asyncio.create_task(keep.flush(session_id))
    while len(attempts) < 1:
        await asyncio.sleep(0.01)
    keep.save_item(session_id, item("a", generated_text="second"))
    await flushed
    assert len(attempts) >= 3
    assert [row.generated_text async for row in Item.objects.all()] == ["second"]


async def test_a_broken_connection_is_replaced(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
    await keep.call(lambda: connection.connection.close())
    keep.save_item(session_id, item("a"))
    await keep.flush(session_id)
    assert await Item.objects.acount() == 1


async def test_one_bad_record_takes_no_other_with_it(user: User, caplog: pytest.LogCaptureFixture) -> None:
    session_id = await opened(user)
    keep = store.writer()
    keep.save_item(session_id, item("a", generated_text="secret words"))
    keep.save_item(uuid4(), item("b", generated_text="secret words"))
    keep.save_item(session_id, item("c", cut_ms=2**80, generated_text="secret words"))
    endless: list[Any] = []
    endless.append(endless)
    keep.save_item(session_id, item("e", raw={"endless": endless}))
    keep.save_item(session_id, item("d"))
    await keep.flush(session_id)
    assert [row.item_id async for row in Item.objects.all()] == ["a", "d"]
    assert "b of session" in caplog.text
    assert "c of session" in caplog.text
    assert "e of session" in caplog.text
    assert "secret" not in caplog.text


async def test_text_that_databases_refuse_is_kept_as_near_as_can_be(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
    keep.save_item(
        session_id, item("a", generated_text="a\0b\ud800c é 😀", raw={"k\0": ["\0", float("nan"), 1.5]})
    )
    keep.save_tool_call(session_id, ToolCallRecord(call_id="c", name="n" * 1000, arguments='{"x": "\0"}'))
    await keep.flush(session_id)
    row = await Item.objects.aget()
    assert row.generated_text.replace("\ufffd", "") == "a\u2400bc é 😀"
    assert row.raw == {"k\u2400": ["\u2400", None, 1.5]}
    call = await ToolCall.objects.aget()
    assert (call.arguments, len(call.name)) == ('{"x": "\u2400"}', 255)


async def test_history_is_in_the_conversations_order_and_private(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
    # The user's transcript comes after the answer to it.
    keep.save_item(session_id, item("answer", "question", role="assistant"))
    await keep.flush(session_id)
    keep.save_item(session_id, item("question"))
    await keep.flush(session_id)
    assert [record.item_id for record in await said_before(session_id, user.pk)] == [
        "question",
        "answer",
    ]
    eve = await User.objects.acreate(username="eve")
    for someone, which in ((eve.pk, session_id), (user.pk, uuid4())):
        with pytest.raises(VoiceAppError) as refusal:
            await said_before(which, someone)
        assert refusal.value.code == "session_not_found"


@pytest.mark.parametrize(
    ("links", "order"),
    [
        ([("b", "a"), ("a", None), ("c", "b")], "abc"),
        ([("a", None), ("c", "a"), ("b", "a")], "acb"),
        ([("a", None), ("x", "gone"), ("y", "x"), ("b", "a")], "abxy"),
        ([("a", "c"), ("b", "a"), ("c", "b")], "abc"),
        ([("a", "a"), ("b", "a")], "ab"),
        ([("a", None), ("b", None)], "ab"),
        ([], ""),
    ],
)
def test_order_of_items(links: list[tuple[str, str | None]], order: str) -> None:
    assert "".join(record.item_id for record in in_order([item(*link) for link in links])) == order


def test_order_of_a_long_conversation_seen_in_any_order() -> None:
    records = [item(str(n), str(n - 1) if n else None) for n in range(5000)]
    shuffled = random.sample(records, len(records))
    assert in_order(shuffled) == records


async def test_closing_counts_items_and_happens_once(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
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
    await store.writer().flush(session_id)
    assert (await Session.objects.aget()).end_reason == "idle"


async def test_a_session_whose_opening_was_given_up_does_not_stay_open(user: User) -> None:
    task = asyncio.create_task(store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.writer().flush(uuid4())
    session = await Session.objects.aget()
    assert (session.end_reason, session.expected) == ("never_begun", False)
    assert session.ended_at is not None


async def test_a_full_store_refuses_instead_of_dropping(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = await opened(user)
    monkeypatch.setattr(writer, "MAX_PENDING", 2)
    away = True

    def while_away(batch: dict[rows.Key, Record]) -> None:
        if away:
            raise OperationalError("gone")
        rows.write_rows(batch)

    monkeypatch.setattr(writer, "write_rows", while_away)
    keep = store.writer()
    with pytest.raises(store.StoreFull):
        for number in range(100):
            keep.save_item(session_id, item(str(number)))
            await asyncio.sleep(0.02)
    away = False
    await keep.flush(session_id)
    assert await Item.objects.acount() == number


async def test_an_answer_is_not_awaited_for_ever(user: User) -> None:
    hold = asyncio.Event()
    loop = asyncio.get_running_loop()
    keep = store.writer()
    blocked = asyncio.create_task(
        keep.call(lambda: asyncio.run_coroutine_threadsafe(hold.wait(), loop).result(10))
    )
    await asyncio.sleep(0)
    with pytest.raises(store.StoreUnavailable):
        await keep.flush(uuid4(), timeout_s=0.05)
    hold.set()
    await blocked


async def test_closing_the_writer_commits_and_closes_its_connection(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
    held: list[Any] = []
    await keep.call(lambda: held.append(connection.connection))
    keep.save_item(session_id, item("a"))
    await keep.aclose()
    assert await Item.objects.acount() == 1
    with pytest.raises(store.StoreUnavailable):
        keep.save_item(session_id, item("b"))
    with pytest.raises(Exception, match="closed"):
        held[0].cursor().execute("SELECT 1")
    assert store.writer() is not keep


async def test_saving_waits_for_no_database_and_costs_no_more_the_more_waits(user: User) -> None:
    session_id = await opened(user)
    keep = store.writer()
    records = [item(str(n), raw={"id": str(n), "content": [{"type": "input_audio"}]}) for n in range(4_000)]
    database_is_back = threading.Event()
    away = keep.post(lambda: database_is_back.wait(60))

    def save(count: int) -> None:
        for record in records[:count]:
            keep.save_item(session_id, record)

    assert growth(save, 2_000) < 3
    assert not away.done()
    database_is_back.set()
    await keep.flush(session_id, timeout_s=60)
    assert await Item.objects.acount() == len(records)
