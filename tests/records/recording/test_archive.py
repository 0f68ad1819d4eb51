"""From journals to one archive, even after kill -9 and for sessions that move between processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import wave
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
import soundfile

from tests.parts.recorded import PCM16, PCMA, PCMU, archived, level, tone
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording import archive
from voiceapp.records.recording.archive import archiver, journal_path, make_archive
from voiceapp.records.recording.journal import Journal, JournalReader
from voiceapp.records.recording.recorder import Recorder, repair


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
import asyncio, pathlib, sys, threading, uuid
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording.recorder import Disk, Recorder, disk
async def main():
    live = Recorder(pathlib.Path(sys.argv[1]), uuid.UUID(sys.argv[2]), AudioFormat.PCM16, AudioFormat.PCMU)
    at = 0
    while True:
        at += 20
        live.microphone(bytes([1, 2]) * 480, at)
        live.assistant("a", bytes([5]) * 160, at - 20)
        print(at, flush=True)
        if at % 100 == 0:
            # Here time passes faster than it does: the disk, which is as fast as it is, keeps pace.
            kept = threading.Event()
            disk().submit(kept.set)
            kept.wait()
        await asyncio.sleep(0)
with disk.use(Disk()):
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
    archiver().wait()
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
    archiver().wait()
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
    archiver().submit(tmp_path, {broken: 0})
    archiver().submit(tmp_path, {whole: 0})
    archiver().wait()
    assert archive.archive_path(tmp_path, whole).exists()


def test_files_that_are_no_journals_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.wav").write_text("hello")
    broken = journal_path(tmp_path, UUID(int=1), "user")
    broken.write_bytes(b"RIFF")
    repair(tmp_path, lambda ids: set())
    archiver().wait()
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
    archiver().wait()
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
        archiver().wait()
    second = Recorder(tmp_path, session_id, PCM16, PCM16, from_ms=2500)
    second.microphone(loud, 4000)
    path = await second.aclose()
    assert path is not None
    archiver().wait()
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
