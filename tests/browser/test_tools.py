"""Tools on the page: how each call goes, and the question whether it may."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser import steps
from tests.browser.browser import heard, microphone_flags, open_page, wait_tap
from tests.browser.product import running_product
from tests.browser.scripted import Link, ScriptedServer
from tests.parts.mcp_server import ToolServer, tool_server
from tests.parts.waits import PATIENCE_S

FAKE = microphone_flags(None)
DESKTOP = {"width": 1280, "height": 800}
ARGUMENTS = '{"order":12345678901234567890,"to":"\u202e<b>ada</b>"}'


def begin(link: Link, item: str, name: str, server: str = "") -> None:
    """Let the model begin a call."""
    kind = {"type": "mcp_call", "server_label": server} if server else {"type": "function_call"}
    raw = {"id": item, "name": name, "call_id": f"call_{item}", **kind}
    head = {"index": 0, "item_id": item, "call_id": f"call_{item}"}
    link.send({"type": "response.tool_call.started", **head, "name": name})
    link.send({"type": "conversation.item.added", "previous_item_id": None, "item": raw})


def end(link: Link, item: str, name: str, **error: str) -> None:
    """Let it end, well or with an error."""
    head = {"index": 0, "item_id": item, "call_id": f"call_{item}"}
    if error:
        link.send({"type": "response.tool_call.error", **head, "error": {"type": "tool_error", **error}})
    else:
        link.send({"type": "response.tool_call.completed", **head, "name": name, "arguments": "{}"})


def ask(link: Link, request: str = "q1", item: str = "t1", **more: Any) -> None:
    """Let the server ask whether a call may run."""
    asked = {"approval_request_id": request, "server_label": "shop", "name": "cancel_order",
             "arguments": ARGUMENTS, "call_id": f"call_{item}", "timeout_ms": 60_000}  # fmt: skip
    link.send({"type": "approval.requested", **asked, **more})


def settle(link: Link, outcome: str, request: str = "q1") -> None:
    link.send({"type": "approval.settled", "approval_request_id": request, "outcome": outcome})


def test_each_call_is_a_line_that_says_how_it_goes(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport=DESKTOP) as page:
        link = steps.start(page, server)
        lines = page.locator(".line.tool")
        begin(link, "t1", "current_time")
        expect(lines.locator(".meta")).to_have_text(["running…"])
        link.send({"type": "tool.progress", "call_id": "call_t1", "message": "Looking that up…"})
        expect(lines.locator(".meta")).to_have_text(["Looking that up…"])
        end(link, "t1", "current_time")
        begin(link, "t2", "order_status", "shop")
        end(link, "t2", "order_status", code="http_error", message="The server is away.")
        expect(lines.locator(".who")).to_have_text(["Tool", "Tool of shop"])
        expect(lines.locator(".said")).to_have_text(["Current time", "Order status"])
        expect(lines.locator(".meta")).to_have_text(["done", "failed: The server is away."])
        output = {
            "id": "o1",
            "type": "function_call_output",
            "call_id": "call_t1",
            "output": '"Half past two."',
        }
        link.send({"type": "conversation.item.added", "previous_item_id": "t1", "item": output})
        expect(lines.locator(".meta").first).to_have_text("Half past two.")
        # By their own names for those who ask.
        page.keyboard.press("?")
        page.get_by_label("Show timings").check()
        page.keyboard.press("Escape")
        expect(lines.locator(".said")).to_have_text(["current_time", "order_status"])
        expect(lines.locator(".meta").first).to_have_text("done")


def test_names_and_reasons_with_markup_are_inert(playwright: Playwright, server: ScriptedServer) -> None:
    name = '<img src=x onerror="window.hit=1">\u202eevil'
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        begin(link, "t1", name, "<b>shop</b>")
        end(link, "t1", name, code="x", message="<i>no</i>\u202e")
        ask(link, name=name, server_label="<b>shop</b>")
        shown = name.replace("\u202e", "\\u202e")
        expect(page.locator(".line.tool .said")).to_have_text(shown)
        expect(page.locator(".line.tool .meta")).to_have_text("failed: <i>no</i>\\u202e")
        expect(page.locator(".approval h3")).to_have_text(f"Allow “{shown}” (<b>shop</b>)?")
        assert page.evaluate("window.hit") is None


def test_a_server_without_tools_is_a_line(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        told = {"type": "notice", "code": "mcp_tools_unavailable", "level": "warning", "server_label": "shop"}
        link.send({**told, "message": "The tools of “shop” cannot be used. No.", "reason": "No."})
        expect(page.locator(".line.tool .said")).to_have_text("shop")
        expect(page.locator(".line.tool .meta")).to_have_text("tools not available: No.")
        expect(page.locator(".notice")).to_have_count(0)


def test_a_question_shows_what_the_call_would_do(playwright: Playwright, server: ScriptedServer) -> None:
    title, lines = (
        "Delete these 20 notes?",
        ["<b>milk</b>\u202e", "לקנות חלב", *(f"note {n} " * 20 for n in range(18))],
    )
    with open_page(playwright, server.url, flags=FAKE, viewport=DESKTOP) as page:
        link = steps.start(page, server)
        begin(link, "t1", "delete_note")
        ask(link, name="delete_note", server_label="", preview={"title": title, "lines": lines})
        card = page.get_by_role("region", name=title)
        shown = ["<b>milk</b>\\u202e", *(line.strip() for line in lines[1:])]
        expect(card.locator(".preview li")).to_have_text(shown)
        assert (
            card.locator(".preview li").nth(1).evaluate("each => getComputedStyle(each).direction") == "rtl"
        )
        # However much it is, the buttons stay in sight.
        expect(card.get_by_role("button", name="Allow", exact=True)).to_be_in_viewport()
        assert "Delete these 20 notes? Answer within 60 seconds. <b>milk</b>" in page.inner_text("#alert")
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/preview.png")


@pytest.mark.parametrize(("word", "approve"), [("Allow", True), ("Don’t allow", False)])
def test_a_question_is_answered_with_the_keyboard(
    playwright: Playwright, server: ScriptedServer, word: str, approve: bool
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport=DESKTOP) as page:
        link = steps.start(page, server)
        begin(link, "t1", "cancel_order", "shop")
        ask(link)
        expect(page.locator(".line.tool .meta")).to_have_text("waits for you")
        card = page.get_by_role("region", name="Allow “Cancel order” (shop)?")
        expect(page.locator("#status-word")).to_have_text("Waiting for you")
        expect(card.locator(".given dt")).to_have_text(["Order", "To"])
        expect(card.locator(".given dd")).to_have_text(["12345678901234567890", "\\u202e<b>ada</b>"])
        card.get_by_text("Exact call").click()
        expect(card.locator(".exact-name")).to_have_text("cancel_order")
        expect(card.locator(".arguments")).to_be_visible()
        # What JavaScript would round, and what would turn the text around, is shown as it would be sent.
        expect(card.locator(".arguments")).to_have_text(
            '{ "order": 12345678901234567890, "to": "\\u202e<b>ada</b>" }'
        )
        expect(card.locator(".left")).to_contain_text("Answer within ")
        assert (
            "Allow “Cancel order” (shop)? Answer within 60 seconds. Order: 12345678901234567890;"
            in page.inner_text("#alert")
        )
        page.get_by_role("button", name=word, exact=True).focus()
        page.keyboard.press("Enter")
        sent = link.wait_type("conversation.item.create")["item"]
        assert sent == {"type": "mcp_approval_response", "approval_request_id": "q1", "approve": approve}
        expect(card.locator(".left")).to_have_text("Your answer is on its way.")
        expect(page.locator("#status-word")).to_have_text("Listening")
        page.keyboard.press("Enter")
        settle(link, "allowed" if approve else "denied")
        expect(page.locator(".approval")).to_have_count(0)
        expect(page.locator("#message")).to_be_focused()
        expect(page.locator(".line.tool .meta")).to_have_text("running…" if approve else "not allowed")
        assert [text["type"] for text in link.texts].count("conversation.item.create") == 1


def test_a_question_that_lapsed_goes_by_itself(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        begin(link, "t1", "cancel_order", "shop")
        ask(link, timeout_ms=1)
        expect(page.locator(".approval .left")).to_have_text("The time is up.")
        settle(link, "timed_out")
        link.send(
            {
                "type": "notice",
                "code": "approval_timed_out",
                "message": "Nobody answered.",
                "level": "warning",
            }
        )
        expect(page.locator(".approval")).to_have_count(0)
        expect(page.locator(".notice")).to_contain_text("Nobody answered.")


def test_sound_goes_on_under_a_question(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE, bypass_csp=True) as page:
        link = steps.start(page, server)
        wait_tap(page)
        begin(link, "t1", "cancel_order", "shop")
        ask(link)
        steps.answer(link, "a1", "t1", "One moment.", 1.0)
        link.send({"type": "response.output_audio.done", "item_id": "a1"})
        link.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})
        frames = len(link.frames)
        link.wait_frames(frames + 10)
        expect(page.locator("#status-word")).to_have_text("Waiting for you")
        assert heard(page).sounding_ms() == pytest.approx(1000, abs=20)
        expect(page.locator(".approval")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(320, 480), (375, 740), (1280, 720)])
def test_a_question_can_be_read_and_answered_on_any_screen(
    playwright: Playwright, server: ScriptedServer, width: int, height: int, scheme: str
) -> None:
    view = {"width": width, "height": height}
    with open_page(playwright, server.url, flags=FAKE, viewport=view, color_scheme=scheme) as page:
        link = steps.start(page, server)
        begin(link, "t0", "x" * 64, "shop")
        end(link, "t0", "x" * 64, code="x", message="It is away. " * 5)
        begin(link, "t1", "cancel_order", "shop")
        ask(link, arguments=json.dumps({f"field{n}": "word " * n for n in range(20)}))
        expect(page.locator(".approval")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for name in (".answers .allow", ".answers .deny", "#message", "#hangup"):
            box = page.locator(name).bounding_box()
            assert box, name
            assert 0 <= box["x"] <= width - box["width"], name
            assert box["y"] + box["height"] <= height, name
            assert round(box["height"], 1) >= 44, name
            centre = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
            hit = page.evaluate(
                "([x, y, name]) => document.elementFromPoint(x, y)?.closest(name) !== null",
                [centre["x"], centre["y"], name],
            )
            assert hit, f"{name} is covered"
        assert page.evaluate(Path(__file__).with_name("contrast.js").read_text()) == []


# -- the whole product ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    with tool_server() as running:
        yield running


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("data")
    with running_product(folder, VOICEAPP_PRIVATE_ADDRESSES="1") as running:
        yield running


def _until(page: Page, holds: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def _say(page: Page, text: str) -> None:
    page.fill("#message", text)
    page.press("#message", "Enter")


def test_the_embedded_engine_calls_a_server_that_the_admin_named(
    playwright: Playwright, link: str, shop: ToolServer
) -> None:
    with open_page(playwright, link, flags=["--deny-permission-prompts"], viewport=DESKTOP) as page:
        page.goto(link.split("/signin/")[0] + "/admin/records/assistant/")
        page.click("#result_list tbody tr:first-child th a")
        servers = [{"server_label": "shop", "server_url": shop.url, "authorization": "s3cret-token"}]
        page.fill("#id_mcp_servers", json.dumps(servers))
        page.click("input[name=_save]")
        expect(page.locator(".messagelist .success")).to_be_visible()
        told: list[str] = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda data: told.append(str(data))))
        page.goto(link.split("/signin/")[0] + "/")
        _say(page, "Hello")
        expect(page.locator(".line.assistant .said")).not_to_be_empty()
        # The server is asked for its tools while the conversation goes on.
        _until(page, lambda: any("mcp_list_tools.completed" in text for text in told))
        _say(page, "What is the status of order 7?")
        expect(page.locator(".approval h3")).to_have_text("Allow “Order status” (shop)?")
        expect(page.locator(".approval .given")).to_have_text("Order7")
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator(".line.tool")).to_have_attribute("data-tool", "done")
        expect(page.locator(".line.assistant .said").last).to_contain_text("on its way")
        # One for each thing said, and one after the call.
        assert len([text for text in told if '"response.created"' in text]) == 3
        assert "Bearer s3cret-token" in {request.get("authorization") for request in shop.requests}
        page.click("#hangup")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        page.click("text=Past conversations")
        page.click(".history a >> nth=0")
        expect(page.locator(".script")).to_contain_text("order_status")
        assert "s3cret-token" not in page.content()
