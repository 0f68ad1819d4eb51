"""The page on a bad network: the real server, a real browser, and between them a proxy that misbehaves."""

from __future__ import annotations

import re
import time
from urllib.parse import urlsplit

from playwright.sync_api import Page, Playwright, Route, expect

from tests.browser.browser import enter, heard, microphone_flags, open_page, pcm16, tone, until, wait_tap
from tests.browser.network import Network
from tests.browser.scripted import ScriptedServer
from tests.parts.servers import Server

FAKE = microphone_flags(None)
FASTER = 10
"""The page's patience with a silent line, and its pings, run so many times as fast in these tests."""


def hurry(page: Page) -> None:
    """Let the page's own code lose patience sooner; nothing else of it is changed."""

    def answer(route: Route) -> None:
        source = route.fetch().text()
        for name in ("PING_MS", "DEAD_MS"):
            source, count = re.subn(
                rf"(\b{name}\s*=\s*)(\d+);", lambda found: f"{found[1]}{int(found[2]) // FASTER};", source
            )
            assert count == 1
        route.fulfill(body=source, content_type="text/javascript")

    page.route(re.compile(r"/realtime/socket(\.[0-9a-f]+)?\.js$"), answer)


def test_a_line_that_dies_without_a_word_in_mid_answer_loses_and_repeats_nothing(
    playwright: Playwright, network: Network, product: Server
) -> None:
    between = network.proxy(product.url)
    upstream = network.service
    with open_page(playwright, "about:blank", flags=FAKE, bypass_csp=True) as page:
        hurry(page)
        enter(page, f"http://127.0.0.1:{between.port}{urlsplit(product.link).path}")
        page.click("#talk")
        expect(page.locator("#status-word")).to_have_text("Listening")
        wait_tap(page)
        until(page, "document.querySelector('#level').style.getPropertyValue('--level') !== ''")
        began = time.monotonic() - len(upstream.audio) / 48_000
        network.run(upstream.begin_answer())
        network.run(upstream.say("One two", pcm16(tone(24000, 2))))
        expect(page.locator("#status-word")).to_have_text("Speaking")
        network.call(between.freeze)
        died = len(upstream.audio)
        # The service goes on, and so does whoever speaks.
        network.run(upstream.say(" three four.", pcm16(tone(24000, 2))))
        network.run(upstream.end_answer("One two three four."))
        expect(page.locator("#status-word")).to_have_text("Reconnecting")
        assert len(upstream.audio) - died <= 48_000 * 0.3, "nothing comes through a dead line"
        network.call(between.thaw)
        expect(page.locator("#status-word")).not_to_have_text("Reconnecting")
        expect(page.locator(".line.assistant .said")).to_have_text("One two three four.")
        expect(page.locator("#status-word")).to_have_text("Listening")
        assert upstream.connections == 1
        expect(page.locator(".notice")).to_have_count(0)
        expect(page.locator(".line.assistant")).to_have_count(1)
        # What was said meanwhile came, all of it and once.
        spoken = len(upstream.audio) / 48_000
        passed = time.monotonic() - began
        assert passed - 0.7 <= spoken <= passed + 0.3
        # The recorder hands over what it has in parts.
        page.wait_for_timeout(300)
        sound = heard(page)
        hundredth = sound.rate_hz // 100
        parts = abs(sound.samples[: len(sound.samples) // hundredth * hundredth]).reshape(-1, hundredth)
        loud_ms = int((parts.max(axis=1) > 0.02).sum()) * 10
        assert 3950 <= loud_ms <= 4050
        page.click("#hangup")


def test_a_quiet_page_stays_connected_through_a_proxy_that_closes_idle_lines(
    playwright: Playwright, network: Network, server: ScriptedServer
) -> None:
    # Faster by as much as the pings: after six seconds for the sixty of the world.
    between = network.proxy(server.url, idle_s=60 / FASTER / 4)
    with open_page(playwright, "about:blank", flags=FAKE) as page:
        hurry(page)
        page.goto(f"http://127.0.0.1:{between.port}/")
        page.fill("#message", "I only type.")
        page.press("#message", "Enter")
        link = server.link()
        link.ready()
        expect(page.locator("#status-word")).to_have_text("Thinking")
        # Twice as long as the proxy waits.
        page.wait_for_timeout(3000)
        assert link.open
        assert len(server.links) == 1
        assert sum(text["type"] == "ping" for text in link.texts) >= 4
        assert not link.frames
