"""Between the page's audio formats and the service's, which may differ."""

from __future__ import annotations

from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Transcoder
from voiceapp.types import JsonObject


class Transcoding:
    """Turns the page's audio into the service's and back; nothing is done where both are the same.

    ``input`` and ``output`` are the page's formats. A filter remembers what it was fed, so each turn and each
    item has one of its own.
    """

    def __init__(self, input: AudioFormat, output: AudioFormat) -> None:  # noqa: A002
        self.input = input
        self.output = output
        self._upstream_input, self._upstream_output = input, output
        self._up: Transcoder | None = None
        self._down: dict[str, Transcoder] = {}

    def agree(self, upstream_input: AudioFormat, upstream_output: AudioFormat) -> None:
        """Take the formats that the service uses."""
        if upstream_input is not self._upstream_input:
            self._up = None
        if upstream_output is not self._upstream_output:
            self._down.clear()
        self._upstream_input, self._upstream_output = upstream_input, upstream_output

    def to_upstream(self, data: bytes) -> bytes:
        """Return microphone audio in the service's format; it may lag, and be nothing yet."""
        if self.input is self._upstream_input:
            return data
        if self._up is None:
            self._up = Transcoder(self.input, self._upstream_input)
        return self._up.feed(data)

    def rest_before(self, event: JsonObject) -> bytes:
        """Return what the filter holds of a turn that this client event ends; the next one starts anew."""
        kind = event["type"]
        if self._up is None or kind not in ("input_audio_buffer.commit", "input_audio_buffer.clear"):
            return b""
        up, self._up = self._up, None
        return up.feed(b"", last=True) if kind == "input_audio_buffer.commit" else b""

    def to_browser(self, samples: bytes, item_id: str) -> bytes:
        """Return audio of an item in the page's format; it may lag, and be nothing yet."""
        if self.output is self._upstream_output:
            return samples
        down = self._down.get(item_id)
        if down is None:
            down = self._down[item_id] = Transcoder(self._upstream_output, self.output)
        return down.feed(samples)

    def rest_to_browser(self, item_id: str) -> bytes:
        """Return what the filter still holds of an item that is complete, or was cut."""
        down = self._down.pop(item_id, None)
        return down.feed(b"", last=True) if down else b""
