"""An assistant's MCP servers: what is taken, what is refused, and that secrets stay where they belong."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import Client

from voiceapp.assistants.mcp_servers import HIDDEN, McpServer, read_servers, scrub
from voiceapp.conversation.records import ItemRecord
from voiceapp.records.models import Assistant, Session
from voiceapp.records.reading.transcript import lines
from voiceapp.records.store import store
from voiceapp.records.store.writer import writer

SHOP: dict[str, Any] = {"server_label": "shop", "server_url": "https://shop.example/mcp"}
TOKEN = "tok-9f8e7d"


def test_a_server_becomes_a_tool_of_the_protocol() -> None:
    rule = {"always": {"tool_names": ["buy"]}, "never": {"read_only": True}}
    (server,) = read_servers(
        [{**SHOP, "allowed_tools": ["look", "buy"], "require_approval": rule, "authorization": TOKEN}],
        private_allowed=False,
    )
    assert server.to_ga() == {
        "type": "mcp", **SHOP, "allowed_tools": ["look", "buy"], "require_approval": rule,
        "authorization": TOKEN,
    }  # fmt: skip


def test_whoever_says_nothing_of_approval_is_asked() -> None:
    (server,) = read_servers([SHOP], private_allowed=False)
    assert server.to_ga()["require_approval"] == "always"


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({}, "array"),
        ([{"server_label": "shop"}], "server_url"),
        ([{**SHOP, "server_label": "a b"}], "server_label"),
        ([{**SHOP, "server_url": "http://shop.example"}], "https://"),
        ([{**SHOP, "server_url": "https://"}], "https://"),
        ([{**SHOP, "server_url": "https://h/" + "a" * 2048}], "2048"),
        ([{**SHOP, "connector_id": "mail"}], "connector_id"),
        ([{**SHOP, "require_approval": "sometimes"}], "require_approval"),
        ([{**SHOP, "require_approval": {"sometimes": {}}}], "sometimes"),
        ([{**SHOP, "allowed_tools": [""]}], "name"),
        ([{**SHOP, "allowed_tools": ["a"] * 129}], "128"),
        ([{**SHOP, "headers": {"Host": "other"}}], "header"),
        ([{**SHOP, "headers": {f"a{n}": "b" for n in range(17)}}], "16"),
        ([{**SHOP, "authorization": "a\r\nb: c"}], "ASCII"),
        ([SHOP, SHOP], "server_label of its own"),
        ([{**SHOP, "server_label": f"s{n}"} for n in range(9)], "8"),
    ],
)
def test_what_no_service_would_take_is_refused_with_a_sentence(servers: Any, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_servers(servers, private_allowed=False)
    assert said in str(refused.value)


def test_plain_http_is_for_those_who_ask_for_it() -> None:
    (server,) = read_servers([{**SHOP, "server_url": "http://127.0.0.1:9/mcp"}], private_allowed=True)
    assert server.server_url == "http://127.0.0.1:9/mcp"


def secretive() -> McpServer:
    return McpServer(
        server_label="shop",
        server_url="https://me:pa55word@shop.example/mcp?key=abcdef",
        authorization=TOKEN,
        headers={"X-Key": 'Basic "quoted"'},
    )


def test_no_secret_is_kept_or_printed() -> None:
    server = secretive()
    kept = json.dumps(server.without_secrets().to_ga(), ensure_ascii=False)
    for secret in (TOKEN, "pa55word", "abcdef", "quoted"):
        assert secret not in kept
        assert secret not in repr(server)
    assert kept.count(HIDDEN) == 3
    assert "https://shop.example/mcp" in kept


def test_a_service_that_quotes_a_secret_is_not_repeated() -> None:
    said = json.dumps({"message": f'The token {TOKEN} and "quoted" in Basic "quoted" are wrong.'})
    shown = scrub(said, (secretive(),))
    assert TOKEN not in shown
    assert 'Basic \\"quoted\\"' not in shown
    assert json.loads(shown)


# -- in the database and the admin ----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
async def test_a_session_keeps_its_assistant_without_the_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    user = await User.objects.acreate(username="ada")
    await Assistant.objects.acreate(
        slug="clerk",
        name="Clerk",
        mcp_servers=[{**SHOP, "authorization": TOKEN, "headers": {"X-Key": TOKEN}}],
    )
    opened = await store.open_session(user_id=user.id, assistant_slug="clerk", upstream="embedded")
    assert opened.assistant.mcp_servers[0].authorization == TOKEN
    kept = await Session.objects.aget(id=opened.session_id)
    assert kept.configuration["mcp_servers"][0]["server_label"] == "shop"
    assert kept.assistant_config().mcp_servers[0].authorization == HIDDEN
    assert TOKEN not in json.dumps(kept.configuration)
    assert TOKEN not in caplog.text
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)


@pytest.mark.django_db(transaction=True)
async def test_a_question_and_its_answer_can_be_read_and_the_lists_are_the_operators() -> None:
    user = await User.objects.acreate(username="ada")
    await Assistant.objects.acreate(slug="clerk", name="Clerk")
    opened = await store.open_session(user_id=user.id, assistant_slug="clerk", upstream="embedded")
    raws: list[dict[str, Any]] = [
        {"type": "mcp_list_tools", "server_label": "shop", "tools": ["look", "buy"]},
        {"type": "mcp_call", "server_label": "shop", "name": "buy", "arguments": "{}"},
        {"type": "mcp_approval_request", "server_label": "shop", "name": "buy", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "i2", "approve": False},
    ]
    for n, raw in enumerate(raws):
        previous = f"i{n - 1}" if n else None
        record = ItemRecord(item_id=f"i{n}", previous_item_id=previous, type=raw["type"], raw=raw)
        writer().save_item(opened.session_id, record)
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)
    session = await Session.objects.aget(id=opened.session_id)
    texts = [line.text for line in await sync_to_async(lines)(session)]
    assert texts == ["buy({})", "shop: buy({})", "not allowed"]
    told = [line.text for line in await sync_to_async(lines)(session, system=True)]
    assert told == ["shop: look, buy", *texts]


def form(**changes: str) -> dict[str, str]:
    return {
        "slug": "clerk", "name": "Clerk", "enabled": "on", "position": "0", "input_format": "audio/pcm",
        "output_format": "audio/pcm", "turn_detection": "null", "transcription": "{}",
        "mcp_servers": "[]", **changes,
    }  # fmt: skip


def test_the_admin_takes_servers_and_explains_what_it_does_not_take(admin_client: Client) -> None:
    address = "/admin/records/assistant/add/"
    refused = admin_client.post(address, form(mcp_servers='[{"server_label": "shop"}]'))
    assert "server_url" in refused.content.decode()
    private = admin_client.post(address, form(mcp_servers=json.dumps([{**SHOP, "server_url": "http://h/"}])))
    assert "A server_url is an https:// address." in private.content.decode()
    taken = admin_client.post(address, form(mcp_servers=json.dumps([{**SHOP, "authorization": TOKEN}])))
    assert taken.status_code == 302, taken.content.decode()
    assert Assistant.objects.get(slug="clerk").config().mcp_servers[0].authorization == TOKEN
    # The admin's own history says which fields were changed, not to what.
    assert TOKEN not in admin_client.get("/admin/").content.decode()


def test_the_private_setting_opens_plain_http(admin_client: Client, settings: Any) -> None:
    settings.VOICE = replace(settings.VOICE, private_addresses=True)
    server = {**SHOP, "server_url": "http://127.0.0.1:9/mcp"}
    taken = admin_client.post("/admin/records/assistant/add/", form(mcp_servers=json.dumps([server])))
    assert taken.status_code == 302, taken.content.decode()


def test_whoever_may_only_look_sees_no_secret(transactional_db: None) -> None:
    viewer = User.objects.create_user("eve", password="x", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_assistant"))
    made = Assistant.objects.create(
        slug="clerk", name="Clerk", mcp_servers=[{**SHOP, "authorization": TOKEN}]
    )
    client = Client()
    client.force_login(viewer)
    shown = client.get(f"/admin/records/assistant/{made.pk}/change/").content.decode()
    assert "shop.example" in shown
    assert HIDDEN in shown
    assert TOKEN not in shown
