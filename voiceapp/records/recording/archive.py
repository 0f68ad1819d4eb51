"""From two journals to one stereo FLAC file: left the user, right the assistant, 24 kHz.

A thread of its own does this, one session after another: an hour of audio takes seconds, and the thread
that writes live journals must not wait for it.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
import soundfile

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Resampler
from voiceapp.datafolder.processes import alone
from voiceapp.errors import AudioFormatError
from voiceapp.records.recording.journal import HEADER_BYTES, JournalReader
from voiceapp.records.threads import yield_to_audio
from voiceapp.types import Part

logger = logging.getLogger(__name__)

RATE_HZ: Final = 24_000
SIDES: Final = ("user", "assistant")
_BLOCK_MS: Final = 1_000
_COMMENT: Final = "parts "
Stereo = np.ndarray[tuple[int, int], np.dtype[np.int16]]
"""16-bit samples of shape (samples, 2)."""


def recordings_folder(data_dir: Path) -> Path:
    """Return where journals and archives of recordings are kept."""
    return data_dir / "recordings"


def journal_path(folder: Path, session_id: UUID, side: str, from_ms: int = 0) -> Path:
    """Return the journal of one side, ``user`` or ``assistant``.

    A session that another process took over has a part for each, which begins at ``from_ms`` of its clock.
    """
    part = f".{from_ms}" if from_ms else ""
    return folder / f"{session_id}{part}.{side}.wav"


def archive_path(folder: Path, session_id: UUID) -> Path:
    """Return where a session's archive is, or will be."""
    return folder / f"{session_id}.flac"


def left_journals(folder: Path) -> dict[UUID, int]:
    """Return where the last part of each session begins of which there are journals, live ones among them."""
    found: dict[UUID, int] = {}
    for path in folder.glob("*.wav"):
        try:
            session_id = UUID(path.name.split(".")[0])
        except ValueError:
            continue
        found[session_id] = max(found.get(session_id, 0), _begin_ms(path))
    return found


def make_archive(folder: Path, session_id: UUID, last_ms: int) -> Path:
    """Turn a session's journals into its archive and remove them; return the archive's path.

    ``last_ms`` is where the last part begins that is complete: one after it belongs to the process that has
    taken the session over, and still grows. Parts that are in the archive already stay in it. Raises
    ``OSError`` or ``soundfile.SoundFileError``; the journals stay then, for the next try.
    """
    path = archive_path(folder, session_id)
    # The process that a session was taken over from may be at it as well.
    with alone(folder.with_name(f".{folder.name}.lock")):
        parts = [part for part in _parts(folder, session_id) if part <= last_ms]
        held = _held(path)
        # A process that hung while another one went on and ended has nothing to add.
        due = [part for part in parts if part > max(held, default=-1)]
        if due or not held:
            _combine(folder, session_id, sorted(held), due or [0])
        for part in parts:
            for side in SIDES:
                journal_path(folder, session_id, side, part).unlink(missing_ok=True)
    return path


def _parts(folder: Path, session_id: UUID) -> list[int]:
    """Return where the parts begin of which there are journals, in milliseconds."""
    return sorted({_begin_ms(path) for path in folder.glob(f"{session_id}.*wav")})


def _begin_ms(journal: Path) -> int:
    """Return where the part of a journal begins."""
    part = journal.name.split(".")[1]
    return int(part) if part.isdecimal() else 0


def _held(path: Path) -> set[int]:
    """Return the parts that an archive has; they stand in its comment."""
    if not path.exists():
        return set()
    with soundfile.SoundFile(path) as archive:
        said = str(archive.comment).removeprefix(_COMMENT).split(",")
    return {int(part) for part in said if part.isdecimal()} or {0}


def journals_ms(folder: Path, session_id: UUID) -> int:
    """Return where the last of a session's journals ends on its clock, 0 where there is none."""
    ends = [
        part + length
        for part in _parts(folder, session_id)
        for side in SIDES
        if (length := _length_ms(journal_path(folder, session_id, side, part)))
    ]
    return max(ends, default=0)


def _length_ms(journal: Path) -> int:
    try:
        reader = JournalReader(journal)
        reader.close()
        # It may become part of the archive at any moment.
        size_bytes = journal.stat().st_size
    except (FileNotFoundError, AudioFormatError):
        return 0
    return round(reader.format.duration_ms(max(0, size_bytes - HEADER_BYTES)))


def _combine(folder: Path, session_id: UUID, held: list[int], due: list[int]) -> None:
    """Write the archive: what it holds already, then each part at its place on the session's clock."""
    path = archive_path(folder, session_id)
    draft = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.flac")
    begins = [part * RATE_HZ // 1000 for part in due]
    # What a part still held when the next process took over was never heard.
    ends = [*begins[1:], None]
    try:
        with draft.open("xb") as file:
            with soundfile.SoundFile(file, "w", RATE_HZ, 2, "PCM_16", format="FLAC") as out:
                out.comment = _COMMENT + ",".join(str(part) for part in sorted([*held, *due]))
                if held:
                    _lay(out, _archived(path), 0, begins[0])
                for part, begin, end in zip(due, begins, ends, strict=True):
                    _lay(out, _recorded(folder, session_id, part), begin, end)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _lay(out: soundfile.SoundFile, blocks: Iterator[Stereo], begin: int, end: int | None) -> None:
    """Append blocks, after silence up to ``begin`` and as far as ``end``, both in samples."""
    while (gap := begin - out.frames) > 0:
        out.write(np.zeros((min(gap, RATE_HZ), 2), np.int16))
    for block in blocks:
        out.write(block if end is None else block[: max(0, end - out.frames)])


def _archived(path: Path) -> Iterator[Stereo]:
    with soundfile.SoundFile(path) as archive:
        yield from archive.blocks(RATE_HZ, dtype="int16", always_2d=True)


def _recorded(folder: Path, session_id: UUID, part: int) -> Iterator[Stereo]:
    tracks = [_Side(journal_path(folder, session_id, side, part)) for side in SIDES]
    while any(track.more for track in tracks):
        yield _stereo(*(track.next_block() for track in tracks))


class _Side:
    """One journal as 16-bit samples at 24 kHz; a missing or broken one is silence."""

    def __init__(self, path: Path) -> None:
        self.more = False
        self._held = b""
        try:
            self._reader = JournalReader(path)
        except (FileNotFoundError, AudioFormatError):
            return
        self.more = True
        rate_hz = self._reader.format.rate_hz
        self._resampler = None if rate_hz == RATE_HZ else Resampler(rate_hz, RATE_HZ, quality="HQ")

    def next_block(self) -> bytes:
        """Return the next second; less at the end, nothing after it."""
        wanted = RATE_HZ * _BLOCK_MS // 1000 * 2
        while self.more and len(self._held) < wanted:
            self._held += self._decoded(self._reader.read(self._reader.format.rate_hz * _BLOCK_MS // 1000))
        block, self._held = self._held[:wanted], self._held[wanted:]
        return block

    def _decoded(self, data: bytes) -> bytes:
        last = not data
        if last:
            self.more = False
            self._reader.close()
        samples = data if self._reader.format is AudioFormat.PCM16 else g711.decode(data, self._reader.format)
        return self._resampler.feed(samples, last=last) if self._resampler else samples


def _stereo(left: bytes, right: bytes) -> Stereo:
    """Return 16-bit samples of shape (samples, 2); the shorter side is followed by silence."""
    samples = max(len(left), len(right)) // 2
    block = np.zeros((samples, 2), np.int16)
    for column, side in enumerate((left, right)):
        block[: len(side) // 2, column] = np.frombuffer(side, "<i2")
    return block


class Archiver:
    """The thread that makes archives; what is not made when the process ends is made at the next start."""

    def __init__(self) -> None:
        # Bounded by the sessions that ever ended in this process; an entry is a path, an id and a number.
        self._due: queue.Queue[tuple[Path, UUID, int]] = queue.Queue()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, folder: Path, complete: Mapping[UUID, int]) -> None:
        """Make archives as soon as may be, of each session up to its last complete part; returns at once."""
        for session_id, last_ms in complete.items():
            self._due.put((folder, session_id, last_ms))
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recording-archiver", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Block until everything submitted so far was tried."""
        self._due.join()

    def _run(self) -> None:
        yield_to_audio()
        while True:
            folder, session_id, last_ms = self._due.get()
            try:
                make_archive(folder, session_id, last_ms)
            except (OSError, soundfile.SoundFileError) as error:
                logger.error("the recording of session %s stays a journal: %s", session_id, error)
            except Exception:
                # All other sessions' recordings wait for this thread.
                logger.exception("the recording of session %s stays a journal", session_id)
            finally:
                self._due.task_done()


archiver: Final = Part[Archiver]("archiver of recordings")
