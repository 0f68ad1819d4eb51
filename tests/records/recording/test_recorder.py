"""Both sides of a session on one clock, as they were heard."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from tests.parts.recorded import PCM16, archived, frequency, level, tone
from tests.parts.stalls import growth
from tests.parts.waits import PATIENCE_S
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording import recorder as recording
from voiceapp.records.recording.journal import Journal
from voiceapp.records.recording.recorder import Recorder, disk


def recorder(folder: Path, audio_format: AudioFormat = PCM16) -> Recorder:
    return Recorder(folder, uuid4(), audio_format, audio_format)


@pytest.mark.parametrize("audio_format", list(AudioFormat))
async def test_pitch_and_length_are_right_in_every_format(tmp_path: Path, audio_format: AudioFormat) -> None:
    live = recorder(tmp_path, audio_format)
    for start in range(0, 2000, 20):
        live.microphone(tone(20, audio_format, 1000, start), start + 20)
        live.assistant("a", tone(20, audio_format, 500, start), start)
    user, assistant = await archived(live)
    assert user.size == 48_000
    assert assistant.size == 48_000
    assert frequency(user, 0, 2000) == pytest.approx(1000, abs=5)
    assert frequency(assistant, 0, 2000) == pytest.approx(500, abs=5)
    assert level(user, 100, 1900) == pytest.approx(8000 / 32768 / 2**0.5, rel=0.02)


async def test_uneven_arrival_makes_no_seam(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    rng = np.random.default_rng(7)
    for start in range(0, 3000, 20):
        live.microphone(tone(20, start_ms=start), start + 20 + rng.uniform(-50, 150))
        live.assistant("a", tone(20, start_ms=start), start + rng.uniform(0, 150))
    user, assistant = await archived(live)
    whole = np.frombuffer(tone(3000), "<i2") / 32768
    assert np.array_equal(user[: whole.size], whole)
    assert not user[whole.size :].any()
    start = assistant.nonzero()[0][0] - 1
    assert np.array_equal(assistant[start : start + whole.size], whole)


async def test_a_muted_microphone_leaves_silence_of_its_length(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    for start in (*range(0, 1000, 20), *range(4000, 5000, 20)):
        live.microphone(tone(20), start + 20)
    user, _ = await archived(live)
    assert user.size == pytest.approx(5 * 24_000, abs=480)
    assert level(user, 1030, 3970) == 0
    assert level(user, 4050, 4950) > 0.1


async def test_speech_that_a_stalled_network_delivers_late_goes_where_it_was_spoken(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    for start in range(0, 12_000, 20):
        # Nothing arrives from second 2 to second 8; then all of it within 60 ms.
        at = start + 20 if not 2000 <= start < 8000 else 8000 + (start - 2000) / 100
        live.microphone(tone(20, hz=997, start_ms=start), at)
    user, _ = await archived(live)
    spoken = np.flatnonzero(user)
    # Nothing is lost, and what is left of the hole is within the clock's tolerance.
    assert user.size == pytest.approx(12 * 24_000, abs=24 * recording.SLACK_MS)
    assert spoken.size > 12 * 24_000 - 24 * 20
    assert np.diff(spoken).max() <= 24 * recording.SLACK_MS


async def test_time_cannot_be_sent_faster_than_it_passes(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    for _ in range(1000):
        live.microphone(tone(20), 100)
    user, _ = await archived(live)
    assert user.size <= 24 * (100 + recording.AHEAD_MS + 20)


async def test_an_answer_faster_than_real_time_is_laid_end_to_end(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    for chunk in range(10):
        live.assistant("a", tone(500, start_ms=chunk * 500), 1000 + chunk)
    live.assistant("b", tone(1000, hz=300), 1200)
    _, assistant = await archived(live)
    assert assistant.size == 24 * 7000
    assert level(assistant, 0, 1000) == 0
    assert np.array_equal(assistant[24_000 : 24 * 6000], np.frombuffer(tone(5000), "<i2") / 32768)
    assert frequency(assistant, 6000, 7000) == pytest.approx(300, abs=5)


async def test_barge_in_takes_away_what_was_not_heard(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    live.assistant("a", tone(1000), 0)
    live.assistant("b", tone(1000), 10)
    live.cut("a", 300)
    live.assistant("a", tone(1000), 310)
    live.assistant("c", tone(200), 900)
    _, assistant = await archived(live)
    assert level(assistant, 0, 300) > 0.1
    assert level(assistant, 301, 899) == 0
    assert level(assistant, 901, 1099) > 0.1
    assert assistant.size == 24 * 1100


async def test_a_cut_after_a_starved_answer_counts_what_was_played(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    live.assistant("a", tone(500), 0)
    live.assistant("a", tone(1000), 900)
    live.cut("a", 700)
    _, assistant = await archived(live)
    assert assistant.size == 24 * 1100
    assert level(assistant, 510, 890) == 0


async def test_cuts_of_nothing_change_nothing(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    live.cut("never", 10)
    live.assistant("a", tone(400), 0)
    live.cut("a", 5000)
    _, assistant = await archived(live)
    assert assistant.size == 24 * 400


async def test_a_session_without_audio_has_no_recording(tmp_path: Path) -> None:
    assert await recorder(tmp_path / "new").aclose() is None
    assert not (tmp_path / "new").exists()


async def test_a_disk_that_cannot_be_written_never_fails_the_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    live = recorder(tmp_path / "file")
    for start in range(0, 2000, 20):
        live.microphone(tone(20), start + 20)
    await live.aclose()
    assert caplog.text.count("stops") == 1


async def test_a_file_that_cannot_be_closed_costs_nobody_else_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(Journal):
        def close(self) -> None:
            super().close()
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording, "Journal", Full)
    first = recorder(tmp_path)
    first.microphone(tone(100), 100)
    async with asyncio.timeout(PATIENCE_S):
        assert await first.aclose() is not None
    monkeypatch.undo()
    second = recorder(tmp_path / "other")
    second.microphone(tone(1000), 1000)
    async with asyncio.timeout(PATIENCE_S):
        user, _ = await archived(second)
    assert len(user) == 24_000


async def test_audio_that_the_disk_cannot_take_becomes_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live = recorder(tmp_path)
    live.microphone(tone(500), 500)
    monkeypatch.setattr(recording, "MAX_WAITING_BYTES", 0)
    live.microphone(tone(500), 1000)
    live.microphone(tone(500), 1500)
    monkeypatch.undo()
    live.microphone(tone(500), 2000)
    user, _ = await archived(live)
    assert user.size == 24 * 2000
    assert level(user, 0, 490) > 0.1
    assert level(user, 501, 1499) == 0
    assert level(user, 1510, 2000) > 0.1
    assert caplog.text.count("too slow") == 1


async def test_a_frame_waits_for_no_disk_and_costs_no_more_the_longer_it_goes_on(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    frame = tone(20)
    disk_is_back = threading.Event()
    disk().submit(lambda: (disk_is_back.wait(PATIENCE_S), None)[1])

    def record(end_ms: int) -> None:
        for start in range(0, end_ms, 20):
            live.microphone(frame, start + 20)
            live.assistant("a", frame, start)

    assert growth(record, 30_000) < 3
    assert not disk_is_back.is_set()
    disk_is_back.set()
    user, _ = await archived(live)
    assert user.size >= 24 * 60_000
