"""The one thread that writes: nothing is dropped, nobody waits for the database."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from tests.parts.kept_records import item, opened
from tests.parts.stalls import growth
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.conversation.records import Record
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import Item
from voiceapp.records.store import rows
from voiceapp.records.store import writer as writing
from voiceapp.records.store.writer import StoreFull, StoreUnavailable, writer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_write_that_fails_is_repeated(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = await opened(user)
    attempts: list[int] = []
    more_is_said = threading.Event()

    def fails_twice(batch: dict[rows.Key, Record]) -> None:
        attempts.append(len(batch))
        if len(attempts) == 2:
            more_is_said.wait(PATIENCE_S)
        if len(attempts) <= 2:
            raise OperationalError("database is locked")
        rows.write_rows(batch)

    monkeypatch.setattr(writing, "write_rows", fails_twice)
    monkeypatch.setattr(writing, "BATCH_S", 0.01)
    keep = writer()
    keep.save_item(session_id, item("a", generated_text="first"))
    flushed = asyncio.create_task(keep.flush(timeout_s=PATIENCE_S))
    await wait_until(lambda: len(attempts) == 2)
    keep.save_item(session_id, item("a", generated_text="second"))
    more_is_said.set()
    await flushed
    assert attempts == [1, 1, 1]
    assert [row.generated_text async for row in Item.objects.all()] == ["second"]


async def test_a_broken_connection_is_replaced(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    await keep.call(lambda: connection.connection.close())
    keep.save_item(session_id, item("a"))
    await keep.flush()
    assert await Item.objects.acount() == 1


async def test_a_full_store_refuses_instead_of_dropping(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = await opened(user)
    monkeypatch.setattr(writing, "MAX_PENDING", 2)
    away, tries = True, 0

    def while_away(batch: dict[rows.Key, Record]) -> None:
        nonlocal tries
        tries += 1
        if away:
            raise OperationalError("gone")
        rows.write_rows(batch)

    monkeypatch.setattr(writing, "write_rows", while_away)
    keep = writer()
    keep.save_item(session_id, item("0"))
    await wait_until(lambda: tries > 0)
    # What the thread is trying to write at this moment waits as well, and is not counted for as long.
    with pytest.raises(StoreFull) as full:
        for number in range(1, 100):
            keep.save_item(session_id, item(str(number)))
    assert (full.value.code, full.value.status) == ("store_full", 503)
    assert full.value.close_code == CloseCode.NOT_KEPT
    away = False
    await keep.flush(timeout_s=PATIENCE_S)
    assert await Item.objects.acount() == number


async def test_an_answer_is_not_awaited_for_ever(user: User) -> None:
    hold = asyncio.Event()
    loop = asyncio.get_running_loop()
    keep = writer()
    blocked = asyncio.create_task(
        keep.call(lambda: asyncio.run_coroutine_threadsafe(hold.wait(), loop).result(PATIENCE_S))
    )
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await keep.flush(timeout_s=0.05)
    hold.set()
    await blocked


async def test_closing_the_writer_commits_and_closes_its_connection(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    held: list[Any] = []
    await keep.call(lambda: held.append(connection.connection))
    keep.save_item(session_id, item("a"))
    await keep.aclose()
    assert await Item.objects.acount() == 1
    with pytest.raises(StoreUnavailable):
        keep.save_item(session_id, item("b"))
    with pytest.raises(Exception, match="closed"):
        held[0].cursor().execute("SELECT 1")


async def test_saving_waits_for_no_database_and_costs_no_more_the_more_waits(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    records = [item(str(n), raw={"id": str(n), "content": [{"type": "input_audio"}]}) for n in range(4_000)]
    database_is_back = threading.Event()
    away = keep.post(lambda: database_is_back.wait(PATIENCE_S))

    def save(count: int) -> None:
        for record in records[:count]:
            keep.save_item(session_id, record)

    assert growth(save, 2_000) < 3
    assert not away.done()
    database_is_back.set()
    await keep.flush(timeout_s=PATIENCE_S)
    assert await Item.objects.acount() == len(records)
