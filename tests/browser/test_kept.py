"""Pages of kept conversations, and those that cannot be shown, at every width."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser.browser import open_page
from tests.browser.product import running_product
from tests.parts.waits import PATIENCE_S

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
TITLES = ("Hello, can you hear me clearly?" + " And then some more." * 5, "W" * 120)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_product(tmp_path_factory.mktemp("data")) as running:
        yield running


def _fits(page: Page, name: str) -> None:
    for width in (320, 375, 1280):
        page.set_viewport_size({"width": width, "height": 740})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") == width, (name, width)
            assert page.evaluate(CONTRAST) == [], (name, width, scheme)
            if folder := os.environ.get("SCREENSHOTS"):
                page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png")


def test_long_titles_fit_the_narrowest_screen(playwright: Playwright, link: str) -> None:
    root = link.split("/signin/")[0]
    with open_page(playwright, link, flags=["--deny-permission-prompts"]) as page:
        for title in TITLES:
            page.goto(f"{root}/")
            page.fill("#message", title)
            page.press("#message", "Enter")
            expect(page.locator(".line.user .said")).to_have_text(title)
            page.click("#hangup")
            expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        page.goto(f"{root}/sessions/")
        end = time.monotonic() + PATIENCE_S
        # The last one ended as its page went, and is written meanwhile.
        while page.locator(".history li").count() < 2:
            assert time.monotonic() < end
            page.reload()
        expect(page.locator(".history li")).to_have_count(2)
        expect(page.locator(".history-meta").first).to_contain_text("1 message from you")
        _fits(page, "sessions")
        page.set_viewport_size({"width": 375, "height": 740})
        for again in page.locator(".again").all():
            box = again.bounding_box()
            assert box
            assert box["x"] + box["width"] <= 375
        page.click(".history a >> nth=0")
        expect(page.locator(".script .said").first).to_have_text(TITLES[1])
        _fits(page, "session")
        page.goto(f"{root}/sessions/no-such-session/")
        expect(page.locator("h1")).to_have_text("There is no such page")
        _fits(page, "not-found")
        page.click("text=Back to the start")
        expect(page.locator("#talk")).to_be_visible()
