"""HTTP tools in a conversation."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from tests.parts.http_service import SECRET, ShopService, row_of
from tests.parts.page import Talk, call, calls_made
from tests.parts.scripted import Service
from voiceapp.records.models import Assistant, Session
from voiceapp.records.models import HttpToolSet as Row
from voiceapp.records.store import store, takeover


@pytest.fixture
async def clerk(transactional_db: None, shop: ShopService) -> dict[str, str]:
    row = await row_of(shop, auth="bearer", secret=SECRET)
    off = await row_of(shop, slug="off", enabled=False)
    assistant = await Assistant.objects.acreate(slug="clerk", name="Clerk", tools=["calculate"])
    await assistant.http_tools.aset([row, off])
    return {"assistant": "clerk"}


async def output_of(upstream: Service) -> str:
    item = (await upstream.expect("conversation.item.create"))["item"]
    assert item["type"] == "function_call_output"
    return str(item["output"])


@pytest.mark.django_db(transaction=True)
async def test_a_conversation_uses_such_tools_and_asks_before_it_changes_anything(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk, private_addresses=True) as (page, upstream):
        ready = page.seen[-1]
        update = await upstream.expect("session.update")
        assert [tool["name"] for tool in update["session"]["tools"]] == [
            "calculate",
            "shop_getOrder",
            "shop_cancelOrder",
            "shop_get_orders",
            "shop_createOrder",
        ]
        await call(upstream, 1, '{"id": "7"}', name="shop_getOrder")
        assert (await page.until("tool.progress"))["message"] == "Asking Shop…"
        assert json.loads(await output_of(upstream))["state"] == "on its way"
        await upstream.expect("response.create")

        await call(upstream, 2, '{"item": "tea"}', name="shop_createOrder")
        question = await page.until("approval.requested")
        assert (question["server_label"], question["name"]) == ("Shop", "createOrder")
        assert [asked.method for asked in shop.requests] == ["GET"]
        answer = {"type": "mcp_approval_response", "approval_request_id": question["approval_request_id"]}
        await page.send({"type": "conversation.item.create", "item": {**answer, "approve": True}})
        assert json.loads(await output_of(upstream))["order"] == "orders"
        assert [asked.method for asked in shop.requests] == ["GET", "POST"]
        assert len(shop.requests[1].headers["idempotency-key"]) == 32

        await call(upstream, 3, '{"id": "7"}', name="shop_cancelOrder")
        question = await page.until("approval.requested")
        answer["approval_request_id"] = question["approval_request_id"]
        await page.send({"type": "conversation.item.create", "item": {**answer, "approve": False}})
        assert json.loads(await output_of(upstream))["error"]["code"] == "not_approved"
        assert len(shop.requests) == 2
        made = await calls_made(ready)
        assert made == [("call_1", "completed"), ("call_2", "completed"), ("call_3", "denied")]
        for told in (page.seen, upstream.received):
            assert "s3cret" not in json.dumps(told)


@pytest.mark.django_db(transaction=True)
async def test_whoever_takes_a_conversation_over_brings_such_tools_along(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    await Assistant.objects.acreate(slug="front", name="Front desk", tools=["hand_over"])
    async with talking(start={"assistant": "front"}, private_addresses=True) as (page, upstream):
        update = await upstream.expect("session.update")
        assert [tool["name"] for tool in update["session"]["tools"]] == ["hand_over"]
        await call(upstream, 1, '{"name": "Clerk"}', name="hand_over")
        assert (await page.until("session.assistant"))["assistant"]["slug"] == "clerk"
        update = await upstream.expect("session.update")
        assert "shop_cancelOrder" in [tool["name"] for tool in update["session"]["tools"]]
        await page.until("session.updated")
        await call(upstream, 2, '{"id": "7"}', name="shop_cancelOrder")
        question = await page.until("approval.requested")
        assert (question["name"], shop.requests) == ("cancelOrder", [])


@pytest.mark.django_db(transaction=True)
async def test_the_services_refusal_reaches_the_model_as_an_error(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk, private_addresses=True) as (page, upstream):
        await call(upstream, 1, '{"id": "broken"}', name="shop_getOrder")
        error = json.loads(await output_of(upstream))["error"]
        assert error["code"] == "http_error"
        assert "HTTP status 422" in error["message"]
        assert (await page.until("response.tool_call.error"))["error"]["code"] == "http_error"


@pytest.mark.django_db(transaction=True)
async def test_without_the_private_setting_a_private_service_is_not_reached(
    talking: Talk, clerk: dict[str, str], shop: ShopService
) -> None:
    async with talking(start=clerk) as (_, upstream):
        await call(upstream, 1, '{"id": "7"}', name="shop_getOrder")
        assert "https only" in await output_of(upstream)
    assert shop.requests == []


@pytest.mark.django_db(transaction=True)
async def test_a_session_keeps_names_alone_and_goes_on_with_the_secret(
    shop: ShopService, clerk: dict[str, str], user: User
) -> None:
    opened = await store.open_session(user_id=user.pk, assistant_slug="clerk", upstream="embedded")
    (tools,) = opened.assistant.http_tools
    assert (tools.secret, len(tools.operations)) == (SECRET, 4)
    assert tools.asked == {"cancelOrder", "createOrder"}
    assert "s3cret" not in repr(opened)
    kept = await Session.objects.aget(id=opened.session_id)
    assert kept.configuration["http_tools"] == [{"slug": "shop", "name": "Shop"}]
    await Session.objects.filter(id=opened.session_id).aupdate(process="other")
    again = await takeover.take(opened.session_id, user.pk, "other")
    assert again.assistant.http_tools == opened.assistant.http_tools
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)


@pytest.mark.django_db(transaction=True)
async def test_a_document_that_can_no_longer_be_read_takes_nothing_else_along(
    shop: ShopService, clerk: dict[str, str], user: User
) -> None:
    await Row.objects.filter(slug="shop").aupdate(document="{}")
    opened = await store.open_session(user_id=user.pk, assistant_slug="clerk", upstream="embedded")
    assert opened.assistant.http_tools == ()
    assert opened.assistant.tools == ("calculate",)
    (offered,) = [one for one in await store.assistants_for_sessions() if one.slug == "clerk"]
    assert offered.tools == ("calculate",)
    await store.close_session(opened.session_id, reason="test", expected=True, duration_ms=0)
