"""What the page says of words that nobody may have spoken, and of answers that were stopped."""

from __future__ import annotations

import pytest
from playwright.sync_api import Playwright, expect

from tests.browser import steps
from tests.browser.browser import microphone_flags, open_page
from tests.browser.scripted import ScriptedServer

SCREENS = [({"width": 1280, "height": 800}, "light"), ({"width": 375, "height": 700}, "dark")]


@pytest.mark.parametrize(("screen", "scheme"), SCREENS, ids=["desktop", "phone"])
def test_doubtful_words_and_stopped_answers_are_marked_in_their_place(
    playwright: Playwright, server: ScriptedServer, screen: dict[str, int], scheme: str
) -> None:
    flags = microphone_flags(None)
    with open_page(playwright, server.url, flags=flags, viewport=screen, color_scheme=scheme) as page:
        link = steps.start(page, server)
        steps.user(link, "u1", None)
        steps.transcribe(link, "u1", "Thank you for watching.")
        link.send({"type": "caption.doubtful", "item_id": "u1"})
        expect(page.locator(".line.user .meta")).to_have_text("perhaps nothing was said")
        said = page.locator(".line.user .said")
        ink = "node => getComputedStyle(node).color"
        assert said.evaluate(ink) == page.locator(".line.user .meta").evaluate(ink)
        link.send(steps.message("a1", "assistant", "u1", []))
        link.send({"type": "response.output_text.delta", "item_id": "a1", "delta": "You are"})
        part = {"type": "output_text", "text": "You are"}
        stopped = steps.message("a1", "assistant", "u1", [part])
        stopped["item"]["status"] = "incomplete"
        link.send({**stopped, "type": "conversation.item.done"})
        for code in ("response_stopped", "response_interrupted"):
            notice = {"type": "notice", "code": code, "message": "It was stopped.", "level": "info"}
            link.send(notice)
        expect(page.locator(".line.assistant .meta")).to_have_text("stopped early")
        expect(page.locator(".notice")).to_have_count(0)
