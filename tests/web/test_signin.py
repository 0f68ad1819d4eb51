"""Sign-in links: once, for a day, for people who are active."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from voiceapp.web.models import SignInLink
from voiceapp.web.signin import LIFETIME, first_administrator, knows_token, make_token, take_token

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_token_signs_its_user_in_once(user: User) -> None:
    token = make_token(user)
    assert take_token(token) == user
    assert take_token(token) is None
    assert not SignInLink.objects.exists()


def test_asking_whether_a_token_works_does_not_spend_it(user: User) -> None:
    token = make_token(user)
    assert knows_token(token)
    assert take_token(token) == user
    assert not knows_token(token)
    late = make_token(user)
    SignInLink.objects.update(expires_at=SignInLink.objects.get().expires_at - LIFETIME)
    assert not knows_token(late)
    assert not knows_token("unknown")


def test_a_new_token_replaces_the_one_before(user: User) -> None:
    first, second = make_token(user), make_token(user)
    assert first != second
    assert take_token(first) is None
    assert take_token(second) == user


def test_the_token_itself_is_not_kept(user: User) -> None:
    token = make_token(user)
    [link] = SignInLink.objects.all()
    assert token not in link.digest


def test_an_old_token_and_one_of_somebody_who_left_open_nothing(user: User) -> None:
    old = make_token(user)
    SignInLink.objects.update(
        expires_at=SignInLink.objects.get().expires_at - LIFETIME - timedelta(seconds=1)
    )
    assert take_token(old) is None
    token = make_token(user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert take_token(token) is None


@pytest.mark.parametrize("token", ["", "unknown", "\ud800", "x" * 10_000])
def test_what_is_no_token_opens_nothing(token: str) -> None:
    assert take_token(token) is None


def test_the_first_administrator_is_the_one_who_was_made_first_and_is_active(user: User) -> None:
    assert first_administrator() is None
    gone = User.objects.create_superuser("gone", password="x")
    root = User.objects.create_superuser("root", password="x")
    assert first_administrator() == gone
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert first_administrator() == root
