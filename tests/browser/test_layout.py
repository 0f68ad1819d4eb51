"""How the page is laid out: in low and wide windows, on paper, with much to read and to write."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser import steps
from tests.browser.browser import microphone_flags, open_page
from tests.browser.scripted import Link, ScriptedServer

FAKE = microphone_flags(None)


def turns(link: Link, count: int) -> None:
    """Let so many things be said, each after the one before."""
    previous = None
    for number in range(count):
        item = f"m{number}"
        role = "user" if number % 2 == 0 else "assistant"
        content = [{"type": "text", "text": f"Sentence {number}, which is a little longer than others."}]
        link.send(steps.message(item, role, previous, content))
        previous = item


def box(page: Page, name: str) -> dict[str, float]:
    found = page.locator(name).bounding_box()
    assert found, name
    return {"x": found["x"], "y": found["y"], "width": found["width"], "height": found["height"]}


@pytest.mark.parametrize(("width", "height"), [(844, 390), (640, 400), (1280, 400)])
def test_a_low_window_leaves_room_for_words_and_controls(
    playwright: Playwright, server: ScriptedServer, width: int, height: int
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": width, "height": height}) as page:
        link = steps.start(page, server)
        turns(link, 8)
        expect(page.locator(".line")).to_have_count(8)
        assert box(page, "#captions")["height"] >= 0.45 * height
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for name in ("#mute", "#interrupt", "#hangup", "#settings-open", "#sound", "#message"):
            found = box(page, name)
            assert 0 <= found["y"] <= height - found["height"], name
            assert round(found["height"], 1) >= 44, name
        assert box(page, "#status")["y"] + box(page, "#status")["height"] <= box(page, "#controls")["y"] + 1


def test_lines_are_no_longer_than_can_be_read(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": 2560, "height": 1440}) as page:
        link = steps.start(page, server)
        turns(link, 2)
        assert box(page, ".line >> nth=0")["width"] <= 42 * 16
        assert box(page, ".dial")["width"] > 600


def test_the_dial_stays_where_it_is_when_a_call_begins(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": 1280, "height": 800}) as page:
        before = box(page, ".dial")
        steps.start(page, server)
        expect(page.locator("#status-word")).to_have_text("Listening")
        assert box(page, ".dial") == pytest.approx(before, abs=1)


def test_the_text_box_grows_with_its_text_and_never_scrolls_before(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": 375, "height": 740}) as page:
        overflow = "(() => { const box = document.querySelector('#message'); return OVER; })()"
        overflow = overflow.replace("OVER", "box.scrollHeight - box.clientHeight")
        one = box(page, "#message")["height"]
        assert one == 48
        assert page.evaluate(overflow) == 0
        page.fill("#message", "word " * 24)
        assert box(page, "#message")["height"] > one + 30
        assert page.evaluate(overflow) == 0
        page.fill("#message", "word " * 400)
        assert box(page, "#message")["height"] == 160
        page.fill("#message", "")
        assert box(page, "#message")["height"] == one


def test_who_reads_further_up_is_led_to_new_words_and_ones_own_are_in_sight(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": 1280, "height": 600}) as page:
        link = steps.start(page, server)
        turns(link, 30)
        expect(page.locator(".line")).to_have_count(30)
        expect(page.locator("#newest")).to_be_hidden()
        page.evaluate("document.querySelector('#captions').scrollTop = 0")
        link.send(steps.message("n1", "assistant", "m29", [{"type": "text", "text": "News."}]))
        expect(page.locator("#newest")).to_be_visible()
        page.click("#newest")
        expect(page.locator("#newest")).to_be_hidden()
        expect(page.locator(".line").last).to_be_in_viewport()
        page.evaluate("document.querySelector('#captions').scrollTop = 0")
        page.fill("#message", "Hello")
        page.press("#message", "Enter")
        link.send(steps.message("n2", "user", "n1", [{"type": "input_text", "text": "Hello"}]))
        expect(page.locator(".line").last).to_be_in_viewport()


def test_a_call_has_a_heading_and_its_lines_are_a_list(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        turns(link, 2)
        expect(page.get_by_role("heading", level=1)).to_have_text("Conversation with Guide")
        expect(page.get_by_role("heading")).to_have_count(1)
        expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(2)


def test_on_paper_there_is_all_that_was_said_and_nothing_to_press(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport={"width": 800, "height": 600}) as page:
        link = steps.start(page, server)
        turns(link, 40)
        expect(page.locator(".line")).to_have_count(40)
        page.emulate_media(media="print")
        assert box(page, "#captions")["height"] > 1500
        for name in ("#stage", "#composer", ".links"):
            expect(page.locator(name)).to_be_hidden()
