"""One side of a live recording: a mono WAV file that can be opened at any moment, even after kill -9."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError

_TAGS: Final = {AudioFormat.PCM16: 1, AudioFormat.PCMA: 6, AudioFormat.PCMU: 7}
_HEADER: Final = struct.Struct("<4sI4s4sIHHIIHHH4sII4sI")
"""RIFF, a ``fmt `` chunk of 18 bytes, a ``fact`` chunk with the number of samples, the head of ``data``."""
HEADER_BYTES: Final = _HEADER.size
_MAX_BYTES: Final = 2**32 - 1 - HEADER_BYTES
_COPY_BYTES: Final = 1 << 18


class Journal:
    """A WAV file that is written by sample position. Positions and lengths are in samples.

    Its header says the right length after every method. Methods raise ``OSError``.
    """

    def __init__(self, path: Path, audio_format: AudioFormat) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._format = audio_format
        self._file = path.open("xb+", buffering=0)
        self._samples = 0
        self._write_header()

    @property
    def samples(self) -> int:
        """How long the file is."""
        return self._samples

    def write(self, position: int, data: bytes) -> None:
        """Put ``data`` at ``position``, after silence where that is past the end."""
        width = self._format.sample_bytes
        if position > self._samples:
            self._fill(position - self._samples)
        self._file.seek(HEADER_BYTES + position * width)
        self._write_all(data)
        self._samples = max(self._samples, position + len(data) // width)
        self._write_header()

    def truncate(self, samples: int) -> None:
        """Drop everything after ``samples``."""
        if samples < self._samples:
            self._samples = samples
            self._file.truncate(HEADER_BYTES + samples * self._format.sample_bytes)
            self._write_header()

    def remove(self, start: int, length: int) -> None:
        """Take out ``length`` samples at ``start``; what follows moves up."""
        width = self._format.sample_bytes
        source, target = start + length, start
        while source < self._samples:
            self._file.seek(HEADER_BYTES + source * width)
            chunk = self._file.read(_COPY_BYTES) or b""
            self._file.seek(HEADER_BYTES + target * width)
            self._write_all(chunk)
            source, target = source + len(chunk) // width, target + len(chunk) // width
        self.truncate(self._samples - min(length, max(0, self._samples - start)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fill(self, samples: int) -> None:
        self._file.seek(HEADER_BYTES + self._samples * self._format.sample_bytes)
        block = self._format.silence * (_COPY_BYTES // self._format.sample_bytes)
        left = samples * self._format.sample_bytes
        while left > 0:
            self._write_all(block[:left])
            left -= len(block)
        self._samples += samples

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def _write_header(self) -> None:
        width, rate = self._format.sample_bytes, self._format.rate_hz
        size = min(self._samples * width, _MAX_BYTES)
        self._file.seek(0)
        self._write_all(
            _HEADER.pack(b"RIFF", HEADER_BYTES - 8 + size, b"WAVE", b"fmt ", 18, _TAGS[self._format], 1, rate,
                         rate * width, width, 8 * width, 0, b"fact", 4, self._samples, b"data", size)
        )  # fmt: skip


class JournalReader:
    """Reads a journal that another process may have left. Raises ``AudioFormatError`` for any other file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        head = self._file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            self._file.close()
            raise AudioFormatError("The file is too short to be a journal.")
        fields = _HEADER.unpack(head)
        formats = {tag: audio_format for audio_format, tag in _TAGS.items()}
        if fields[0] != b"RIFF" or fields[2] != b"WAVE" or fields[5] not in formats:
            self._file.close()
            raise AudioFormatError("The file is not a journal.")
        self.format = formats[fields[5]]

    def read(self, samples: int) -> bytes:
        """Return the next samples, fewer at the end and none after it.

        All that the file holds counts, whatever its header says: a killed process may have written more.
        """
        width = self.format.sample_bytes
        data = self._file.read(samples * width)
        return data[: len(data) - len(data) % width]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
