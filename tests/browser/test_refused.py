"""A page whose socket the server refuses says why, and at once: the real server and a real browser."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Page, Playwright, expect

from tests.browser.browser import microphone_flags, open_page
from tests.browser.network import Network
from tests.parts.servers import Server

FAKE = microphone_flags(None)
REFUSED_S = 4
"""Long before the page would have given up a network that is away."""


def talk_and_read(page: Page, title: str) -> float:
    """Begin to talk; return after how many seconds the page shows a title."""
    began = time.monotonic()
    page.click("#talk")
    expect(page.locator("#status-word")).to_have_text(title, timeout=20_000)
    return time.monotonic() - began


def test_a_page_whose_sign_in_is_over_says_so_and_blames_no_network(
    playwright: Playwright, product: Server
) -> None:
    with open_page(playwright, product.link, flags=FAKE) as page:
        expect(page.locator("#status-word")).to_have_text("Ready")
        page.context.clear_cookies()
        assert talk_and_read(page, "You are not signed in") < REFUSED_S
        expect(page.locator("#hint")).to_contain_text("sign in again")


def test_a_page_behind_a_proxy_that_renames_the_host_says_so_and_the_log_names_the_setting(
    playwright: Playwright, network: Network, product: Server
) -> None:
    between = network.proxy(product.url, renames=True)
    here = f"http://127.0.0.1:{between.port}"
    # Signed in past the proxy, through which Django takes no form either; cookies are for all ports.
    with open_page(playwright, product.link, flags=FAKE) as page:
        page.goto(here)
        expect(page.locator("#status-word")).to_have_text("Ready")
        assert talk_and_read(page, "This address may not be used") < REFUSED_S
    log = Path(product.log.name).read_text()
    assert log.count("foreign_origin") == 1
    assert here in log
    assert "VOICEAPP_TRUSTED_ORIGINS" in log


def test_a_page_whose_server_is_away_blames_the_network(playwright: Playwright, product: Server) -> None:
    with open_page(playwright, product.link, flags=FAKE) as page:
        expect(page.locator("#status-word")).to_have_text("Ready")
        product.stop()
        talk_and_read(page, "The connection failed")
        expect(page.locator("#hint")).to_contain_text("Check your network")
