"""Both sides of a session on one clock, as they were heard, even after kill -9."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
import soundfile

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.records import archive, recording
from voiceapp.records.archive import archiver, journal_path, make_archive
from voiceapp.records.journal import Journal, JournalReader
from voiceapp.records.recording import Recorder, repair

PCM16, PCMU, PCMA = AudioFormat.PCM16, AudioFormat.PCMU, AudioFormat.PCMA
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def tone(ms: float, audio_format: AudioFormat = PCM16, hz: float = 1000, start_ms: float = 0) -> bytes:
    """Return a tone whose phase follows from ``start_ms``, so that pieces laid in order have no seam."""
    rate = audio_format.rate_hz
    time_s = np.arange(round(start_ms * rate / 1000), round((start_ms + ms) * rate / 1000)) / rate
    samples = (8000 * np.sin(2 * np.pi * hz * time_s)).astype("<i2").tobytes()
    return samples if audio_format is PCM16 else g711.encode(samples, audio_format)


def level(track: Floats, from_ms: float, to_ms: float) -> float:
    """Return the RMS of a part of a 24 kHz track."""
    part = track[round(from_ms * 24) : round(to_ms * 24)]
    return float(np.sqrt(np.mean(part**2)))


def frequency(track: Floats, from_ms: float, to_ms: float) -> float:
    part = track[round(from_ms * 24) : round(to_ms * 24)]
    spectrum = np.abs(np.fft.rfft(part * np.hanning(part.size)))
    return float(np.argmax(spectrum) * 24_000 / part.size)


async def archived(recorder: Recorder) -> tuple[Floats, Floats]:
    """Close; return what the archive holds: user, assistant."""
    path = await recorder.aclose()
    archiver.wait()
    assert path is not None
    samples, rate = soundfile.read(path)
    assert rate == 24_000
    assert samples.shape[1] == 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return samples[:, 0], samples[:, 1]


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
    async with asyncio.timeout(5):
        assert await first.aclose() is not None
    monkeypatch.undo()
    second = recorder(tmp_path / "other")
    second.microphone(tone(1000), 1000)
    async with asyncio.timeout(5):
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


def test_a_journal_can_be_opened_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "live.wav"
    journal = Journal(path, PCM16)
    for count in range(1, 4):
        journal.write(count * 24_000 - 12_000, tone(500))
        with wave.open(str(path)) as reader:
            assert reader.getnframes() == count * 24_000
            assert reader.getframerate() == 24_000
    journal.truncate(100)
    with wave.open(str(path)) as reader:
        assert reader.getnframes() == 100
    journal.close()


@pytest.mark.parametrize(("law", "subtype"), [(PCMU, "ULAW"), (PCMA, "ALAW")])
def test_g711_journals_are_wav_files_with_silence_that_is_silent(
    tmp_path: Path, law: AudioFormat, subtype: str
) -> None:
    journal = Journal(tmp_path / "live.wav", law)
    journal.write(8000, tone(1000, law))
    journal.close()
    info = soundfile.info(tmp_path / "live.wav")
    assert (info.subtype, info.samplerate, info.frames) == (subtype, 8000, 16_000)
    samples, _ = soundfile.read(tmp_path / "live.wav")
    assert np.abs(samples[:8000]).max() < 0.001


def test_removing_a_part_moves_the_rest_up(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "live.wav", PCMU)
    data = bytes(np.random.default_rng(1).integers(0, 256, 700_000, np.uint8))
    journal.write(0, data)
    journal.remove(1000, 2000)
    journal.remove(690_000, 1)
    journal.close()
    reader = JournalReader(tmp_path / "live.wav")
    expected = data[:1000] + data[3000:]
    assert reader.read(10**6) == expected[:690_000] + expected[690_001:]
    reader.close()


_KILLED = """
import asyncio, pathlib, sys, uuid
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording import Recorder
async def main():
    live = Recorder(pathlib.Path(sys.argv[1]), uuid.UUID(sys.argv[2]), AudioFormat.PCM16, AudioFormat.PCMU)
    at = 0
    while True:
        at += 20
        live.microphone(bytes([1, 2]) * 480, at)
        live.assistant("a", bytes([5]) * 160, at - 20)
        print(at, flush=True)
        await asyncio.sleep(0.0005)
asyncio.run(main())
"""


def test_kill_9_loses_at_most_two_seconds(tmp_path: Path) -> None:
    session_id = uuid4()
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path), str(session_id)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 5000:
            break
    os.kill(process.pid, signal.SIGKILL)
    sent_ms = int((process.stdout.read().split() or [line])[-1])
    process.stdout.close()
    process.wait()
    assert repair(tmp_path, lambda ids: ids) == {}
    paths = repair(tmp_path, lambda ids: set())
    archiver.wait()
    samples, _ = soundfile.read(paths[session_id])
    assert samples.shape[0] >= (sent_ms - 2000) * 24
    assert np.all(samples[: (sent_ms - 2000) * 24] != 0)
    assert [entry.suffix for entry in tmp_path.iterdir()] == [".flac"]


def test_an_archive_is_never_made_anew_from_half_of_its_journals(tmp_path: Path) -> None:
    session_id = uuid4()
    for side in ("user", "assistant"):
        journal = Journal(journal_path(tmp_path, session_id, side), PCM16)
        journal.write(0, tone(1000))
        journal.close()
    kept = journal_path(tmp_path, session_id, "assistant").read_bytes()
    path = make_archive(tmp_path, session_id, 0)
    # As after a process that died between removing the first and the second journal.
    journal_path(tmp_path, session_id, "assistant").write_bytes(kept)
    repair(tmp_path, lambda ids: set())
    archiver.wait()
    samples, _ = soundfile.read(path)
    assert np.abs(samples[:, 0]).max() > 0.1
    assert list(tmp_path.iterdir()) == [path]


def test_a_journal_may_be_archived_while_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = uuid4()
    journal = Journal(journal_path(tmp_path, session_id, "user"), PCM16)
    journal.write(0, tone(1000))
    journal.close()

    class Measured(JournalReader):
        """Another process makes the archive once this one is done with the file."""

        def close(self) -> None:
            super().close()
            monkeypatch.undo()
            make_archive(tmp_path, session_id, 0)

    monkeypatch.setattr(archive, "JournalReader", Measured)
    assert archive.journals_ms(tmp_path, session_id) == 0


def test_an_archive_that_cannot_be_made_keeps_no_other_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, whole = uuid4(), uuid4()
    journal = Journal(journal_path(tmp_path, whole, "user"), PCM16)
    journal.write(0, tone(1000))
    journal.close()

    def made(folder: Path, session_id: UUID, last_ms: int) -> Path:
        if session_id == broken:
            raise ValueError
        return make_archive(folder, session_id, last_ms)

    monkeypatch.setattr(archive, "make_archive", made)
    archiver.submit(tmp_path, {broken: 0})
    archiver.submit(tmp_path, {whole: 0})
    archiver.wait()
    assert archive.archive_path(tmp_path, whole).exists()


def test_files_that_are_no_journals_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.wav").write_text("hello")
    broken = journal_path(tmp_path, UUID(int=1), "user")
    broken.write_bytes(b"RIFF")
    repair(tmp_path, lambda ids: set())
    archiver.wait()
    assert (tmp_path / "notes.wav").exists()
    assert not broken.exists()


async def test_the_part_of_a_process_that_goes_on_is_left_alone_until_it_ends(tmp_path: Path) -> None:
    session_id = uuid4()
    first = Recorder(tmp_path, session_id, PCM16, PCM16)
    first.microphone(tone(1000), 1000)
    second = Recorder(tmp_path, session_id, PCM16, PCM16, from_ms=2000)
    second.microphone(tone(1000), 3000)
    # The archive of the first part is made while the second one's journal is there and grows.
    path = await first.aclose()
    assert path is not None
    archiver.wait()
    assert soundfile.info(path).duration == 1
    second.microphone(tone(1000), 4000)
    user, _ = await archived(second)
    assert len(user) == 4000 * 24
    assert [level(user, at, at + 800) > 0.1 for at in range(100, 4000, 1000)] == [True, False, True, True]


async def test_a_hung_process_takes_nothing_from_the_one_that_went_on(tmp_path: Path) -> None:
    session_id = uuid4()
    hung = Recorder(tmp_path, session_id, PCM16, PCM16)
    second = Recorder(tmp_path, session_id, PCM16, PCM16, from_ms=2000)
    second.microphone(tone(1000), 3000)
    before = await archived(second)
    hung.microphone(tone(1000), 1000)
    assert np.array_equal(await archived(hung), before)


async def test_a_frame_costs_the_event_loop_microseconds(tmp_path: Path) -> None:
    live = recorder(tmp_path)
    frame = tone(20)
    costs = []
    for start in range(0, 60_000, 20):
        before = time.perf_counter()
        live.microphone(frame, start + 20)
        live.assistant("a", frame, start)
        costs.append(time.perf_counter() - before)
    await archived(live)
    assert sorted(costs)[len(costs) // 2] < 50e-6


@pytest.mark.parametrize("order", ["one by one", "all at once", "a crash in between"])
async def test_the_parts_of_a_session_that_moved_become_one_recording(tmp_path: Path, order: str) -> None:
    session_id = uuid4()
    loud = tone(1000)
    first = Recorder(tmp_path, session_id, PCM16, PCM16)
    first.microphone(loud, 1000)
    # Three seconds that were generated at once; only the two before the move can have been heard.
    first.assistant("a", tone(3000), 500)
    await first.aclose()
    if order == "one by one":
        archiver.wait()
    second = Recorder(tmp_path, session_id, PCM16, PCM16, from_ms=2500)
    second.microphone(loud, 4000)
    path = await second.aclose()
    assert path is not None
    archiver.wait()
    if order == "a crash in between":
        # As after a process that died between making the archive and removing the journals.
        again = Journal(journal_path(tmp_path, session_id, "user", 2500), PCM16)
        again.write(0, tone(500))
        again.close()
        make_archive(tmp_path, session_id, 2500)
    samples, _ = soundfile.read(path)
    assert samples.shape == (4000 * 24, 2)
    heard = [[level(samples[:, side], at, at + 400) > 0.1 for at in range(50, 4000, 500)] for side in (0, 1)]
    assert heard[0] == [True, True, False, False, False, False, True, True]
    assert heard[1] == [False, True, True, True, True, False, False, False]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
