"""The command that makes API tokens."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from voiceapp.records.models import ApiToken
from voiceapp.records.store.tokens import digest_of

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
    with pytest.raises(CommandError, match="--replace gives it a new one, --revoke deletes it"):
        call_command("token", "laptop", "--user", "ada")
    call_command("token", "laptop", "--user", "ada", "--delete")
    assert not ApiToken.objects.exists()


def test_a_token_is_replaced_or_made_and_revoked(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        call_command("token", "laptop", "--user", "ada", "--replace")
        texts.append(capsys.readouterr().out.strip())
        ApiToken.objects.update(tokens_per_day=7)
    row = ApiToken.objects.get()
    assert (row.digest, row.hint, row.tokens_per_day) == (digest_of(texts[1]), texts[1][:8], 7)
    assert texts[0] != texts[1]
    call_command("token", "laptop", "--user", "ada", "--revoke")
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
