"""API tokens: made by the command and in the admin, shown once, kept as digests."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from tests.parts.forgetting import forget_tokens
from voiceapp.records.models import ApiToken
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import QuotaExceeded, TokenHolder, digest_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_command_prints_a_token_once_and_keeps_a_digest(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("token", "laptop", "--user", "ada")
    text = capsys.readouterr().out.strip()
    assert re.fullmatch(r"va_[\w-]{43}", text)
    row = ApiToken.objects.get()
    assert (row.user, row.digest, row.hint) == (user, digest_of(text), text[:8])
    call_command("token", "--list")
    listed = capsys.readouterr().out
    assert "laptop" in listed
    assert text not in listed
    with pytest.raises(CommandError, match="has a token named 'laptop'"):
        call_command("token", "laptop", "--user", "ada")
    call_command("token", "laptop", "--user", "ada", "--delete")
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--user", "nobody", "x"], "no active user named 'nobody'"),
        (["x"], "no administrator yet"),
        (["--user", "ada"], "Give the token a name"),
        (["x" * 101, "--user", "ada"], "up to 100 characters"),
        (["gone", "--user", "ada", "--delete"], "no token named 'gone'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(user: User, arguments: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("token", *arguments)


def test_the_admin_shows_a_new_token_once(admin_client: Client) -> None:
    root = User.objects.get(username="root")
    fields = {
        "user": root.pk, "name": "phone", "enabled": "on", "requests_per_minute": 5,
        "concurrent_requests": 2, "tokens_per_day": 0,
        "usage-TOTAL_FORMS": 0, "usage-INITIAL_FORMS": 0,
    }  # fmt: skip
    page = admin_client.post("/admin/records/apitoken/add/", fields, follow=True).content.decode()
    found = re.search(r"va_[\w-]{43}", page)
    assert found is not None
    row = ApiToken.objects.get()
    assert row.digest == digest_of(found[0])
    assert row.requests_per_minute == 5
    for address in ("", f"{row.pk}/change/"):
        later = admin_client.get(f"/admin/records/apitoken/{address}").content.decode()
        assert "phone" in later
        assert found[0] not in later
    # A change of its limits leaves the token as it is.
    admin_client.post(f"/admin/records/apitoken/{row.pk}/change/", {**fields, "requests_per_minute": 9})
    row.refresh_from_db()
    assert (row.requests_per_minute, row.digest) == (9, digest_of(found[0]))


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
