"""Real Chromium with a fake microphone, and a recorder at the loudspeaker."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Playwright

from tests.parts.waits import PATIENCE_S

HERE = Path(__file__).resolve().parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
]
Samples = NDArray[np.float32]
_shared: dict[str, Browser] = {}


@dataclass(frozen=True)
class Heard:
    """What the loudspeaker got: samples of shape (n,) at ``rate_hz``."""

    rate_hz: int
    samples: Samples

    def bounds(self, least: float = 0.02) -> tuple[int, int]:
        """Return the first sample that sounds and the one after the last that does."""
        loud = np.flatnonzero(np.abs(self.samples) > least)
        assert loud.size, "Nothing was heard."
        return int(loud[0]), int(loud[-1]) + 1

    def sounding_ms(self, least: float = 0.02) -> float:
        """Return the time from the first to the last sound."""
        first, end = self.bounds(least)
        return (end - first) * 1000 / self.rate_hz


def microphone_flags(wav: Path | None) -> list[str]:
    """Return the flags of a fake microphone that plays a file once, or of a silent one's beep."""
    flags = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    return [*flags, f"--use-file-for-fake-audio-capture={wav}%noloop"] if wav else flags


@contextmanager
def open_page(
    playwright: Playwright,
    url: str,
    *,
    flags: list[str],
    scripts: list[str] | None = None,
    **context_options: Any,
) -> Iterator[Page]:
    """Open ``url`` in a browser of its own; a fault on the page fails the test when the page is closed."""
    browser, own = _browser(playwright, flags)
    context = browser.new_context(**context_options)
    try:
        page = context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(f"{error}\n{error.stack}"))
        page.add_init_script(path=HERE / "tap.js")
        for script in scripts or []:
            page.add_init_script(script)
        if context_options.get("bypass_csp"):
            source = (HERE / "tap-worklet.js").read_text()
            page.add_init_script(f"window.tapSource = {json.dumps(source)}")
        enter(page, url)
        yield page
        assert not faults, faults
        assert not (broken := page.evaluate("window.tap.policy")), broken
    finally:
        context.close()
        if own:
            browser.close()


def enter(page: Page, url: str) -> None:
    """Open an address, and press the button where it is a sign-in link."""
    page.goto(url)
    if "/signin/" in page.url:
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda address: "/signin/" not in address)


def _browser(playwright: Playwright, flags: list[str]) -> tuple[Browser, bool]:
    """Return a browser with these flags, and whether it is the caller's own.

    One without a microphone's file is shared by the tests, each in a context of its own; a file is played
    from the browser's start.
    """
    if any(flag.startswith("--use-file-for-fake-audio") for flag in flags):
        return playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags]), True
    key = " ".join(flags)
    if key not in _shared:
        _shared[key] = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
    return _shared[key], False


def close_shared() -> None:
    """Close the browsers that tests shared."""
    while _shared:
        _shared.popitem()[1].close()


def heard(page: Page) -> Heard:
    """Return all that the loudspeaker got so far."""
    data = page.evaluate("window.tap.read()")
    return Heard(data["rate"], np.frombuffer(base64.b64decode(data["samples"]), "<f4").copy())


def until(page: Page, expression: str, timeout_s: float = PATIENCE_S) -> None:
    """Wait until an expression holds; the page's policy forbids Playwright's own way of waiting."""
    end = time.monotonic() + timeout_s
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"Not so in time: {expression}"
        page.wait_for_timeout(20)


def wait_tap(page: Page) -> None:
    """Wait until the recorder runs."""
    until(page, "window.tap.ready && window.tap.parts.length > 0")


def tone(rate_hz: int, seconds: float, *, hz: float = 1000, level: float = 0.4) -> Samples:
    """Return a sine of shape (n,)."""
    time = np.arange(round(rate_hz * seconds)) / rate_hz
    return (level * np.sin(2 * np.pi * hz * time)).astype(np.float32)


def pcm16(samples: Samples) -> bytes:
    """Return samples as little-endian 16-bit bytes."""
    return np.rint(samples * 32767).astype("<i2").tobytes()


def write_wav(path: Path, samples: Samples, rate_hz: int) -> Path:
    """Write a mono 16-bit file for the fake microphone."""
    soundfile.write(path, samples, rate_hz, subtype="PCM_16")
    return path


def peak_hz(samples: Samples, rate_hz: int) -> float:
    """Return the strongest frequency, by a windowed transform with the peak's neighbours interpolated."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    top = int(np.argmax(spectrum[1:-1])) + 1
    below, at, above = np.log(spectrum[top - 1 : top + 2] + 1e-12)
    shift = 0.5 * (below - above) / (below - 2 * at + above)
    return float((top + shift) * rate_hz / samples.size)
