"""The self-check in a real browser against the real server: verdicts, sound, and what it tells nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Playwright, expect

from tests.browser.browser import microphone_flags, open_page, until
from tests.browser.network import Network
from tests.parts.servers import Server, signed_in

FAKE = microphone_flags(None)
DENIED = ["--use-fake-device-for-media-stream", "--deny-permission-prompts"]
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
LINES = [
    "Secure page",
    "Browser",
    "Connection",
    "Steady flow",
    "Microphone",
    "Noise around you",
    "Your voice",
    "Echo",
]
WITH_SOUND = LINES[5:]
WATCHED = """
window.asked = 0;
const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (wanted) => { window.asked += 1; return real(wanted); };
"""
ROOM = """
// A quiet room: its microphone hears a hum, the user when asked to speak, and the loudspeaker by ECHO dB.
const Real = AudioContext;
const contexts = [];
window.AudioContext = class extends Real {
  constructor(options) {
    super(options);
    contexts.push(this);
  }
};
const connect = AudioNode.prototype.connect;
let air = null;
AudioNode.prototype.connect = function heard(target, ...rest) {
  const plays = target instanceof AudioDestinationNode && this instanceof AudioBufferSourceNode;
  if (plays && air) connect.call(this, air);
  return connect.call(this, target, ...rest);
};
navigator.mediaDevices.getUserMedia = async () => {
  const context = contexts[0];
  const ears = context.createMediaStreamDestination();
  const source = (hz, level) => {
    const oscillator = new OscillatorNode(context, { frequency: hz });
    const gain = new GainNode(context, { gain: level });
    connect.call(oscillator, gain);
    connect.call(gain, ears);
    oscillator.start();
    return gain;
  };
  source(110, 0.0005);
  const voice = source(220, 0);
  const line = document.querySelectorAll('#lines > li')[6];
  new MutationObserver(() => {
    voice.gain.value = line.dataset.state === 'running' ? 0.2 : 0;
  }).observe(line, { attributes: true });
  air = new GainNode(context, { gain: 10 ** (ECHO / 20) });
  connect.call(air, ears);
  return ears.stream;
};
"""


@dataclass(frozen=True)
class Site:
    """The product, and the cookies of somebody who is signed in."""

    url: str
    state: dict[str, Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The real server. No conversation is held, so its voice service is one that nobody ever calls."""
    chosen = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_DEPLOYMENT": "d"}
    running = Server(
        tmp_path_factory.mktemp("data"), AZURE_OPENAI_ENDPOINT="https://nobody.invalid", **chosen
    )
    try:
        running.wait()
        pairs = [pair.split("=", 1) for pair in signed_in(running.link).split("; ")]
        cookies = [{"name": name, "value": value, "url": running.url} for name, value in pairs]
        for cookie in cookies:
            cookie["domain"], cookie["path"] = urlsplit(cookie.pop("url")).hostname or "", "/"
        yield Site(running.url, {"cookies": cookies, "origins": []})
    finally:
        running.stop()


def line(page: Page, title: str) -> Locator:
    """Return the line of this title."""
    return page.locator("#lines > li").nth(LINES.index(title))


def states(page: Page) -> dict[str, str]:
    """Return what each line is at, by its title."""
    found: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#lines > li')]"
        ".map((line) => [line.querySelector('h2').textContent, line.dataset.state]))"
    )
    return found


def finish(page: Page) -> dict[str, str]:
    """Wait until the check is over; return each line's verdict."""
    expect(page.locator("#start")).to_have_text("Check again")
    return states(page)


def fits(page: Page, name: str) -> None:
    """Look that nothing is cut off or faint, at every width, light and dark."""
    for width in (320, 375, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            assert page.evaluate("document.documentElement.scrollWidth") == width, (name, width)
            assert page.evaluate(CONTRAST) == [], (name, width, scheme)
            if folder := os.environ.get("SCREENSHOTS"):
                page.screenshot(path=f"{folder}/check-{name}-{width}-{scheme}.png", full_page=True)


def test_nothing_is_asked_for_before_the_press_and_then_every_line_gets_a_verdict_as_often_as_wanted(
    playwright: Playwright, site: Site
) -> None:
    permissions = ["microphone", "clipboard-read", "clipboard-write"]
    with open_page(
        playwright, f"{site.url}/check/", flags=FAKE, scripts=[WATCHED], storage_state=site.state,
        permissions=permissions,
    ) as page:  # fmt: skip
        expect(page.locator("#lines > li")).to_have_count(len(LINES))
        assert states(page) == dict.fromkeys(LINES, "waiting")
        expect(page.get_by_role("heading", level=1)).to_have_text("Check this device")
        expect(page.get_by_role("heading", level=2)).to_have_text(LINES)
        named = page.get_by_role("list", name="What is checked")
        expect(named.get_by_role("listitem")).to_have_count(len(LINES))
        expect(page.get_by_role("log", name="Results as they come")).to_have_count(1)
        expect(page.get_by_role("button", name="Start the check")).to_be_enabled()
        assert page.evaluate("window.asked") == 0
        fits(page, "before")
        page.focus("#start")
        for run in (1, 2):
            page.keyboard.press("Enter")
            expect(page.locator("#start")).to_have_attribute("aria-disabled", "true")
            # Pressed again while it runs, it goes on.
            page.keyboard.press("Enter")
            expect(line(page, "Your voice")).to_contain_text("say a sentence")
            expect(line(page, "Your voice")).to_be_in_viewport()
            if run == 1:
                fits(page, "running")
            verdicts = finish(page)
            assert list(verdicts) == LINES
            assert set(verdicts.values()) <= {"good", "fair", "bad", "open"}
            assert [verdicts[name] for name in LINES[:2]] == ["good", "good"]
            assert verdicts["Microphone"] == "good"
            # How good it is here depends on the machine.
            expect(line(page, "Connection")).to_contain_text("there and back")
            assert page.evaluate("window.asked") == run
            expect(page.locator("#start")).to_be_focused()
            said = page.locator("#announcer p").all_text_contents()
            for name in LINES:
                assert len([one for one in said if one.startswith(f"{name}: ")]) == 1, said
            assert said[-1] == page.locator("#summary").text_content()
        page.click("#copy")
        expect(page.locator("#copied")).to_have_text("Copied.")
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == page.locator("#report-text").text_content()
        label = page.locator("#lines .note").nth(4).text_content() or ""
        assert "Listening through" in label
        names = [
            "admin",
            urlsplit(site.url).netloc,
            "127.0.0.1",
            "/check",
            label.split("through ")[1].strip("."),
        ]
        assert [name for name in names if name in text] == []
        assert all(f"\n{name}: " in text for name in LINES)


def test_without_the_microphone_the_other_lines_go_on(playwright: Playwright, site: Site) -> None:
    scripts = ["Object.defineProperty(navigator, 'clipboard', { value: undefined })"]
    with open_page(
        playwright, f"{site.url}/check/", flags=DENIED, scripts=scripts, storage_state=site.state
    ) as page:
        page.click("#start")
        verdicts = finish(page)
        assert verdicts["Microphone"] == "bad"
        assert [verdicts[name] for name in WITH_SOUND] == ["open"] * 3
        expect(line(page, "Connection")).to_contain_text("there and back")
        expect(line(page, "Microphone")).to_contain_text("blocked for this site")
        expect(page.locator("#summary")).to_contain_text("not work well")
        fits(page, "denied")
        # There is no clipboard either: the report is selected, to be copied by hand.
        page.click("#copy")
        expect(page.locator("#copied")).to_contain_text("copy it by hand")
        assert page.evaluate("getSelection().toString().includes('Microphone: Bad.')")


@pytest.mark.parametrize(("echo_db", "verdict"), [(-15, "bad"), (-60, "good")])
def test_the_tone_is_found_in_the_microphone_as_loud_as_it_comes_back(
    playwright: Playwright, site: Site, echo_db: int, verdict: str
) -> None:
    room = ROOM.replace("ECHO", str(echo_db))
    with open_page(
        playwright, f"{site.url}/check/", flags=FAKE, scripts=[room], storage_state=site.state
    ) as page:
        page.click("#start")
        verdicts = finish(page)
        assert [verdicts[name] for name in WITH_SOUND] == ["good", "good", verdict]
        echo = line(page, "Echo")
        assert any(
            f"−{-db} dB came back" in (echo.text_content() or "") for db in range(echo_db - 1, echo_db + 2)
        )
        if verdict == "bad":
            expect(echo).to_contain_text("Use a headset")
        fits(page, verdict)


def test_a_proxy_that_holds_messages_back_is_noticed(
    playwright: Playwright, network: Network, site: Site
) -> None:
    between = network.proxy(site.url)
    url = f"http://127.0.0.1:{between.port}/check/"
    with open_page(playwright, url, flags=DENIED, storage_state=site.state) as page:
        expect(page.locator("#lines > li")).to_have_count(len(LINES))
        between.hold_s = 0.1
        page.click("#start")
        assert finish(page)["Steady flow"] == "bad"
        expect(line(page, "Steady flow")).to_contain_text("came back together")


def test_a_second_check_of_the_same_account_is_told_to_wait(playwright: Playwright, site: Site) -> None:
    with open_page(playwright, f"{site.url}/check/", flags=DENIED, storage_state=site.state) as page:
        page.evaluate(
            "() => { window.other = new WebSocket(`ws://${location.host}/ws/echo/`);"
            "other.onmessage = () => { window.holds = true; };"
            "other.onopen = () => other.send(new Uint8Array(4)); }"
        )
        until(page, "window.holds === true")
        page.click("#start")
        assert finish(page)["Connection"] == "open"
        expect(line(page, "Connection")).to_contain_text("Another check")


def test_who_is_signed_out_meanwhile_is_told_so_in_the_server_s_words(
    playwright: Playwright, site: Site
) -> None:
    with open_page(playwright, f"{site.url}/check/", flags=DENIED, storage_state=site.state) as page:
        page.context.clear_cookies()
        page.click("#start")
        assert finish(page)["Connection"] == "bad"
        expect(line(page, "Connection")).to_contain_text("Sign in first.")
