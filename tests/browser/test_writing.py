"""Writing and speaking are two switches of one conversation, and so is the loudspeaker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, expect

from tests.browser import steps
from tests.browser.browser import heard, microphone_flags, open_page, wait_tap
from tests.browser.product import running_product
from tests.browser.scripted import ScriptedServer

FAKE = microphone_flags(None)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("data")
    with running_product(folder) as running:
        yield running


def test_who_begins_to_write_is_answered_in_writing_and_may_speak_in_the_same_conversation(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        expect(page.locator("#sound")).to_be_hidden()
        page.fill("#message", "Hello there")
        page.press("#message", "Enter")
        link = server.link()
        link.ready()
        link.wait_type("response.create")
        kinds = [text["type"] for text in link.texts]
        assert kinds.index("session.output") < kinds.index("conversation.item.create")
        assert link.wait_type("session.output")["audio"] is False
        expect(page.locator("#sound")).to_have_attribute("aria-pressed", "false")
        link.send({"type": "session.output_changed", "audio": False})
        link.send({"type": "response.done", "response": {"id": "r", "status": "completed"}})
        expect(page.locator("#status-word")).to_have_text("Writing")
        assert link.frames == []
        page.click("#talk")
        link.wait_frames(10)
        link.wait_text(lambda text: text["type"] == "session.output" and text["audio"] is True)
        expect(page.locator("#status-word")).to_have_text("Listening")
        expect(page.locator("#sound")).to_have_attribute("aria-pressed", "true")
        assert len(server.links) == 1


def test_the_loudspeaker_switched_off_stops_what_is_said_and_what_comes_is_not_heard(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, bypass_csp=True) as page:
        link = steps.start(page, server)
        wait_tap(page)
        steps.answer(link, "a1", "", "A long story.", 10)
        link.wait_text(lambda text: text.get("played_ms", 0) >= 200)
        page.click("#sound")
        link.wait_type("output_audio_buffer.clear")
        assert link.wait_type("session.output")["audio"] is False
        page.wait_for_timeout(300)
        end = heard(page).bounds()[1]
        page.wait_for_timeout(400)
        sound = heard(page)
        assert sound.samples.size > end
        assert sound.bounds()[1] == end
        page.click("#sound")
        link.wait_text(lambda text: text["type"] == "session.output" and text["audio"] is True)


def test_the_product_answers_in_writing_then_aloud(playwright: Playwright, link: str) -> None:
    with open_page(playwright, link, flags=FAKE, bypass_csp=True) as page:
        page.fill("#message", "What is twelve times eight?")
        page.press("#message", "Enter")
        expect(page.locator(".line.assistant .said")).to_contain_text("96")
        expect(page.locator("#status-word")).to_have_text("Writing")
        wait_tap(page)
        assert not abs(heard(page).samples).max() > 0.001
        page.click("#sound")
        page.fill("#message", "What is twelve times nine?")
        page.press("#message", "Enter")
        expect(page.locator("#status-word")).to_have_text("Speaking")
        expect(page.locator(".line.assistant .said").nth(1)).to_contain_text("108")
        expect(page.locator("#status-word")).to_have_text("Writing")
        assert heard(page).sounding_ms() > 300
