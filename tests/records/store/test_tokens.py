"""API tokens: made by the command and in the admin, shown once, kept as digests."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, OperationalError

from tests.parts.forgetting import forget_tokens
from voiceapp.protocol.page import CloseCode
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import QuotaExceeded, TokenHolder, digest_of
from voiceapp.records.store.writer import StoreUnavailable, writer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_token_of_somebody_who_left_opens_nothing(user: User) -> None:
    forget_tokens()
    row = await ApiToken.objects.acreate(user=user, name="x", digest=digest_of("va_x"), hint="va_x")
    scope = {"headers": [(b"authorization", b"Bearer va_x")], "query_string": b""}
    found = await tokens.holder_of(scope)
    assert found is not None
    assert (found.token_id, found.user_id) == (row.pk, user.pk)
    await User.objects.aupdate(is_active=False)
    forget_tokens()
    assert await tokens.holder_of(scope) is None


def test_a_minute_later_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("voiceapp.records.store.tokens.time.monotonic", lambda: now)
    holder = TokenHolder(1, 1, "x", requests_per_minute=2, concurrent_requests=9, tokens_per_day=0)
    for _ in range(2):
        with holder.request():
            pass
    with pytest.raises(QuotaExceeded) as refused, holder.request():
        pass
    assert (refused.value.code, refused.value.retry_after_s) == ("quota_requests", 60.0)
    now = 160.0
    with holder.request():
        assert holder.running == 1
    assert holder.running == 0


async def test_using_a_deleted_token_to_the_end_does_no_harm(user: User) -> None:
    row = await ApiToken.objects.acreate(user=user, name="x", digest=digest_of("va_x"), hint="va_x")
    holder = TokenHolder(row.pk, user.pk, "x", 1, 1, 0)
    await row.adelete()
    await tokens.charge(holder, provider="embedded", tokens_in=1, tokens_out=1)


async def test_of_too_many_tokens_those_with_requests_under_way_are_remembered(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MAX_KNOWN", 2)
    texts = [(await sync_to_async(tokens.make_token)(user, name))[1] for name in ("busy", "idle", "new")]
    busy, idle = [await tokens.holder_with(text) for text in texts[:2]]
    assert busy is not None
    with busy.request():
        assert await tokens.holder_with(texts[2]) is not None
        assert await tokens.holder_with(texts[0]) is busy
        assert await tokens.holder_with(texts[1]) is not idle


async def test_what_was_used_is_counted_though_the_client_is_gone(user: User) -> None:
    """Whoever charges is cancelled with its client's connection; the use is kept all the same."""
    made, _ = await sync_to_async(tokens.make_token)(user, "gone")
    holder = TokenHolder(made.pk, user.pk, "gone", 10, 10, 0)
    charging = asyncio.create_task(tokens.charge(holder, "embedded", 3, 4))
    await asyncio.sleep(0)
    charging.cancel()
    await asyncio.gather(charging, return_exceptions=True)
    await writer().flush()
    usage = await TokenUsage.objects.aget(token=made)
    assert (usage.requests, usage.tokens_in, usage.tokens_out) == (1, 3, 4)


async def known(user: User, **quota: int) -> tuple[TokenHolder, str]:
    made, text = await sync_to_async(tokens.make_token)(user, "quota")
    await ApiToken.objects.filter(pk=made.pk).aupdate(**quota)
    holder = await tokens.holder_with(text)
    assert holder is not None
    return holder, text


async def test_what_is_not_counted_yet_counts_in_the_quota(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_is_back = threading.Event()
    charge = tokens._charge

    def late(*use: Any) -> None:
        database_is_back.wait(60)
        charge(*use)

    monkeypatch.setattr(tokens, "_charge", late)
    monkeypatch.setattr(tokens, "CHARGE_S", 0.01)
    monkeypatch.setattr(tokens, "FRESH_S", -1.0)
    holder, text = await known(user, tokens_per_day=10)
    await tokens.charge(holder, "embedded", 6, 6)
    # The database says 0, however often it is asked.
    assert await tokens.holder_with(text) is holder
    assert (holder.used_today, holder.uncounted) == (0, 12)
    with pytest.raises(QuotaExceeded) as refused, holder.request():
        pass
    assert refused.value.code == "quota_tokens"
    database_is_back.set()
    await writer().flush()
    await asyncio.sleep(0)
    assert (holder.used_today, holder.uncounted) == (12, 0)
    assert await tokens.holder_with(text) is holder
    assert (holder.used_today, holder.uncounted) == (12, 0)


async def test_a_count_that_is_written_during_a_look_up_is_not_lost(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = tokens._look_up
    read, go_on = threading.Event(), threading.Event()

    def slowly(digest: str) -> Any:
        found = look_up(digest)
        read.set()
        go_on.wait(60)
        return found

    holder, text = await known(user, tokens_per_day=10)
    monkeypatch.setattr(tokens, "_look_up", slowly)
    monkeypatch.setattr(tokens, "FRESH_S", -1.0)
    looking = asyncio.create_task(tokens.holder_with(text))
    await asyncio.to_thread(read.wait, 60)
    await tokens.charge(holder, "embedded", 6, 6)
    go_on.set()
    assert await looking is holder
    assert holder.used_today == 12


async def test_a_store_that_is_closed_costs_no_answer(user: User) -> None:
    holder, _ = await known(user)
    await writer().aclose()
    await tokens.charge(holder, "embedded", 3, 4)
    assert holder.uncounted == 7


@pytest.mark.parametrize(
    "trouble", [OperationalError("locked"), InterfaceError("closed"), DatabaseError("x")]
)
async def test_a_database_that_is_away_has_a_code(
    user: User, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def away(digest: str) -> None:
        raise trouble

    monkeypatch.setattr(tokens, "_look_up", away)
    with pytest.raises(StoreUnavailable) as failed:
        await tokens.holder_with("va_x")
    assert (failed.value.code, failed.value.status) == ("store_unavailable", 503)
    assert failed.value.close_code == CloseCode.NOT_KEPT


async def test_a_database_that_does_not_answer_is_not_awaited_for_ever(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = threading.Event()
    monkeypatch.setattr(tokens, "_look_up", lambda digest: hold.wait(60))
    monkeypatch.setattr(tokens, "LOOK_UP_S", 0.05)
    with pytest.raises(StoreUnavailable):
        await tokens.holder_with("va_x")
    hold.set()


async def test_of_too_many_tokens_those_with_uncounted_use_are_remembered(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MAX_KNOWN", 1)
    holder, text = await known(user)
    holder.uncounted = 5
    _, other = await sync_to_async(tokens.make_token)(user, "other")
    await tokens.holder_with(other)
    assert await tokens.holder_with(text) is holder
