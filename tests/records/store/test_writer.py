"""The one thread that writes: nothing is dropped, nobody waits for the database."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from tests.parts.kept_records import item, opened
from tests.parts.stalls import growth
from voiceapp.conversation.records import Record
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import Item
from voiceapp.records.store import rows, store, writer

pytestmark = pytest.mark.django_db(transaction=True)


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
    with pytest.raises(store.StoreFull) as full:
        for number in range(100):
            keep.save_item(session_id, item(str(number)))
            await asyncio.sleep(0.02)
    assert (full.value.code, full.value.status) == ("store_full", 503)
    assert full.value.close_code == CloseCode.NOT_KEPT
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
