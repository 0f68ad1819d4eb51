"""What a visit of the talking page costs, as Chromium counts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser.browser import open_page
from tests.browser.product import running_product
from tests.parts.places import ROOT
from voiceapp.web.modules import imported_by

MOST_TRANSFERRED_BYTES = 75_000
"""Script and style of a first visit, with their headers."""
MOST_SCRIPT_BYTES = 260_000
"""All that the page may run, unpacked."""


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_product(tmp_path_factory.mktemp("data")) as running:
        yield running


class Counted:
    """Counts what a page asks the server for, by Chromium's own figures."""

    def __init__(self, page: Page) -> None:
        self.asked: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.transferred: dict[str, int] = {}
        devtools = page.context.new_cdp_session(page)
        devtools.on("Network.responseReceived", self._received)
        devtools.on("Network.loadingFinished", self._finished)
        devtools.send("Network.enable")

    def _received(self, told: dict[str, Any]) -> None:
        response = told["response"]
        if response.get("fromDiskCache") or response.get("fromPrefetchCache"):
            return
        self.asked[told["requestId"]] = response["url"]
        self.kinds[told["requestId"]] = told["type"]

    def _finished(self, told: dict[str, Any]) -> None:
        self.transferred[told["requestId"]] = int(told["encodedDataLength"])

    def bytes_of(self, *kinds: str) -> int:
        """Return the bytes that came over the line for files of these kinds."""
        return sum(self.transferred.get(one, 0) for one, kind in self.kinds.items() if kind in kinds)

    def addresses(self) -> list[str]:
        """Return what came over the line, and not from memory or disk."""
        return [url for one, url in self.asked.items() if self.transferred.get(one)]


def test_a_first_visit_is_light_and_a_second_asks_for_the_page_alone(
    playwright: Playwright, link: str
) -> None:
    root = link.split("/signin/")[0]
    with open_page(playwright, link, flags=["--deny-permission-prompts"]) as page:
        # Signing in has shown the page once: forget what was kept of it.
        page.context.new_cdp_session(page).send("Network.clearBrowserCache")
        page.goto("about:blank")
        first = Counted(page)
        page.goto(f"{root}/", wait_until="networkidle")
        expect(page.locator("#talk")).to_be_enabled()
        again = page.context.new_page()
        second = Counted(again)
        again.goto(f"{root}/", wait_until="networkidle")
        expect(again.locator("#talk")).to_be_enabled()
    scripts = [url for url in first.addresses() if url.endswith(".js")]
    assert len(scripts) > 20
    assert len(scripts) == len(set(scripts))
    assert 20_000 < first.bytes_of("Script", "Stylesheet", "Other") <= MOST_TRANSFERRED_BYTES
    assert [url for url in second.addresses() if "/static/" in url] == []
    assert second.addresses() == [f"{root}/"]


def test_the_page_s_script_stays_small() -> None:
    def read(name: str) -> str:
        return (ROOT / "static" / name).read_text()

    names = {one for root in ("app", "audio/capture-worklet", "audio/playback-worklet")
             for one in imported_by(f"voiceapp/{root}.js", read)}  # fmt: skip
    assert sum(len(read(name).encode()) for name in names) <= MOST_SCRIPT_BYTES
