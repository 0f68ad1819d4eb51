"""The command that prints a new sign-in link."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from voiceapp.web.models import SignInLink
from voiceapp.web.signin import take_token

pytestmark = pytest.mark.django_db(transaction=True)

SITE = "https://voice.example"


def link(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the token of the link that the command prints."""
    call_command("signin", *arguments, "--url", SITE)
    site, _, token = capsys.readouterr().out.strip().rpartition("/signin/")
    assert site == SITE
    return token


def test_a_named_user_gets_a_link_that_signs_in_once(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = link(capsys, "ada"), link(capsys, "ada")
    assert take_token(first) is None
    assert take_token(second) == user
    assert take_token(second) is None


def test_without_a_name_it_is_for_the_one_administrator(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    root = User.objects.create_superuser("root")
    assert take_token(link(capsys)) == root
    User.objects.create_superuser("boss")
    with pytest.raises(CommandError, match=r"several administrators: root, boss\. Name one"):
        link(capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no administrator yet: manage.py up makes one"),
        (["nobody"], r"no user named 'nobody'\. There is ada\. --create makes one"),
        (["gone"], "'gone' is switched off"),
        (["no name!", "--create"], "'no name!' is no user name"),
        (["x" * 200, "--create"], "is no user name"),
    ],
)
def test_where_there_can_be_none_it_says_what_to_do(
    user: User, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    User.objects.create_user("gone", is_active=False)
    with pytest.raises(CommandError, match=said):
        link(capsys, *arguments)
    assert not SignInLink.objects.exists()
    assert User.objects.count() == 2


def test_users_are_made_when_asked_for_and_the_first_is_an_administrator(
    transactional_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, rules in (("root", True), ("ada", False), ("root", True)):
        made = take_token(link(capsys, name, "--create"))
        assert made is not None
        assert (made.username, made.is_superuser, made.is_staff) == (name, rules, rules)
        assert not made.has_usable_password()
    assert User.objects.count() == 2


def test_without_a_server_it_says_how_to_name_one(user: User) -> None:
    with pytest.raises(CommandError, match="No server of manage"):
        call_command("signin", "ada")
