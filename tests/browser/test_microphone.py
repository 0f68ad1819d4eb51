"""The microphone as the page's user meets it: refused, lost, muted, held."""

from __future__ import annotations

import pytest
from playwright.sync_api import Playwright, expect

from tests.browser import steps
from tests.browser.browser import microphone_flags, open_page
from tests.browser.scripted import ASSISTANT, ScriptedServer

FAKE = microphone_flags(None)
BUSY = """
navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotReadableError') };
"""

UNLOADED = """
const add = AudioWorklet.prototype.addModule;
AudioWorklet.prototype.addModule = function addModule(url) {
  return add.call(this, String(url).includes('capture') ? '/away.js' : url);
};
"""


@pytest.mark.parametrize(
    ("flags", "script", "title"),
    [
        (["--use-fake-device-for-media-stream", "--deny-permission-prompts"], "", "blocked for this site"),
        ([], "", "No microphone was found"),
        (FAKE, BUSY, "in use"),
        (FAKE, "Object.defineProperty(window, 'isSecureContext', {value: false})", "secure page"),
        (FAKE, "delete window.AudioWorkletNode", "cannot record"),
        (FAKE, UNLOADED, "could not be loaded"),
    ],
    ids=["denied", "missing", "busy", "insecure", "unsupported", "unloaded"],
)  # fmt: skip
def test_each_microphone_failure_says_what_to_do(
    playwright: Playwright, server: ScriptedServer, flags: list[str], script: str, title: str
) -> None:
    with open_page(playwright, server.url, flags=flags, scripts=[script] if script else []) as page:
        link = steps.start(page, server)
        expect(page.locator(".notice strong")).to_contain_text(title)
        expect(page.locator("#status-word")).to_have_text("Writing")
        page.fill("#message", "Still here")
        page.press("#message", "Enter")
        link.wait_type("conversation.item.create")


def test_a_prompt_that_is_ignored_is_pointed_at(playwright: Playwright, server: ScriptedServer) -> None:
    script = "navigator.mediaDevices.getUserMedia = () => new Promise(() => {})"
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        steps.start(page, server)
        expect(page.locator(".notice strong")).to_contain_text("Waiting for your permission", timeout=9000)


def test_a_lost_microphone_comes_back_within_a_second(playwright: Playwright, server: ScriptedServer) -> None:
    script = """
    const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wanted) => (window.stream = await real(wanted));
    """
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        link = steps.start(page, server)
        link.wait_frames(25)
        page.evaluate(
            "() => { const [track] = stream.getTracks(); track.stop();"
            " track.dispatchEvent(new Event('ended')); }"
        )
        expect(page.locator(".notice")).to_contain_text("Now listening through", timeout=1500)
        before = len(link.frames)
        link.wait_frames(before + 25, timeout_s=2)
        expect(page.locator("#status-word")).to_have_text("Listening")
        assert len(server.links) == 1


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_microphone_that_the_device_switches_off_is_told_and_again_when_it_is_back(
    playwright: Playwright, server: ScriptedServer, from_the_start: bool
) -> None:
    script = """
    const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.off = START;
    Object.defineProperty(MediaStreamTrack.prototype, 'muted', { get: () => window.off });
    window.turn = (off) => {
      window.off = off;
      window.stream.getTracks()[0].dispatchEvent(new Event(off ? 'mute' : 'unmute'));
    };
    navigator.mediaDevices.getUserMedia = async (wanted) => (window.stream = await real(wanted));
    """.replace("START", "true" if from_the_start else "false")
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        steps.start(page, server)
        if not from_the_start:
            expect(page.locator("#status-word")).to_have_text("Listening")
            page.evaluate("turn(true)")
        expect(page.locator(".notice strong")).to_have_text("Your microphone is switched off by the device")
        expect(page.locator("#status-word")).to_have_text("Writing")
        page.evaluate("turn(false)")
        expect(page.locator(".notice")).to_contain_text("Your microphone is switched on again.")
        expect(page.locator("#status-word")).to_have_text("Listening")


def test_a_microphone_that_goes_without_a_word_can_be_tried_again(
    playwright: Playwright, server: ScriptedServer
) -> None:
    """Some browsers leave the track of a device that was unplugged as it was."""
    script = """
    const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    const wait = window.setTimeout.bind(window);
    window.setTimeout = (run, ms, ...rest) => wait(run, [700, 1500, 3000].includes(ms) ? 50 : ms, ...rest);
    navigator.mediaDevices.getUserMedia = async (wanted) => {
      if (window.gone) throw new DOMException('', 'NotFoundError');
      return real(wanted);
    };
    const list = navigator.mediaDevices.enumerateDevices.bind(navigator.mediaDevices);
    navigator.mediaDevices.enumerateDevices = async () => (window.gone ? [] : list());
    """
    with open_page(playwright, server.url, flags=FAKE, scripts=[script]) as page:
        link = steps.start(page, server)
        link.wait_frames(10)
        page.evaluate("window.gone = true; navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
        expect(page.locator(".notice strong")).to_have_text("No microphone was found")
        page.evaluate("window.gone = false")
        before = len(link.frames)
        page.get_by_role("button", name="Try again").click()
        link.wait_frames(before + 20)
        expect(page.locator("#status-word")).to_have_text("Listening")


def test_muted_means_silence_and_then_nothing(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server)
        link.wait_frames(20)
        page.click("#mute")
        expect(page.locator("#status-word")).to_have_text("Muted")
        expect(page.locator("#mute")).to_have_attribute("aria-pressed", "true")
        page.wait_for_timeout(2000)
        at_rest = len(link.frames)
        assert all(frame == bytes(960) for frame in link.frames[-70:])
        page.wait_for_timeout(300)
        assert len(link.frames) == at_rest
        page.click("#mute")
        link.wait_frames(at_rest + 10)


TAP = """() => {
  for (const kind of ['keydown', 'keyup']) {
    const options = { key: ' ', code: 'Space', bubbles: true, cancelable: true };
    document.body.dispatchEvent(new KeyboardEvent(kind, options));
  }
}"""


def test_hold_to_talk_by_space_bar_and_a_tap_is_dropped(playwright: Playwright) -> None:
    server = ScriptedServer([{**ASSISTANT, "push_to_talk": True}])
    with open_page(playwright, server.url, flags=FAKE) as page:
        link = steps.start(page, server, turn_detection=None)
        expect(page.locator("#talk")).to_have_text("Hold")
        expect(page.locator("#mute")).to_be_enabled()
        page.wait_for_timeout(300)
        assert link.frames == []
        page.evaluate("document.activeElement.blur()")
        # In one turn of the page: how long the driver takes between two keys depends on the machine.
        page.evaluate(TAP)
        expect(page.locator(".notice")).to_contain_text("too short")
        assert link.frames == []
        assert not any(text["type"] == "input_audio_buffer.commit" for text in link.texts)
        page.keyboard.down(" ")
        expect(page.locator("#status-word")).to_have_text("Listening")
        link.wait_frames(20)
        page.keyboard.up(" ")
        link.wait_type("input_audio_buffer.commit")
        link.wait_type("response.create")
        expect(page.locator("#status-word")).to_have_text("Thinking")
        sent = len(link.frames)
        page.wait_for_timeout(200)
        assert len(link.frames) == sent
    server.close()
