"""The input audio buffer: what was appended and not yet committed, on the session's audio clock. Pure."""

from __future__ import annotations

from typing import Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session import validation

MIN_COMMIT_MS: Final = 100
MAX_BYTES: Final = 15 * 1024 * 1024
"""Audio that may wait for a commit: more than five minutes of PCM16, half an hour of G.711."""


class InputBuffer:
    """Bytes in the input format; the clock counts all audio appended since the session began."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._data = bytearray()
        self._start_ms = 0.0

    @property
    def start_ms(self) -> float:
        """The clock at the first sample still here."""
        return self._start_ms

    @property
    def end_ms(self) -> float:
        """The clock after the last sample."""
        return self._start_ms + self._format.duration_ms(len(self._data))

    def change_format(self, audio_format: AudioFormat) -> None:
        """Expect ``audio_format``; what was not committed in the old one is dropped."""
        if audio_format is not self._format:
            self.clear()
            self._format = audio_format

    def append(self, audio: bytes) -> None:
        """Add whole samples; raise ``ProtocolError`` where too much waits already."""
        if len(self._data) + len(audio) > MAX_BYTES:
            raise validation.refuse(
                "input_audio_buffer_full",
                f"Error appending audio: the buffer may hold {MAX_BYTES} bytes. Commit or clear it first.",
                "audio",
            )
        self._data += audio

    def clear(self) -> None:
        """Drop everything; the clock goes on."""
        self._start_ms = self.end_ms
        self._data.clear()

    def commit(self) -> tuple[bytes, float, float]:
        """Take everything out: the audio, and when it began and ended."""
        waiting_ms = self.end_ms - self._start_ms
        if waiting_ms < MIN_COMMIT_MS:
            raise validation.refuse(
                "input_audio_buffer_commit_empty",
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{MIN_COMMIT_MS}ms of audio, but buffer only has {waiting_ms:.2f}ms of audio.",
                None,
            )
        audio, start_ms, end_ms = bytes(self._data), self._start_ms, self.end_ms
        self.clear()
        return audio, start_ms, end_ms

    def take(self, start_ms: float, end_ms: float) -> bytes:
        """Take a turn out: return its audio and drop everything up to its end."""
        first, last = self._offset(start_ms), self._offset(end_ms)
        audio = bytes(self._data[first:last])
        self._drop(last)
        return audio

    def forget(self, before_ms: float) -> None:
        """Drop what lies before a time: silence that no turn will need."""
        self._drop(self._offset(before_ms))

    def _offset(self, at_ms: float) -> int:
        samples = round((at_ms - self._start_ms) * self._format.rate_hz / 1000)
        return min(max(samples * self._format.sample_bytes, 0), len(self._data))

    def _drop(self, count: int) -> None:
        del self._data[:count]
        self._start_ms += self._format.duration_ms(count)
