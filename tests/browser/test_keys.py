"""The page by keyboard: where its place is, what single keys do, and a call that ended by a slip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Playwright, expect

from tests.browser import steps
from tests.browser.browser import heard, microphone_flags, open_page, pcm16, tone, wait_tap
from tests.browser.scripted import ASSISTANT, ScriptedServer

FAKE = microphone_flags(None)


@pytest.fixture
def walkie() -> Iterator[ScriptedServer]:
    """A server whose assistant waits for a button."""
    with ScriptedServer([{**ASSISTANT, "push_to_talk": True}]) as running:
        yield running


def test_a_second_press_of_the_key_that_began_a_call_does_not_end_it(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        page.locator("#talk").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#mute")).to_be_focused()
        server.link().ready()
        expect(page.locator("#status-word")).to_have_text("Listening")
        expect(page.locator("#mute")).to_be_focused()
        page.keyboard.press("Space")
        expect(page.locator("#status-word")).to_have_text("Muted")
        expect(page.locator("#mute")).to_have_accessible_name("Mute")
        page.keyboard.press("m")
        expect(page.locator("#status-word")).to_have_text("Listening")
        page.keyboard.press("Tab")
        expect(page.locator("#interrupt")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        expect(page.locator("#talk")).to_be_focused()


def test_the_space_bar_talks_where_the_page_put_the_keyboard_and_presses_what_tab_chose(
    playwright: Playwright, walkie: ScriptedServer
) -> None:
    with open_page(playwright, walkie.url, flags=FAKE) as page:
        page.locator("#talk").focus()
        page.keyboard.press("Space")
        link = walkie.link()
        link.ready(turn_detection=None)
        expect(page.locator("#talk")).to_have_text("Hold")
        expect(page.locator("#talk")).to_be_focused()
        # A pointer leaves the keyboard on a button of the call: it still talks.
        for name in ("#talk", "#mute", "#hangup", "#settings-open"):
            page.evaluate("name => document.querySelector(name).focus()", name)
            page.keyboard.down(" ")
            expect(page.locator("#status-word")).to_have_text("Listening")
            page.keyboard.up(" ")
            expect(page.locator("#status-word")).not_to_have_text("Listening")
            expect(page.locator("#settings")).to_be_hidden()
        page.evaluate("document.querySelector('#talk').focus()")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(page.locator("#mute")).to_have_attribute("aria-pressed", "true")
        assert link.open
        assert not any(text["type"] == "session.end" for text in link.texts)


def test_a_call_that_ended_by_a_slip_is_taken_back_where_it_was(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        wait_tap(page)
        link.item(0, "a1")
        link.send_audio(0, pcm16(tone(24000, 3)))
        link.wait_text(lambda text: text.get("played_ms", 0) >= 300)
        page.click("#hangup")
        expect(page.locator(".notice")).to_contain_text("Call ended.")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        page.wait_for_timeout(300)
        frames, sound = len(link.frames), heard(page).samples.size
        page.wait_for_timeout(500)
        assert len(link.frames) == frames, "the microphone is off"
        assert heard(page).samples.size == sound, "the sound is off"
        page.click("text=Take it back")
        expect(page.locator("#mute")).to_be_focused()
        link.send({"type": "response.output_audio.done", "item_id": "a1"})
        final = link.wait_text(lambda text: text.get("final") is True)
        assert final["played_ms"] == 3000
        link.wait_frames(frames + 20)
        expect(page.locator("#status-word")).to_have_text("Listening")
        assert len(server.links) == 1
        page.click("#hangup")
        link.wait_type("session.end")
        expect(page.locator(".notice")).to_have_count(0)


def test_a_page_that_closes_after_hanging_up_ends_the_session_at_once(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        expect(page.locator("#status-word")).to_have_text("Listening")
        page.click("#hangup")
        page.goto("about:blank")
        link.wait_type("session.end", timeout_s=3)


def test_single_keys_act_until_they_are_switched_off_for_good(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        page.keyboard.press("/")
        expect(page.locator("#message")).to_be_focused()
        page.keyboard.type("m/?")
        expect(page.locator("#message")).to_have_value("m/?")
        page.locator("#talk").focus()
        page.keyboard.press("?")
        expect(page.locator("#settings")).to_be_visible()
        page.get_by_label("Single keys act").uncheck()
        page.keyboard.press("Escape")
        expect(page.locator("#settings")).to_be_hidden()
        expect(page.locator("#talk")).to_be_focused()
        page.reload()
        page.locator("#talk").focus()
        for key in ("?", "/"):
            page.keyboard.press(key)
        expect(page.locator("#settings")).to_be_hidden()
        expect(page.locator("#talk")).to_be_focused()
        page.click("#settings-open")
        page.get_by_label("Single keys act").check()
        page.get_by_role("button", name="Done").click()
        expect(page.locator("#settings-open")).to_be_focused()
        page.keyboard.press("?")
        expect(page.locator("#settings")).to_be_visible()
