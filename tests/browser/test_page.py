"""What the page shows and does, in a real browser, against a server that the test moves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, expect

from tests.browser import steps
from tests.browser.browser import heard, microphone_flags, open_page, pcm16, tone, wait_tap
from tests.browser.scripted import ASSISTANT, ScriptedServer
from voiceapp.protocol.page import CloseCode

FAKE = microphone_flags(None)
DESKTOP = {"width": 1280, "height": 800}


def test_a_turn_from_talk_to_the_answer(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE, viewport=DESKTOP) as page:
        expect(page.locator("#status-word")).to_have_text("Ready")
        page.click("#talk")
        expect(page.locator("#status-word")).to_have_text("Connecting")
        link = server.link()
        assert link.start["type"] == "session.start"
        assert link.start["assistant"] == "guide"
        assert "resume" not in link.start
        starting = {"code": "upstream_starting", "message": "The models are loading…", "level": "info"}
        link.send({"type": "notice", **starting})
        expect(page.locator("#hint")).to_have_text("The models are loading…")
        link.ready()
        expect(page.locator("#status-word")).to_have_text("Listening")
        wait_tap(page)
        link.wait_frames(20)
        steps.user(link, "u1", None)
        expect(page.locator("#status-word")).to_have_text("Thinking")
        expect(page.locator(".line.user .dots")).to_be_visible()
        steps.answer(link, "a1", "u1", "It is noon.", 1.2)
        expect(page.locator("#status-word")).to_have_text("Speaking")
        steps.transcribe(link, "u1", "What time is it?")
        expect(page.locator(".line .said")).to_have_text(["What time is it?", "It is noon."])
        link.send({"type": "response.output_audio.done", "item_id": "a1"})
        link.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})
        expect(page.locator("#status-word")).to_have_text("Listening")
        # How long it took is for those who ask.
        expect(page.locator(".line.assistant .meta")).to_be_hidden()
        page.keyboard.press("?")
        page.get_by_label("Show timings").check()
        page.keyboard.press("Escape")
        meta = page.locator(".line.assistant .meta").inner_text()
        found = re.fullmatch(r"answered in (\d\.\d\d) s, (\d\.\d\d) s after your last word", meta)
        assert found, meta
        assert 0 < float(found[1]) < float(found[2]) < 9
        # What one hears anyhow is not said by a screen reader as well.
        assert page.locator("#announcer").inner_text().split() == ["Listening"]


def test_unheard_words_are_struck(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        wait_tap(page)
        steps.user(link, "u1", None)
        steps.answer(link, "a1", "u1", "One two three four five.", 5)
        expect(page.locator("#status-word")).to_have_text("Speaking")
        link.send({"type": "audio.cut", "item_id": "a1"})
        link.wait_text(lambda text: text.get("final") is True)
        link.send(
            {"type": "conversation.item.truncated", "item_id": "a1", "content_index": 0, "audio_end_ms": 900}
        )
        link.send({"type": "caption.heard", "item_id": "a1", "heard_text": "One two", "cut_ms": 900})
        cancelled = {"id": "resp_1", "status": "cancelled", "status_details": {"reason": "turn_detected"}}
        link.send({"type": "response.done", "response": cancelled})
        expect(page.locator(".line.assistant del")).to_have_text("three four five.")
        expect(page.locator(".line.assistant .said")).to_have_text("One two three four five.")
        expect(page.locator(".line.assistant .meta")).to_contain_text("interrupted after 0.90 s")
        expect(page.locator("#status-word")).to_have_text("Listening")
        expect(page.locator(".notice")).to_have_count(0)


def test_markup_and_controls_in_what_is_said_are_text(playwright: Playwright, server: ScriptedServer) -> None:
    nasty = "<img src=x onerror=\"document.title='owned'\"> \u202eevil\u0000 =cmd()"
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        steps.user(link, "u1", None)
        steps.transcribe(link, "u1", nasty)
        expect(page.locator(".line.user .said")).to_contain_text("<img src=x")
        link.send({"type": "notice", "code": "n", "message": nasty, "level": "warning"})
        expect(page.locator(".notice")).to_contain_text("<img src=x")
        assert page.locator(".captions img, .cards img").count() == 0
        assert "owned" not in page.title()
        assert page.locator(".said").evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"


def test_text_works_without_a_microphone(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=["--deny-permission-prompts"]) as page:
        page.fill("#message", "Hello there")
        page.press("#message", "Enter")
        link = server.link()
        link.ready()
        created = link.wait_type("conversation.item.create")
        assert created["item"]["content"] == [{"type": "input_text", "text": "Hello there"}]
        link.wait_type("response.create")
        link.send(steps.message("u1", "user", None, [{"type": "input_text", "text": "Hello there"}]))
        link.send(steps.message("a1", "assistant", "u1", []))
        link.send({"type": "response.output_text.delta", "item_id": "a1", "delta": "Good day."})
        expect(page.locator(".line .said")).to_have_text(["Hello there", "Good day."])
        expect(page.locator(".notice")).to_have_count(0)
        assert link.frames == []


def test_keys_of_an_input_method_neither_send_nor_stop(
    playwright: Playwright, server: ScriptedServer
) -> None:
    """Safari tells of the Enter that completes a word after the word is complete."""
    press = """(init) => {
      const box = document.querySelector('#message');
      const event = new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...init});
      box.dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    with open_page(playwright, server.url, flags=["--deny-permission-prompts"]) as page:
        page.fill("#message", "こんにちは")
        for said in ({"keyCode": 229}, {"isComposing": True}, {"isComposing": True, "keyCode": 229}):
            assert page.evaluate(press, {"key": "Enter", **said}) is False
            expect(page.locator("#message")).to_have_value("こんにちは")
        assert server.links == []
        page.press("#message", "Enter")
        link = server.link()
        link.ready()
        created = link.wait_type("conversation.item.create")
        assert created["item"]["content"] == [{"type": "input_text", "text": "こんにちは"}]
        steps.answer(link, "a1", "", "A long story.", 10)
        expect(page.locator(".line .said")).to_have_text(["A long story."])
        page.evaluate(press, {"key": "Escape", "keyCode": 229})
        page.fill("#message", "Go on")
        page.press("#message", "Enter")
        link.wait_text(lambda text: "Go on" in str(text))
        # The text that was typed stops the answer, once; the input method's Escape did not.
        assert len([text for text in link.texts if text["type"] == "output_audio_buffer.clear"]) <= 1


def test_escape_stops_the_answer(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        wait_tap(page)
        steps.answer(link, "a1", "", "A long story.", 10)
        link.wait_text(lambda text: text.get("played_ms", 0) >= 200)
        page.keyboard.press("Escape")
        link.wait_type("output_audio_buffer.clear")
        # What to cut, and whether, is the server's decision.
        assert not link.finals()
        link.send({"type": "audio.cut", "item_id": "a1"})
        link.wait_text(lambda text: text.get("final") is True)
        quiet_from = heard(page).bounds()[1]
        page.wait_for_timeout(300)
        assert heard(page).bounds()[1] == quiet_from


def test_a_broken_line_is_resumed_without_loss(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        wait_tap(page)
        steps.answer(link, "a1", "", "Before the break.", 1)
        expect(page.locator(".line .said")).to_have_text("Before the break.")
        link.wait_frames(1)
        server.refuse = True
        link.abort()
        expect(page.locator("#status-word")).to_have_text("Reconnecting")
        page.wait_for_timeout(600)
        # What is spoken from now on is silence, and then nothing: only what was kept is left to come.
        page.click("#mute")
        page.wait_for_timeout(2000)
        server.refuse = False
        again = server.link(1)
        assert again.start["resume"]["session_id"] == "3f0c2d44-0000-4000-8000-000000000001"
        resumed = int(again.start["resume"]["seq"])
        assert resumed == link.seq
        again.send(
            {"type": "session.resumed", "session_id": "s", "seq": resumed, "lost": False}, numbered=False
        )
        again.seq = resumed
        again.send_audio(0, pcm16(tone(24000, 0.5)))
        again.send(
            {"type": "response.output_audio_transcript.delta", "item_id": "a1", "delta": " And after."}
        )
        again.send({"type": "response.output_audio.done", "item_id": "a1"})
        final = again.wait_text(lambda text: text.get("final") is True)
        assert final["played_ms"] == 1500
        expect(page.locator(".line .said")).to_have_text("Before the break. And after.")
        # Half a second of speech at least was kept during the break.
        assert any(any(frame) for frame in again.wait_frames(25))


def test_every_close_is_told_in_words_and_leads_on(playwright: Playwright, server: ScriptedServer) -> None:
    titles = set()
    others = (CloseCode.ENDED, CloseCode.FAULT, CloseCode.STOPPING)
    codes = [code.value for code in CloseCode if code not in others and not code.resumable]
    with open_page(playwright, server.url, flags=FAKE) as page:
        for number, code in enumerate(codes):
            page.click("#talk")
            link = server.link(number)
            link.ready()
            expect(page.locator("#status-word")).to_have_text("Listening")
            link.close(code)
            expect(page.locator("#stage")).to_have_attribute("data-status", "failed")
            said = page.locator("#status-word").inner_text()
            assert page.locator("#alert").inner_text().startswith(said)
            titles.add(said)
    assert len(titles) == len(codes)
    assert not titles & {"Failed", "Listening"}


def test_a_refusal_says_what_the_server_knows(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        page.click("#talk")
        link = server.link()
        words = "The service refused the key. Check AZURE_OPENAI_API_KEY."
        link.send({"type": "session.ended", "reason": "upstream_refused", "code": "c", "message": words})
        link.close(4011, "upstream_refused")
        expect(page.locator("#status-word")).to_have_text("The voice service cannot be used")
        expect(page.locator("#hint")).to_have_text(words)
        expect(page.locator(".notice")).to_have_count(0)


def test_hanging_up_ends_it_and_the_next_one_starts_clean(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        steps.answer(link, "a1", "", "Old words.", 0.2)
        expect(page.locator(".line")).to_have_count(1)
        page.click("#hangup")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        expect(page.locator(".line")).to_have_count(1)
        page.click("#talk")
        link.wait_type("session.end")
        server.link(1).ready()
        expect(page.locator("#status-word")).to_have_text("Listening")
        expect(page.locator(".line")).to_have_count(0)


def test_sound_that_the_device_paused_is_resumed_by_a_tap(
    playwright: Playwright, server: ScriptedServer
) -> None:
    script = """
    const Real = AudioContext;
    window.made = [];
    window.AudioContext = class extends Real { constructor(options) { super(options); made.push(this); } };
    """
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        link = steps.start(page, server)
        wait_tap(page)
        link.item(0, "a1")
        link.send_audio(0, pcm16(tone(24000, 3)))
        link.wait_text(lambda text: text.get("played_ms", 0) >= 500)
        # A context that will not come back, as on a phone after a call.
        page.evaluate("() => { made[0].resume = () => new Promise(() => {}); return made[0].suspend(); }")
        expect(page.locator("#talk")).to_have_text("Tap to resume")
        page.click("#talk")
        expect(page.locator("#status-word")).to_have_text("Speaking")
        link.send({"type": "response.output_audio.done", "item_id": "a1"})
        final = link.wait_text(lambda text: text.get("final") is True)
        assert final["played_ms"] == 3000
        assert page.evaluate("made.length") == 2
        before = len(link.frames)
        link.wait_frames(before + 20)


def test_only_with_several_assistants_there_is_a_choice(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        expect(page.locator("#picker")).to_be_hidden()
    two = ScriptedServer([ASSISTANT, {**ASSISTANT, "slug": "coach", "name": "Coach"}])
    with open_page(playwright, two.url, flags=FAKE) as page:
        page.select_option("#assistant", "coach")
        page.click("#talk")
        assert two.link().start["assistant"] == "coach"
        expect(page.locator("#assistant")).to_be_disabled()
    two.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(320, 480), (375, 740), (768, 1024), (1280, 720)])
def test_nothing_is_cut_off_and_text_has_contrast(
    playwright: Playwright, server: ScriptedServer, width: int, height: int, scheme: str
) -> None:
    view = {"width": width, "height": height}
    with open_page(playwright, server.url, flags=FAKE, viewport=view, color_scheme=scheme) as page:
        link = steps.start(page, server)
        steps.user(link, "u1", None)
        steps.transcribe(link, "u1", "W" * 200)
        link.send({"type": "notice", "code": "n", "message": "Something to know.", "level": "warning"})
        expect(page.locator(".notice")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for name in ("#mute", "#interrupt", "#hangup", "#message", ".send"):
            box = page.locator(name).bounding_box()
            assert box, name
            assert 0 <= box["x"] <= width - box["width"], name
            assert box["y"] + box["height"] <= view["height"], name
            assert round(box["height"], 1) >= 44, name
        faint = page.evaluate(Path(__file__).with_name("contrast.js").read_text())
        assert faint == []


def test_movement_stops_for_those_who_ask(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE, reduced_motion="reduce") as page:
        page.wait_for_timeout(600)
        first = page.locator("#rings").screenshot()
        page.wait_for_timeout(600)
        assert page.locator("#rings").screenshot() == first


CHOIR = [
    {**ASSISTANT, "voice": "alloy", "voices": ["alloy", "verse"]},
    {**ASSISTANT, "slug": "bob", "name": "Bob", "voice": "", "voices": []},
]


def test_another_assistant_is_offered_in_a_new_session_that_knows_what_was_said(
    playwright: Playwright,
) -> None:
    server = ScriptedServer(CHOIR)
    try:
        with open_page(playwright, server.url, flags=FAKE, viewport=DESKTOP) as page:
            link = steps.start(page, server)
            assert link.start["voice"] == "alloy"
            steps.user(link, "u1", None)
            steps.transcribe(link, "u1", "My name is Ada.")
            page.select_option("#assistant", "bob")
            expect(page.locator(".notice")).to_contain_text("Continue with Bob in a new session?")
            page.click("text=Stay")
            expect(page.locator(".notice")).to_have_count(0)
            expect(page.locator("#assistant")).to_have_value("guide")
            page.select_option("#voice", "verse")
            expect(page.locator(".notice")).to_contain_text("the voice “verse”")
            page.select_option("#assistant", "bob")
            expect(page.locator("#voice-picker")).to_be_hidden()
            page.click(".notice button:has-text('Continue')")
            link.wait_type("session.end")
            second = server.link(1)
            assert second.start["continue"] == "3f0c2d44-0000-4000-8000-000000000001"
            assert second.start["assistant"] == "bob"
            assert "voice" not in second.start
            second.ready(session_id="3f0c2d44-0000-4000-8000-000000000002",
                         assistant={"slug": "bob", "name": "Bob"})  # fmt: skip
            past = {"item_id": "u1", "previous_item_id": None, "role": "user", "text": "My name is Ada.",
                    "transcript_status": "completed", "modality": "audio", "speaker": "Guide"}  # fmt: skip
            second.send({"type": "session.history", "items": [past]})
            expect(page.locator(".line.earlier .said")).to_have_text("My name is Ada.")
            expect(page.locator(".divider")).to_have_text("Earlier")
            expect(page.locator("#status-word")).to_have_text("Listening")
            second.wait_frames(5)
    finally:
        server.close()


def test_a_past_conversation_is_continued_with_the_first_press(
    playwright: Playwright, server: ScriptedServer
) -> None:
    server.continues = {"id": "3f0c2d44-0000-4000-8000-000000000009", "assistant": "guide"}
    with open_page(playwright, server.url, flags=FAKE) as page:
        page.click("#talk")
        link = server.link()
        assert link.start["continue"] == server.continues["id"]
        link.close(4004, "session_not_found")
        expect(page.locator("#status-word")).to_have_text("That cannot be continued")
        page.click("#talk")
        assert "continue" not in server.link(1).start


def test_limits_are_unknown_until_the_service_tells_them(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        expect(page.locator("#usage")).to_be_hidden()
        link = steps.start(page, server, upstream="azure-ga")
        page.click("#usage summary")
        expect(page.locator("#requests-left")).to_have_text("unknown")
        expect(page.locator("#tokens-left")).to_have_text("unknown")
        limits = [{"name": "tokens", "limit": 40000, "remaining": 0, "reset_seconds": 9}]
        link.send({"type": "rate_limits.updated", "rate_limits": limits})
        expect(page.locator("#tokens-left")).to_have_text("0 of 40,000")
        expect(page.locator("#requests-left")).to_have_text("unknown")


def test_where_there_are_no_limits_nothing_is_said_of_them(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server, upstream="embedded")
        expect(page.locator("#status-word")).to_have_text("Listening")
        expect(page.locator("#usage")).to_be_hidden()
        limits = [{"name": "requests", "limit": 50, "remaining": 49, "reset_seconds": 9}]
        link.send({"type": "rate_limits.updated", "rate_limits": limits})
        page.click("#usage summary")
        expect(page.locator("#requests-left")).to_have_text("49 of 50")
        expect(page.locator("#tokens-left")).to_have_text("unknown")


def test_a_call_that_is_handed_over_shows_who_speaks(playwright: Playwright) -> None:
    server = ScriptedServer(CHOIR)
    try:
        with open_page(playwright, server.url, flags=FAKE) as page:
            link = steps.start(page, server)
            steps.user(link, "u1", None)
            steps.answer(link, "a1", "u1", "I will put you through.", 0.2)
            told = {"slug": "bob", "name": "Bob"}
            detection = {"type": "server_vad"}
            link.send({"type": "session.assistant", "assistant": told, "turn_detection": detection})
            expect(page.locator("#assistant")).to_have_value("bob")
            expect(page.locator("#voice-picker")).to_be_hidden()
            link.send(steps.message("a2", "assistant", "a1", [{"type": "output_text", "text": "Bob here."}]))
            expect(page.locator(".line.assistant .who")).to_have_text(["Guide", "Bob"])
            expect(page.locator(".notice")).to_have_count(0)
    finally:
        server.close()
