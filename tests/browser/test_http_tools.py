"""HTTP tools in a real browser, from the admin's form to the conversation."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Playwright, expect

from tests.browser.browser import open_page
from tests.browser.product import running_product
from tests.parts.engine_server import EngineServer
from tests.parts.http_service import ShopService, document

DESKTOP = {"width": 1280, "height": 800}


def test_a_service_that_the_admin_describes_is_called(playwright: Playwright, tmp_path: Path) -> None:
    """From an uploaded document to the answer: Chromium, the whole product, and a service on a socket."""
    root = document()
    root["paths"] = {
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {"operationId": "order_status", "summary": "Tell the status of an order"},
        }
    }
    service = ShopService()
    with (
        EngineServer(service) as running,
        running_product(tmp_path, VOICEAPP_PRIVATE_ADDRESSES="1") as link,
        open_page(playwright, link, flags=["--deny-permission-prompts"], viewport=DESKTOP) as page,
    ):
        base = link.split("/signin/")[0]
        page.goto(f"{base}/admin/records/httptoolset/add/")
        page.fill("#id_name", "Corner shop")
        upload = {"name": "shop.json", "mimeType": "application/json", "buffer": json.dumps(root).encode()}
        page.set_input_files("#id_upload", upload)  # type: ignore[arg-type]
        page.fill("#id_base_url", running.address.replace("ws://", "http://") + "/v1")
        page.select_option("#id_auth", "bearer")
        page.fill("#id_new_secret", "s3cret-token")
        page.fill("#id_asks", '["order_status"]')
        page.click("input[name=_continue]")
        expect(page.locator(".messagelist .success")).to_be_visible()
        expect(page.locator(".http-tools tbody tr")).to_have_text(
            "order_statusGET /orders/{id}asks firstTell the status of an order"
        )
        assert "s3cret-token" not in page.content()
        page.goto(f"{base}/admin/records/assistant/")
        page.click("#result_list tbody tr:first-child th a")
        page.get_by_label("Corner shop").check()
        page.click("input[name=_save]")
        expect(page.locator(".messagelist .success")).to_be_visible()
        page.goto(f"{base}/")
        page.fill("#message", "What is the status of order 7?")
        page.press("#message", "Enter")
        expect(page.locator(".approval .arguments")).to_have_text('{ "id": 7 }')
        assert service.requests == []
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator(".line.tool")).to_have_attribute("data-tool", "done")
        expect(page.locator(".line.assistant .said").last).to_contain_text("on its way")
        assert [(asked.method, asked.path) for asked in service.requests] == [("GET", "/v1/orders/7")]
        assert service.requests[0].headers["authorization"] == "Bearer s3cret-token"
