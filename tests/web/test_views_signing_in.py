"""Coming in by a link or a password, and leaving: nobody is locked out, and no link is spent unasked."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from voiceapp.web.models import SignInLink
from voiceapp.web.signin import make_token, take_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(client: Client, user: User) -> Client:
    """A browser in which the user is signed in."""
    client.force_login(user)
    return client


def test_a_link_signs_in_once(client: Client, user: User) -> None:
    token = make_token(user)
    assert token not in str(list(SignInLink.objects.values()))
    first = client.post(f"/signin/{token}")
    assert (first.status_code, first.headers["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(user.pk)
    # Whoever is signed in already may reload it.
    assert client.get(f"/signin/{token}").headers["Location"] == "/"
    other = Client()
    assert other.post(f"/signin/{token}").headers["Location"] == "/login/?link=spent"
    answer = other.get(f"/signin/{token}", follow=True)
    assert "_auth_user_id" not in other.session
    assert answer.request["PATH_INFO"] == "/login/"
    assert b"was used already" in answer.content


@pytest.mark.parametrize("headers", [{}, {"Sec-Purpose": "prefetch;prerender"}, {"User-Agent": "Chatbot/1"}])
def test_fetching_a_link_spends_nothing(user: User, headers: dict[str, str]) -> None:
    client, token = Client(enforce_csrf_checks=True), make_token(user)
    for fetch in (client.get, client.head, client.get):
        page = fetch(f"/signin/{token}", headers=headers)
        assert page.status_code == 200
        assert "_auth_user_id" not in client.session
        assert "no-store" in page.headers["Cache-Control"]
        assert "form-action 'self'" in page.headers["Content-Security-Policy"]
    assert client.options(f"/signin/{token}").status_code == 405
    assert client.post(f"/signin/{token}").status_code == 403, "no other site presses the button"
    assert take_token(token) == user


def test_the_page_of_a_link_has_one_button_and_names_nobody(user: User) -> None:
    client, token = Client(enforce_csrf_checks=True), make_token(user)
    text = client.get(f"/signin/{token}").content.decode()
    assert (text.count("<button"), text.count("<form")) == (1, 1)
    assert "<script" not in text
    assert user.get_username() not in text
    [form] = re.findall('name="csrfmiddlewaretoken" value="([^"]+)"', text)
    assert client.post(f"/signin/{token}", {"csrfmiddlewaretoken": form}).headers["Location"] == "/"
    assert client.session["_auth_user_id"] == str(user.pk)


def test_a_link_that_opens_nothing_shows_no_button(client: Client, user: User) -> None:
    token = make_token(user)
    User.objects.update(is_active=False)
    for gone in (token, "unknown", "x" * 999):
        assert client.get(f"/signin/{gone}").headers["Location"] == "/login/?link=spent"
    User.objects.update(is_active=True)
    SignInLink.objects.update(expires_at=timezone.now())
    assert client.get(f"/signin/{token}").headers["Location"] == "/login/?link=spent"


def test_links_expire_and_are_replaced(user: User) -> None:
    first = make_token(user)
    second = make_token(user)
    assert take_token(first) is None
    SignInLink.objects.update(expires_at=timezone.now())
    assert take_token(second) is None
    inactive = make_token(user)
    User.objects.update(is_active=False)
    assert take_token(inactive) is None
    assert take_token("nonsense\ud800") is None


def test_logging_in_and_out(client: Client, user: User) -> None:
    assert client.get("/login/").status_code == 200
    wrong = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert wrong.context["form"].non_field_errors()
    right = client.post("/login/?next=/sessions/", {"username": "ada", "password": "correct horse"})
    assert right.headers["Location"] == "/sessions/"
    assert client.post("/login/?next=//evil.example/").headers["Location"] == "/"
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("address", ["/logout/", "/admin/logout/"])
def test_who_has_no_password_is_asked_before_signing_out(client: Client, address: str) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    asked = client.post(address)
    text = asked.content.decode()
    assert asked.status_code == 200
    assert "python3 manage.py signin root" in text
    assert "python3 manage.py changepassword root" in text
    assert "no-store" in asked.headers["Cache-Control"]
    assert client.get("/sessions/").status_code == 200, "nobody is signed out yet"
    assert client.post(address, {"confirmed": "yes"}).headers["Location"] == "/login/"
    assert client.get("/sessions/").status_code == 302


def test_who_has_a_password_signs_out_at_once_and_is_told_how_to_come_back(page: Client) -> None:
    answer = page.post("/logout/", follow=True)
    assert answer.redirect_chain == [("/login/", 302)]
    text = answer.content.decode()
    assert "python3 manage.py signin<" in text
    assert "python3 manage.py changepassword" in text


def test_forms_of_other_sites_are_refused(user: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    assert strict.post("/logout/").status_code == 403
