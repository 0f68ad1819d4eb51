"""API tokens: made by the command and in the admin, shown once, kept as digests."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.parts.forgetting import forget_tokens
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import QuotaExceeded, TokenHolder, digest_of
from voiceapp.records.store.writer import writer

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
