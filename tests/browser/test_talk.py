"""A stranger's first conversation: real server, engine and browser, recorded speech as the microphone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr
from playwright.sync_api import Page, Playwright, WebSocket, expect

from tests.browser.browser import FLAGS, Samples, heard, microphone_flags, open_page, wait_tap, write_wav
from tests.browser.product import running_product
from tests.parts.engine_parts import words_of

VIEW = {"width": 1280, "height": 800}
HZ = 48000
FADE_MS = 4
QUANTUM = 128


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The running product: its sign-in link and a file in which a signed-in browser's cookies are kept."""
    folder = tmp_path_factory.mktemp("data")
    with running_product(folder) as link:
        yield link, folder / "cookies.json"


@dataclass
class Wire:
    """What went over the page's socket."""

    down: list[dict[str, Any]] = field(default_factory=list)
    up: list[dict[str, Any]] = field(default_factory=list)
    audio: dict[int, bytes] = field(default_factory=dict)

    def watch(self, page: Page) -> None:
        """Listen to the page's sockets."""
        page.on("websocket", self._open)

    def _open(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._received)
        socket.on(
            "framesent", lambda data: self.up.append(json.loads(data)) if isinstance(data, str) else None
        )

    def _received(self, data: str | bytes) -> None:
        if isinstance(data, str):
            self.down.append(json.loads(data))
        else:
            index = int.from_bytes(data[:4], "big")
            self.audio[index] = self.audio.get(index, b"") + data[4:]

    def answer(self, number: int) -> tuple[str, Samples]:
        """Return an answer's item and all its audio, as received."""
        announced = [event for event in self.down if event["type"] == "audio.item"][number]
        samples = np.frombuffer(self.audio[announced["index"]], "<i2").astype(np.float32)
        return announced["item_id"], samples / np.float32(32768)

    def played_ms(self, item: str) -> int:
        """Return what the page reported at the end as played of an item."""
        finals = [event for event in self.up if event.get("final") and event["item_id"] == item]
        assert finals, "The page never said how much was played."
        return int(finals[-1]["played_ms"])


def _microphone(path: Path, speech: Path, *parts: float | str) -> Path:
    """Write a microphone's file of silences (seconds) and recordings (names)."""
    pieces: list[Samples] = []
    for part in parts:
        if isinstance(part, str):
            samples, rate = soundfile.read(speech / part, dtype="float32")
            pieces.append(soxr.resample(samples, rate, HZ))
        else:
            pieces.append(np.zeros(round(part * HZ), np.float32))
    return write_wav(path, np.concatenate(pieces), HZ)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def _share_shown(said: str, shown: str) -> float:
    words = _words(said)
    return sum(word in _words(shown) for word in words) / len(words)


def _place(sound: Samples, wanted: Samples) -> int:
    """Return where in ``sound`` the recording ``wanted`` begins, by its loudest tenth of a second."""
    width = 2400
    power = np.convolve(wanted[:36000] ** 2, np.ones(width), "valid")
    mark = int(np.argmax(power))
    pattern = wanted[mark : mark + width]
    size = 1 << int(np.ceil(np.log2(sound.size + width)))
    match = np.fft.irfft(np.fft.rfft(sound, size) * np.conj(np.fft.rfft(pattern, size)), size)
    return int(np.argmax(match[: sound.size])) - mark


def _open(playwright: Playwright, site: tuple[str, Path], wav: Path | None) -> Any:
    link, cookies = site
    options: dict[str, Any] = {"viewport": VIEW, "bypass_csp": True}
    if cookies.exists():
        options["storage_state"] = str(cookies)
        link = link.split("/signin/")[0] + "/"
    return open_page(playwright, link, flags=microphone_flags(wav), **options)


def _keep_sign_in(page: Page, site: tuple[str, Path]) -> None:
    page.context.storage_state(path=site[1])


def test_a_question_is_answered_aloud_and_kept(
    playwright: Playwright, site: tuple[str, Path], speech: Path, tmp_path: Path
) -> None:
    wav = _microphone(tmp_path / "mic.wav", speech, 0.6, "joke.wav", 20)
    wire = Wire()
    with _open(playwright, site, wav) as page:
        _keep_sign_in(page, site)
        wire.watch(page)
        page.click("#talk")
        wait_tap(page)
        # The models load while the first words are said: none of them is lost.
        expect(page.locator(".line.user .said")).to_contain_text("joke")
        expect(page.locator("#status-word")).to_have_text("Speaking")
        expect(page.locator("#status-word")).to_have_text("Listening")
        shown = page.locator(".line.user .said").inner_text()
        # The browser's noise suppression and a busy machine may cost a word.
        assert _share_shown(words_of("joke"), shown) >= 0.8, shown
        answer = page.locator(".line.assistant .said").inner_text()
        assert len(_words(answer)) >= 3
        item, sent = wire.answer(0)
        out = heard(page)
        _same_sound(out.samples, sent)
        assert wire.played_ms(item) == sent.size * 1000 // 24000
        page.click("#hangup")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        page.click("text=Past conversations")
        page.click(".history a >> nth=0")
        expect(page.locator(".line.user .said")).to_have_text(shown)
        expect(page.locator(".line.assistant .said")).to_have_text(answer)
        _see_in_admin(page, [shown, answer])


def _same_sound(sound: Samples, sent: Samples) -> None:
    """The loudspeaker got every sample that was sent, in order, without a gap."""
    begin = _place(sound, sent)
    assert begin >= 0
    assert float(np.abs(sound[begin : begin + sent.size] - sent).max()) < 1e-4


def test_speech_cuts_the_answer_at_once(
    playwright: Playwright, site: tuple[str, Path], speech: Path, tmp_path: Path
) -> None:
    wav = _microphone(tmp_path / "mic.wav", speech, 0.6, "weather.wav", 2.2, "thanks.wav", 15)
    wire = Wire()
    with _open(playwright, site, wav) as page:
        _keep_sign_in(page, site)
        wire.watch(page)
        page.click("#talk")
        wait_tap(page)
        expect(page.locator("#status-word")).to_have_text("Speaking")
        expect(page.locator(".line.assistant .meta").first).to_contain_text(
            "interrupted after", timeout=15_000
        )
        expect(page.locator(".line.user")).to_have_count(2)
        expect(page.locator(".line.user .said").nth(1)).to_contain_text(
            "thank", ignore_case=True, timeout=15_000
        )
        expect(page.locator(".line.assistant")).to_have_count(2)
        item, sent = wire.answer(0)
        out = heard(page).samples
        unheard = page.locator(".line.assistant del").first.inner_text()
        answer = page.locator(".line.assistant .said").first.inner_text()
        page.click("#hangup")
        expect(page.locator("#status-word")).to_have_text("The conversation has ended")
        page.click("text=Past conversations")
        page.click(".history a >> nth=0")
        expect(page.locator(".line.assistant del").first).to_have_text(unheard.strip())
        _see_in_admin(page, [])
    played = wire.played_ms(item) * 24
    assert 0 < played < sent.size - 2400, "nothing was left to cut"
    assert 0 < len(_words(unheard)) < len(_words(answer))
    begin = _place(out, sent)
    assert float(np.abs(out[begin : begin + played - 24] - sent[: played - 24]).max()) < 1e-4
    end = begin + played + FADE_MS * 24 + QUANTUM + 24
    assert np.all(out[end : end + 12000] == 0), "the voice went on"
    truncated = [event for event in wire.down if event["type"] == "conversation.item.truncated"]
    assert [event["item_id"] for event in truncated] == [item]
    assert abs(truncated[0]["audio_end_ms"] * 24 - played) <= 20 * 24


def _see_in_admin(page: Page, texts: list[str]) -> None:
    page.click("text=Admin")
    page.goto(page.url.rstrip("/") + "/records/session/")
    page.click("#result_list tbody tr:first-child th a")
    for text in texts:
        expect(page.locator("#content")).to_contain_text(text)
    expect(page.locator("#content audio")).to_have_count(1)


def test_typing_works_without_a_microphone_and_under_the_page_s_own_policy(
    playwright: Playwright, site: tuple[str, Path]
) -> None:
    link, cookies = site
    options: dict[str, Any] = {"viewport": {"width": 375, "height": 740}}
    if cookies.exists():
        options["storage_state"] = str(cookies)
        link = link.split("/signin/")[0] + "/"
    with open_page(playwright, link, flags=["--deny-permission-prompts"], **options) as page:
        _keep_sign_in(page, site)
        page.fill("#message", "Tell me a joke")
        page.press("#message", "Enter")
        expect(page.locator(".line.user .said")).to_have_text("Tell me a joke")
        expect(page.locator(".line.assistant .said")).not_to_be_empty()
        expect(page.locator("#status-word")).to_have_text("Writing")
        page.click("#sound")
        page.fill("#message", "What is the weather going to be like in Paris this weekend?")
        page.press("#message", "Enter")
        expect(page.locator("#status-word")).to_have_text("Speaking")
        page.keyboard.press("Escape")
        expect(page.locator("#status-word")).to_have_text("Writing", timeout=2_000)
        expect(page.locator(".line.assistant").nth(1).locator("del")).not_to_be_empty()


def test_without_a_sign_in_there_is_a_log_in_page(playwright: Playwright, site: tuple[str, Path]) -> None:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
    try:
        page = browser.new_page()
        page.goto(site[0].split("/signin/")[0] + "/")
        expect(page.locator("h1")).to_have_text("Sign in")
        page.fill("input[name=username]", "nobody")
        page.fill("input[name=password]", "wrong")
        page.click("text=Sign in >> nth=-1")
        expect(page.locator(".problem")).to_be_visible()
    finally:
        browser.close()
