"""A call goes on: after its page was loaded anew, beside what is looked up, and after it ended."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Playwright, expect

from tests.browser import steps
from tests.browser.browser import microphone_flags, open_page, pcm16, tone, wait_tap
from tests.browser.scripted import Link, ScriptedServer

FAKE = microphone_flags(None)
SESSION = "3f0c2d44-0000-4000-8000-000000000001"


def come_back(server: ScriptedServer, before: Link, number: int = 1) -> Link:
    """Let the page's next socket resume the session."""
    again = server.link(number)
    assert again.start["resume"]["session_id"] == SESSION
    seq = int(again.start["resume"]["seq"])
    assert seq == before.seq
    frames = int(again.start["resume"]["frames"])
    assert frames >= 0
    back: dict[str, Any] = {"type": "session.resumed", "session_id": SESSION, "seq": seq, "lost": False}
    again.send({**back, "frames": frames, "moved": False}, numbered=False)
    again.seq = seq
    return again


def said(page: Page, link: Link) -> None:
    steps.user(link, "u1", None)
    steps.transcribe(link, "u1", "What time is it?")
    expect(page.locator(".line .said")).to_have_text(["What time is it?"])


def test_a_page_that_is_loaded_anew_goes_on_where_it_was(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE, permissions=["microphone"]) as page:
        link = steps.start(page, server)
        wait_tap(page)
        said(page, link)
        steps.answer(link, "a1", "u1", "It is noon and more.", 8)
        link.wait_text(lambda text: text.get("played_ms", 0) >= 300)
        page.reload()
        assert not any(text["type"] == "session.end" for text in link.texts)
        # The answer was being heard: it ends here, and what was heard of it is told exactly.
        link.wait_type("output_audio_buffer.clear")
        played = max(text["played_ms"] for text in link.texts if text["type"] == "playback.report")
        again = come_back(server, link)
        again.send({"type": "audio.cut", "item_id": "a1"})
        final = again.wait_text(lambda text: text.get("final") is True)
        assert 300 <= final["played_ms"] == pytest.approx(played, abs=100)
        expect(page.locator(".line .said")).to_have_text(["What time is it?", "It is noon and more."])
        # The browser gives the microphone without asking, so it is on again.
        again.wait_frames(20)
        again.send({"type": "response.done", "response": {"id": "resp_1", "status": "cancelled"}})
        expect(page.locator("#status-word")).to_have_text("Listening")
        again.item(1, "a2")
        again.send_audio(1, pcm16(tone(24000, 0.3)))
        again.send({"type": "response.output_audio.done", "item_id": "a2"})
        again.wait_text(lambda text: text.get("item_id") == "a2" and text.get("final") is True)


def test_where_the_browser_would_ask_for_the_microphone_a_button_goes_on(
    playwright: Playwright, server: ScriptedServer
) -> None:
    script = """
    const query = navigator.permissions.query.bind(navigator.permissions);
    navigator.permissions.query = async (wanted) =>
      wanted.name === 'microphone' ? { state: 'prompt' } : query(wanted);
    """
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        link = steps.start(page, server)
        said(page, link)
        page.click("#mute")
        page.reload()
        again = come_back(server, link)
        again.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})
        expect(page.locator("#talk")).to_have_text("Go on")
        expect(page.locator("#status-word")).to_have_text("Writing")
        assert again.frames == []
        page.click("#talk")
        expect(page.locator("#status-word")).to_have_text("Muted")


def test_what_is_looked_up_in_a_call_opens_beside_it(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        expect(page.locator("#status-word")).to_have_text("Listening")
        with page.context.expect_page() as opened:
            page.click("text=Past conversations")
        assert opened.value.url.endswith("/sessions/")
        assert opened.value.evaluate("window.opener") is None
        opened.value.close()
        frames = len(link.frames)
        link.wait_frames(frames + 10)
        page.click("#hangup")
        page.click("text=Past conversations")
        page.wait_for_url("**/sessions/")
        link.wait_type("session.end")


def test_a_call_that_ended_badly_is_continued_by_the_first_button_and_can_be_read(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        said(page, link)
        link.close(4012, "upstream_lost")
        expect(page.locator("#talk")).to_have_text("Continue")
        expect(page.locator(".notice a")).to_have_attribute("href", f"/sessions/{SESSION}/")
        page.click("#talk")
        second = server.link(1)
        assert second.start["continue"] == SESSION
        second.ready(session_id=SESSION.replace("1", "2"))
        expect(page.locator("#status-word")).to_have_text("Listening")
        second.wait_frames(5)


def test_a_call_that_was_hung_up_can_be_continued_or_left_for_a_new_one(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        said(page, link)
        page.click("#hangup")
        link.wait_type("session.end")
        expect(page.locator("#talk")).to_have_text("Again")
        page.click(".notice button:has-text('Continue')")
        assert server.link(1).start["continue"] == SESSION


def test_a_call_in_another_tab_is_told_of_and_moves_here(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        said(page, link)
        second = page.context.new_page()
        second.goto(server.url)
        second.click("#talk")
        expect(second.locator(".notice")).to_contain_text("You are talking in another tab.")
        second.click("text=Leave it there")
        expect(second.locator(".notice")).to_have_count(0)
        assert len(server.links) == 1
        second.click("#talk")
        second.click("text=Move it here")
        again = come_back(server, link)
        expect(page.locator("#status-word")).to_have_text("Continued in another tab")
        expect(second.locator(".line .said")).to_have_text(["What time is it?"])
        again.wait_frames(10)
        assert not any(text["type"] == "session.end" for text in link.texts)
        # The first tab may talk again once the call is over here.
        second.click("#hangup")
        again.wait_type("session.end")
        page.click("#talk")
        server.link(2).ready()
        expect(page.locator("#status-word")).to_have_text("Listening")


def test_a_server_that_is_restarted_is_tried_until_it_is_back(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        said(page, link)
        server.refuse = True
        link.close(4015, "server_stopped")
        expect(page.locator("#hint")).to_contain_text("once the server is back")
        page.wait_for_timeout(1500)
        server.refuse = False
        second = server.link(1)
        assert second.start["continue"] == SESSION
        second.ready(session_id=SESSION.replace("1", "2"))
        expect(page.locator("#status-word")).to_have_text("Listening")
        second.wait_frames(5)
