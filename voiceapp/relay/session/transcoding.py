"""Between the page's audio formats and the service's, which may differ."""

from __future__ import annotations

from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Transcoder


class Transcoding:
    """Turns the page's audio into the service's and back; nothing is done where both are the same.

    ``input`` and ``output`` are the page's formats.
    """

    def __init__(self, input: AudioFormat, output: AudioFormat) -> None:  # noqa: A002
        self.input = input
        self.output = output
        self._up: Transcoder | None = None
        self._down: Transcoder | None = None

    def agree(self, upstream_input: AudioFormat, upstream_output: AudioFormat) -> None:
        """Take the formats that the service uses."""
        self._up = _between(self._up, self.input, upstream_input)
        self._down = _between(self._down, upstream_output, self.output)

    def to_upstream(self, data: bytes) -> bytes:
        """Return microphone audio in the service's format."""
        return self._up.feed(data) if self._up else data

    def to_browser(self, samples: bytes) -> bytes:
        """Return an answer's audio in the page's format."""
        return self._down.feed(samples) if self._down else samples

    def rest_to_browser(self) -> bytes:
        """Return what the resampler still holds of an answer; the next one starts anew."""
        if self._down is None:
            return b""
        rest = self._down.feed(b"", last=True)
        self._down = Transcoder(self._down.source, self._down.target)
        return rest


def _between(current: Transcoder | None, source: AudioFormat, target: AudioFormat) -> Transcoder | None:
    if source is target:
        return None
    if current is not None and (current.source, current.target) == (source, target):
        return current
    return Transcoder(source, target)
