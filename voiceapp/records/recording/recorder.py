"""Live recording of both sides of a session on one clock.

The event loop only adds frames to a small buffer; one thread of the process writes them to journals in
blocks of half a second. After the session its journals become one archive.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from voiceapp.audio.formats import AudioFormat
from voiceapp.records.recording.archive import (
    archive_path,
    archiver,
    journal_path,
    left_journals,
    recordings_folder,
)
from voiceapp.records.recording.journal import Journal
from voiceapp.records.threads import yield_to_audio
from voiceapp.types import Part

__all__ = ["Recorder", "recordings_folder", "repair"]

logger = logging.getLogger(__name__)

BLOCK_MS: Final = 500
SLACK_MS: Final = 200
"""Frames come unevenly: a track is moved to the clock only when it is off by more than this."""
AHEAD_MS: Final = 1_000
"""A microphone that runs further ahead of the clock is not recorded: time cannot be sent faster than it
passes, and a page must not be able to fill the disk."""
HOLE_KEPT_MS: Final = 15_000
"""How much speech may follow a hole before the hole counts as real silence: longer than a page buffers."""
ITEMS_KEPT: Final = 64
"""Items whose place on the track is known; a cut concerns one of the last two or three."""
MAX_WAITING_BYTES: Final = 64 << 20
"""Audio that may wait for the disk in a process: 500 sessions make 48 MB a second at most. Beyond it blocks
are dropped, and become silence."""


class Disk:
    """The process's recording thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: deque[tuple[Callable[[], None], int]] = deque()
        self._waiting_bytes = 0
        self._thread: threading.Thread | None = None

    def submit(self, task: Callable[[], None], size_bytes: int = 0) -> bool:
        """Queue ``task``; refuse one that carries audio where too much of it waits."""
        with self._changed:
            if size_bytes and self._waiting_bytes + size_bytes > MAX_WAITING_BYTES:
                return False
            self._waiting_bytes += size_bytes
            self._due.append((task, size_bytes))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def _run(self) -> None:
        yield_to_audio()
        while True:
            # A call of its own: what the last task held is given back before the thread waits again.
            self._do_next()

    def _do_next(self) -> None:
        with self._changed:
            while not self._due:
                self._changed.wait()
            task, size_bytes = self._due.popleft()
            self._waiting_bytes -= size_bytes
        try:
            task()
        except Exception:
            # The recordings of all other sessions depend on this thread.
            logger.exception("a part of a recording is lost")


disk: Final = Part[Disk]("thread of recordings")


class _Track:
    """One side: what waits for the next block, and the journal, which only the recording thread touches."""

    def __init__(self, path: Path, audio_format: AudioFormat) -> None:
        self.format = audio_format
        self.samples_per_ms = audio_format.rate_hz // 1000
        self.slack = self.samples(SLACK_MS)
        self._block_bytes = BLOCK_MS * audio_format.bytes_per_ms
        self.end = 0
        """Where the next sample goes, in samples."""
        self._path = path
        self._journal: Journal | None = None
        self._broken = False
        self._dropping = False
        self._held = bytearray()
        self._held_at = 0

    def samples(self, ms: float) -> int:
        return round(ms * self.samples_per_ms)

    @property
    def empty(self) -> bool:
        return self.end == 0

    def append(self, data: bytes, position: int) -> None:
        """Lay ``data`` at ``position``, at or after the end."""
        if position != self.end:
            self.flush()
        if not self._held:
            self._held_at = position
        self._held += data
        self.end = position + len(data) // self.format.sample_bytes
        if len(self._held) >= self._block_bytes:
            self.flush()

    def flush(self) -> None:
        """Hand what waits to the recording thread."""
        if not self._held:
            return
        position, data = self._held_at, bytes(self._held)
        self._held.clear()
        accepted = disk().submit(
            lambda: self._on_disk(lambda journal: journal.write(position, data)), len(data)
        )
        if not accepted and not self._dropping:
            logger.error("the disk is too slow: parts of recording %s are silence", self._path.name)
        self._dropping = not accepted

    def truncate(self, samples: int) -> None:
        if samples >= self.end:
            return
        self.flush()
        self.end = samples
        disk().submit(lambda: self._on_disk(lambda journal: journal.truncate(samples)))

    def remove(self, start: int, length: int) -> None:
        self.flush()
        self.end -= length
        disk().submit(lambda: self._on_disk(lambda journal: journal.remove(start, length)))

    def close(self) -> None:
        """Close the journal; for the recording thread."""
        if self._journal is None:
            return
        try:
            self._journal.close()
        except OSError as error:
            # Some file systems say only now that they could not keep what was written.
            logger.error("the end of recording %s may be missing: %s", self._path.name, error.strerror)

    def _on_disk(self, change: Callable[[Journal], None]) -> None:
        if self._broken:
            return
        try:
            if self._journal is None:
                self._journal = Journal(self._path, self.format)
            change(self._journal)
        except OSError as error:
            self._broken = True
            logger.error("recording %s stops: %s", self._path.name, error.strerror)


class _Piece(NamedTuple):
    """Audio of an item that lies in one piece: its offset in the item, its place on the track, in samples."""

    offset: int
    place: int
    length: int


class Recorder:
    """Records one live session. ``at_ms`` is the session's clock at the moment the frame arrived.

    ``from_ms`` is where on that clock this recording begins: one that another process has begun goes on.

    Methods are called on the event loop for each frame and cost microseconds. Failures of the disk are
    logged and end the recording, never the session.
    """

    def __init__(
        self,
        folder: Path,
        session_id: UUID,
        input: AudioFormat,  # noqa: A002
        output: AudioFormat,
        from_ms: int = 0,
    ) -> None:
        self._folder = folder
        self._session_id = session_id
        self._from_ms = from_ms
        self._user = _Track(journal_path(folder, session_id, "user", from_ms), input)
        self._assistant = _Track(journal_path(folder, session_id, "assistant", from_ms), output)
        self._hole_at = 0
        self._hole = 0
        self._items: OrderedDict[str, list[_Piece]] = OrderedDict()
        self._cut: OrderedDict[str, None] = OrderedDict()

    def microphone(self, data: bytes, at_ms: float) -> None:
        """Add a microphone frame in the input format; it ends at ``at_ms``, give or take the network."""
        at_ms -= self._from_ms
        track = self._user
        length = len(data) // track.format.sample_bytes
        late = round(at_ms * track.samples_per_ms) - track.end - length
        slack = track.slack
        if -slack <= late <= slack:
            track.append(data, track.end)
            return
        if late > slack:
            self._hole_at, self._hole = track.end, late
            track.append(data, track.end + late)
            return
        if late < -slack and self._hole:
            self._close_hole(-late)
            late = track.samples(at_ms) - track.end - length
        if late >= -track.samples(AHEAD_MS):
            track.append(data, track.end)

    def _close_hole(self, early: int) -> None:
        """Move what followed a hole back into it: it was spoken then and came late, in a burst."""
        track = self._user
        if track.end - self._hole_at - self._hole > track.samples(HOLE_KEPT_MS):
            self._hole = 0
            return
        length = min(early, self._hole)
        track.remove(self._hole_at, length)
        self._hole -= length

    def assistant(self, item_id: str, data: bytes, at_ms: float) -> None:
        """Add audio of an item in the output format; it is played after what is still being played."""
        if item_id in self._cut:
            return
        at_ms -= self._from_ms
        track = self._assistant
        length = len(data) // track.format.sample_bytes
        pieces = self._items.setdefault(item_id, [])
        last = pieces[-1] if pieces else None
        place = max(round(at_ms * track.samples_per_ms), track.end)
        if last and place - track.end <= track.slack:
            # The player's buffer hides a gap this short.
            place = track.end
        if last and last.place + last.length == place:
            pieces[-1] = last._replace(length=last.length + length)
        else:
            pieces.append(_Piece(last.offset + last.length if last else 0, place, length))
        track.append(data, place)
        if len(self._items) > ITEMS_KEPT:
            self._items.popitem(last=False)

    def cut(self, item_id: str, played_ms: int) -> None:
        """Barge-in: drop all of ``item_id`` after ``played_ms``, and what was to be played after it."""
        pieces = self._items.get(item_id)
        if pieces is None:
            return
        self._cut[item_id] = None
        if len(self._cut) > ITEMS_KEPT:
            self._cut.popitem(last=False)
        played = self._assistant.samples(played_ms)
        for piece in pieces:
            if played <= piece.offset + piece.length:
                self._assistant.truncate(piece.place + max(0, played - piece.offset))
                return
        self._assistant.truncate(pieces[-1].place + pieces[-1].length)

    async def aclose(self) -> Path | None:
        """Write what is left; return where the archive will be, or ``None`` where nothing was recorded.

        The archive is made afterwards, in a thread of its own.
        """
        if self._user.empty and self._assistant.empty:
            return None
        loop, closed = asyncio.get_running_loop(), asyncio.Event()
        self._user.flush()
        self._assistant.flush()

        def close() -> None:
            self._user.close()
            self._assistant.close()
            archiver().submit(self._folder, {self._session_id: self._from_ms})
            loop.call_soon_threadsafe(closed.set)

        disk().submit(close)
        await closed.wait()
        return archive_path(self._folder, self._session_id)


def repair(folder: Path, live: Callable[[set[UUID]], set[UUID]]) -> dict[UUID, Path]:
    """Begin to archive the journals that dead processes left; return the archives' paths by session.

    ``live`` returns those of the given sessions that are being recorded now; they are left alone.
    """
    # The folder is read first: whatever is in it belongs to a session that the records already know.
    found = left_journals(folder)
    recorded = live(set(found)) if found else set()
    dead = {session_id: last_ms for session_id, last_ms in found.items() if session_id not in recorded}
    archiver().submit(folder, dead)
    return {session_id: archive_path(folder, session_id) for session_id in dead}
