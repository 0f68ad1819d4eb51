"""HTTP tools in the admin."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.parts.http_service import SECRET, document
from voiceapp.records.models import Assistant
from voiceapp.records.models import HttpToolSet as Row

ADD = "/admin/records/httptoolset/add/"


def form(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Shop", "slug": "shop", "enabled": "on", "document": json.dumps(document()), "base_url": "",
        "auth": "", "auth_name": "", "new_secret": "", "operations": "[]", "asks": "[]", "unasked": "[]",
        **changes,
    }  # fmt: skip


def test_an_administrator_pastes_or_uploads_a_document(admin_client: Client) -> None:
    taken = admin_client.post(ADD, form(auth="header", auth_name="X-Key", new_secret=SECRET))
    assert taken.status_code == 302, taken.content.decode()
    row = Row.objects.get()
    assert (row.secret, row.config().base_url) == (SECRET, "https://shop.example/v1")  # type: ignore[union-attr]
    page = admin_client.get(f"/admin/records/httptoolset/{row.pk}/change/").content.decode()
    for shown in ("getOrder", "/orders/{id}", "asks first", "Tell where an order is"):
        assert shown in page
    assert "s3cret" not in page
    upload = SimpleUploadedFile("shop.json", json.dumps(document(openapi="3.0.1")).encode())
    again = admin_client.post(ADD, form(slug="shop2", document="", upload=upload))
    assert again.status_code == 302, again.content.decode()
    assert "3.0.1" in Row.objects.get(slug="shop2").document
    for address in ("/admin/", "/admin/records/httptoolset/", "/admin/records/httptoolset/?q=shop"):
        assert "s3cret" not in admin_client.get(address).content.decode()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"document": ""}, "Give a document: upload a file, or paste it."),
        ({"document": "openapi: 3.0.0"}, "YAML has to be made JSON first."),
        ({"document": json.dumps(document(paths={"/x": {"get": {"parameters": [{}]}}}))},
         "paths./x.get.parameters[0]: it has no name."),
        ({"document": json.dumps(document(paths={"/x": {"get": {"servers": [{}]}}}))},
         "No operation can be called. GET /x: it has servers of its own"),
        ({"document": json.dumps(document(servers=[]))}, "give one here"),
        ({"upload": SimpleUploadedFile("x.json", b"\xff\xfe")}, "The file is no text in UTF-8."),
        ({"base_url": "http://shop.example"}, "must be an https:// address"),
        ({"base_url": "https://me:pw@shop.example"}, "no user name, no query and no fragment"),
        ({"operations": '["nothing"]'}, "There is no operation"),
        ({"operations": '{"a": 1}'}, "Expected `array`"),
        ({"operations": "5"}, "Expected `array`"),
        ({"operations": "[" * 50_000}, "Enter a valid JSON"),
        ({"asks": '["nothing"]'}, "among those offered"),
        ({"asks": '["createOrder"]', "unasked": '["createOrder"]'}, "is asked about as well"),
        ({"auth": "bearer"}, "Give the secret."),
        ({"auth": "header", "new_secret": "x"}, "Name the header or the query parameter."),
        ({"auth": "header", "auth_name": "Host", "new_secret": "x"}, "no header that can be set"),
        ({"auth": "header", "auth_name": "idempotency-key", "new_secret": "x"}, "is set for each call"),
        ({"auth": "bearer", "new_secret": "ü"}, "printable ASCII"),
    ],
    ids=range(19),
)  # fmt: skip
def test_what_is_wrong_is_told_in_the_form(admin_client: Client, changes: dict[str, Any], told: str) -> None:
    refused = admin_client.post(ADD, form(**changes))
    assert refused.status_code == 200
    assert told in refused.content.decode().replace("&#x27;", "'")
    assert not Row.objects.exists()


def change(client: Client, row: Row, **changes: Any) -> Any:
    return client.post(f"/admin/records/httptoolset/{row.pk}/change/", form(auth="bearer", **changes))


def test_a_secret_stays_until_it_is_changed_or_no_longer_needed(admin_client: Client) -> None:
    admin_client.post(ADD, form(auth="bearer", new_secret=SECRET))
    row = Row.objects.get()
    assert change(admin_client, row, name="Other").status_code == 302
    row.refresh_from_db()
    assert (row.name, row.secret) == ("Other", SECRET)
    assert change(admin_client, row, new_secret="new").status_code == 302
    row.refresh_from_db()
    assert row.secret == "new"
    admin_client.post(f"/admin/records/httptoolset/{row.pk}/change/", form())
    row.refresh_from_db()
    assert row.secret == ""


@pytest.mark.parametrize(
    "elsewhere",
    [{"base_url": "https://evil.example/v1"}, {"document": json.dumps(document("https://evil.example/v1"))}],
)
def test_a_secret_is_not_sent_to_another_address_unless_it_is_given_again(
    admin_client: Client, elsewhere: dict[str, Any]
) -> None:
    admin_client.post(ADD, form(auth="bearer", new_secret=SECRET))
    row = Row.objects.get()
    refused = change(admin_client, row, **elsewhere)
    assert "Give the secret again" in refused.content.decode()
    row.refresh_from_db()
    assert row.address == "https://shop.example/v1"
    assert change(admin_client, row, **elsewhere, new_secret="for evil").status_code == 302
    row.refresh_from_db()
    assert (row.address, row.secret) == ("https://evil.example/v1", "for evil")


def test_the_private_setting_opens_plain_http(admin_client: Client, settings: Any) -> None:
    settings.VOICE = replace(settings.VOICE, private_addresses=True)
    assert admin_client.post(ADD, form(base_url="http://127.0.0.1:9/v1")).status_code == 302


def test_who_is_asked_about_what_can_be_chosen(admin_client: Client) -> None:
    chosen = {"operations": '["getOrder", "cancelOrder", "createOrder"]', "asks": '["getOrder"]'}
    admin_client.post(ADD, form(**chosen, unasked='["createOrder"]'))
    config = Row.objects.get().config()
    assert config is not None
    assert config.asked == {"getOrder", "cancelOrder"}
    assert [operation.key for operation in config.operations] == ["getOrder", "cancelOrder", "createOrder"]


@pytest.mark.parametrize(("auth", "name"), [("header", "x-trace"), ("query", "state")])
def test_the_model_is_not_asked_for_the_secret(admin_client: Client, auth: str, name: str) -> None:
    """Documents describe the header or the parameter that bears it as any other."""
    admin_client.post(ADD, form(auth=auth, auth_name=name, new_secret=SECRET))
    config = Row.objects.get().config()
    assert config is not None
    (listing,) = [one for one in config.operations if one.key == "GET /orders"]
    names = ["state", "tag", "X-Trace"]
    names.remove("X-Trace" if auth == "header" else "state")
    assert list(listing.parameters["properties"]) == names
    assert [argument.name for argument in listing.arguments] == names


def test_whoever_may_only_look_sees_no_secret(transactional_db: None) -> None:
    viewer = User.objects.create_user("eve", password="x", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_httptoolset"))
    row = Row.objects.create(
        name="Shop", slug="shop", document=json.dumps(document()), auth="bearer", secret=SECRET
    )
    client = Client()
    client.force_login(viewer)
    shown = client.get(f"/admin/records/httptoolset/{row.pk}/change/").content.decode()
    assert "asks first" in shown
    assert "s3cret" not in shown


def test_an_assistant_may_have_no_more_operations_than_a_service_takes(admin_client: Client) -> None:
    paths: dict[str, Any] = {f"/{n}": {"get": {}} for n in range(60)}
    rows = [
        Row.objects.create(name=slug, slug=slug, document=json.dumps(document(paths=paths))) for slug in "ab"
    ]
    fields = {
        "slug": "clerk", "name": "Clerk", "enabled": "on", "position": "0", "input_format": "audio/pcm",
        "output_format": "audio/pcm", "turn_detection": "null", "transcription": "{}",
        "mcp_servers": "[]",
    }  # fmt: skip
    address = "/admin/records/assistant/add/"
    refused = admin_client.post(address, {**fields, "http_tools": [row.pk for row in rows]})
    assert "100 operations in all: these have 120." in refused.content.decode()
    taken = admin_client.post(address, {**fields, "http_tools": [rows[0].pk]})
    assert taken.status_code == 302, taken.content.decode()
    assert len(Assistant.objects.get(slug="clerk").config().http_tools[0].operations) == 60
