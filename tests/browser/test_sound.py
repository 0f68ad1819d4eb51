"""What really goes through the microphone and the loudspeaker of the page, in a real browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Playwright

from tests.browser.browser import (
    Samples,
    heard,
    microphone_flags,
    open_page,
    pcm16,
    peak_hz,
    tone,
    until,
    wait_tap,
    write_wav,
)
from tests.browser.scripted import ASSISTANT, Link, ScriptedServer
from tests.parts.waits import PATIENCE_S
from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat

FORMATS = list(AudioFormat)
# The last 100 ms: two items on either side of it cannot be taken for one.
SILENT_NOW = "window.tap.parts.slice(-20).every((part) => part.every((sample) => Math.abs(sample) < 0.001))"
NO_24_KHZ = """
const Real = AudioContext;
window.AudioContext = class extends Real {
  constructor(options = {}) {
    if (options.sampleRate) throw new DOMException('no such rate', 'NotSupportedError');
    super(options);
  }
};
"""


def _server(audio: AudioFormat) -> ScriptedServer:
    return ScriptedServer([{**ASSISTANT, "input_format": audio.value, "output_format": audio.value}])


def _samples(data: bytes, audio: AudioFormat) -> Samples:
    linear = data if audio is AudioFormat.PCM16 else g711.decode(data, audio)
    return np.frombuffer(linear, "<i2").astype(np.float32) / np.float32(32768)


def _bytes(samples: Samples, audio: AudioFormat) -> bytes:
    return pcm16(samples) if audio is AudioFormat.PCM16 else g711.encode(pcm16(samples), audio)


def _talk(page: Page, server: ScriptedServer, **changes: Any) -> Link:
    page.click("#talk")
    link = server.link()
    link.ready(**changes)
    wait_tap(page)
    return link


def _wait_final(link: Link, item: str, timeout_s: float = PATIENCE_S) -> int:
    report = link.wait_text(lambda text: text.get("final") is True and text["item_id"] == item, timeout_s)
    return int(report["played_ms"])


@pytest.mark.parametrize("audio", FORMATS)
@pytest.mark.parametrize("fallback", [False, True], ids=["native", "hardware-rate"])
def test_a_tone_is_captured_at_its_pitch(
    playwright: Playwright, tmp_path: Path, audio: AudioFormat, fallback: bool
) -> None:
    wav = write_wav(tmp_path / "tone.wav", tone(48000, 6), 48000)
    server = _server(audio)
    scripts = [NO_24_KHZ] if fallback else []
    with open_page(playwright, server.url, flags=microphone_flags(wav), scripts=scripts) as page:
        link = _talk(page, server)
        started = time.monotonic()
        frames = link.wait_frames(100)
        took = time.monotonic() - started
    server.close()
    assert {len(frame) for frame in frames} == {audio.bytes_per_ms * 20}
    assert took < 3, "frames must come in real time"
    samples = _samples(b"".join(frames[20:90]), audio)
    assert peak_hz(samples, audio.rate_hz) == pytest.approx(1000, abs=5)


@pytest.mark.parametrize("audio", FORMATS)
@pytest.mark.parametrize("fallback", [False, True], ids=["native", "hardware-rate"])
def test_a_tone_is_played_at_its_pitch_and_length(
    playwright: Playwright, audio: AudioFormat, fallback: bool
) -> None:
    server = _server(audio)
    scripts = [NO_24_KHZ] if fallback else []
    with open_page(playwright, server.url, flags=microphone_flags(None), scripts=scripts) as page:
        link = _talk(page, server)
        link.item(0, "item_a")
        data = _bytes(tone(audio.rate_hz, 1.5), audio)
        # In one message: of many, a busy machine may bring one so late that there is a gap.
        link.send_audio(0, data)
        link.send({"type": "response.output_audio.done", "item_id": "item_a", "response_id": "r"})
        assert _wait_final(link, "item_a") == 1500
        out = heard(page)
    server.close()
    assert (out.rate_hz == 24000) is not fallback
    first, end = out.bounds()
    assert out.sounding_ms() == pytest.approx(1500, abs=3)
    assert peak_hz(out.samples[first:end], out.rate_hz) == pytest.approx(1000, abs=5)


@pytest.mark.parametrize("chunk_ms", [20, 50, 320])
def test_seams_between_chunks_cannot_be_heard(
    playwright: Playwright, server: ScriptedServer, chunk_ms: int
) -> None:
    with open_page(playwright, server.url, flags=microphone_flags(None)) as page:
        link = _talk(page, server)
        link.item(0, "item_a")
        # 457 Hz: no whole number of periods fits any chunk.
        data = pcm16(tone(24000, 1.92, hz=457))
        step = chunk_ms * 48
        link.send_audio_chunks(0, [data[at : at + step] for at in range(0, len(data), step)])
        link.send({"type": "response.output_audio.done", "item_id": "item_a"})
        _wait_final(link, "item_a")
        out = heard(page)
    first, end = out.bounds(0.001)
    sound = out.samples[first:end]
    assert sound.size == pytest.approx(1.92 * 24000, abs=4)
    steepest = 0.4 * 2 * np.pi * 457 / 24000
    assert float(np.abs(np.diff(sound)).max()) < steepest * 1.02
    silent = np.flatnonzero(sound == 0)
    assert not np.any(np.diff(silent) == 1), "a run of zeros"


def test_two_items_are_queued_and_the_first_is_cut(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=microphone_flags(None)) as page:
        link = _talk(page, server)
        for index, item in enumerate(("item_a", "item_b")):
            link.item(index, item)
            link.send_audio(index, pcm16(tone(24000, 1)))
        link.wait_text(lambda text: text["type"] == "playback.report" and text["played_ms"] >= 300)
        link.send({"type": "audio.cut", "item_id": "item_a"})
        played = _wait_final(link, "item_a")
        assert _wait_final(link, "item_b") == 0
        # Late audio of what was cut is dropped.
        for _ in range(5):
            link.send_audio(1, pcm16(tone(24000, 0.2)))
        until(page, SILENT_NOW)
        link.item(2, "item_c")
        link.send_audio(2, pcm16(tone(24000, 0.2, hz=2000)))
        link.send({"type": "response.output_audio.done", "item_id": "item_c"})
        assert _wait_final(link, "item_c") == 200
        out = heard(page)
        reports = [text["played_ms"] for text in link.texts if text.get("item_id") == "item_a"]
    assert reports == sorted(reports)
    loud = np.abs(out.samples) > 0.02
    first = int(np.argmax(loud))
    silent = next(at for at in range(first, out.samples.size) if not loud[at : at + 240].any())
    # A quantum and the fade of 4 ms at most, and nothing of it is counted as played.
    assert 0 <= (silent - first) / 24 - played < 4 + 128 / 24 + 1
    after = out.samples[silent:]
    begin, end = np.flatnonzero(np.abs(after) > 0.02)[[0, -1]]
    assert (end - begin) / 24 == pytest.approx(200, abs=3)
    assert peak_hz(after[begin:end], 24000) == pytest.approx(2000, abs=10)


def test_time_without_audio_is_not_counted_as_played(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=microphone_flags(None)) as page:
        link = _talk(page, server)
        link.item(0, "item_a")
        link.send_audio(0, pcm16(tone(24000, 0.5)))
        link.wait_text(lambda text: text["type"] == "playback.report" and text["played_ms"] == 500)
        page.wait_for_timeout(400)
        link.send_audio(0, pcm16(tone(24000, 1)))
        link.wait_text(lambda text: text["type"] == "playback.report" and text["played_ms"] >= 700)
        link.send({"type": "audio.cut", "item_id": "item_a"})
        played = _wait_final(link, "item_a")
        out = heard(page)
    sounding = np.abs(out.samples) > 0.02
    first, end = out.bounds()
    gap = np.diff(np.flatnonzero(sounding[first:end])).max() / 24
    assert gap > 380
    assert played == pytest.approx((end - first) / 24 - gap, abs=10)
    # Reports come every 200 ms, so the cut comes within two of them; there were 1500 ms in all.
    assert 700 <= played < 1200


def test_reports_come_five_times_a_second_and_agree_with_the_loudspeaker(
    playwright: Playwright, server: ScriptedServer
) -> None:
    with open_page(playwright, server.url, flags=microphone_flags(None)) as page:
        link = _talk(page, server)
        link.item(0, "item_a")
        link.send_audio(0, pcm16(tone(24000, 2)))
        link.send({"type": "response.output_audio.done", "item_id": "item_a"})
        assert _wait_final(link, "item_a") == 2000
        out = heard(page)
        reports = [text for text in link.texts if text["type"] == "playback.report"]
    running = [text["played_ms"] for text in reports if not text.get("final")]
    assert 8 <= len(running) <= 12
    assert max(np.diff(running)) <= 207
    assert all(text["content_index"] == 0 and text["seq"] >= 2 for text in reports)
    assert out.sounding_ms() == pytest.approx(2000, abs=3)


def test_tens_of_seconds_sent_at_once_are_kept(playwright: Playwright, server: ScriptedServer) -> None:
    with open_page(playwright, server.url, flags=microphone_flags(None)) as page:
        link = _talk(page, server)
        link.item(0, "item_a")
        link.send_audio_chunks(0, [pcm16(tone(24000, 1))] * 60)
        link.wait_text(lambda text: text["type"] == "playback.report" and text["played_ms"] >= 1500)
        link.send({"type": "audio.cut", "item_id": "item_a"})
        assert 1500 <= _wait_final(link, "item_a") < 2500
        out = heard(page)
    first, end = out.bounds()
    spacing = np.diff(np.flatnonzero(np.abs(out.samples[first:end]) > 0.02)).max()
    assert spacing < 30, "no gap"


def test_the_server_decides_the_formats(
    playwright: Playwright, tmp_path: Path, server: ScriptedServer
) -> None:
    wav = write_wav(tmp_path / "tone.wav", tone(48000, 6), 48000)
    with open_page(playwright, server.url, flags=microphone_flags(wav)) as page:
        link = _talk(page, server, audio={"input": {"type": "audio/pcmu"}, "output": {"type": "audio/pcma"}})
        assert {len(frame) for frame in link.wait_frames(60)} == {160}
        samples = _samples(b"".join(link.frames[10:60]), AudioFormat.PCMU)
        assert peak_hz(samples, 8000) == pytest.approx(1000, abs=5)
        link.item(0, "item_a")
        link.send_audio(0, _bytes(tone(8000, 0.5), AudioFormat.PCMA))
        link.send({"type": "response.output_audio.done", "item_id": "item_a"})
        assert _wait_final(link, "item_a") == 500
        until(page, "window.tap.parts.length > 100")
