"""What a microphone brought: samples at 16 kHz on the buffer's clock, and where speech is in them.

``Ear`` belongs to one stream and is used by one thread at a time. ``Captions`` turns decodings that revise
one another into pieces that can only be appended.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np
import soxr
from numpy.typing import NDArray

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import from_float, level_dbfs, to_float
from voiceapp.engine.hearing.dtmf import KeyDetector
from voiceapp.engine.inference.vad import RATE_HZ, WINDOW_SAMPLES, Detector, DetectorModel
from voiceapp.engine.turns.detector import WINDOW_MS
from voiceapp.language.punctuation import UNCERTAIN

Samples = NDArray[np.float32]

_SAMPLES_PER_MS: Final = RATE_HZ // 1000
PRE_ROLL_MS: Final = 300
"""Kept before speech for the recogniser, which mishears words that begin at once."""
TAIL_MS: Final = 160
"""Kept after speech, for the same reason."""
SEGMENT_MS: Final = 12_000
"""Longer speech is recognised in pieces of about this length: the model was made for short ones."""
_SEARCH_MS: Final = 6_000
_SPEECH: Final = 0.5
# The recogniser guesses at the end of speech that is cut off, at most this far back.
_UNCERTAIN_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class Window:
    """Probability of speech in the ``WINDOW_MS`` that begin at ``start_ms``, and their level in dBFS."""

    probability: float
    start_ms: int
    level: float


class Ear:
    """One stream of microphone audio in any of the three formats."""

    def __init__(self, model: DetectorModel, audio_format: AudioFormat) -> None:
        self._detector = Detector(model)
        self._format = audio_format
        self._resampler = _resampler(audio_format)
        self._pending = np.zeros(0, np.float32)
        self._kept = bytearray()
        self._kept_from = 0
        self._windows: list[Window] = []
        self._heard = 0
        self._key_detector = KeyDetector()
        self._keys: list[str] = []

    @property
    def end_ms(self) -> int:
        """Where detection has come to on the buffer's clock."""
        return self._heard * WINDOW_MS

    def change_format(self, audio_format: AudioFormat) -> None:
        """Expect ``audio_format`` from now on; the clock and the detector's memory go on."""
        if audio_format is self._format:
            return
        self._take(np.zeros(0, np.float32), last=True)
        self._format = audio_format
        self._resampler = _resampler(audio_format)

    def hear(self, data: bytes) -> list[Window]:
        """Take audio in the stream's format (whole samples); return the windows that it completed."""
        samples = data if self._format is AudioFormat.PCM16 else g711.decode(data, self._format)
        self._take(to_float(samples))
        found: list[Window] = []
        while self._pending.size >= WINDOW_SAMPLES:
            chunk, self._pending = self._pending[:WINDOW_SAMPLES], self._pending[WINDOW_SAMPLES:]
            probability = self._detector.feed(chunk)
            level = level_dbfs(from_float(chunk))
            window = Window(probability, self._heard * WINDOW_MS, level)
            self._heard += 1
            self._windows.append(window)
            found.append(window)
        return found

    def keys_pressed(self) -> list[str]:
        """Return the telephone keys pressed since this was last asked."""
        keys, self._keys = self._keys, []
        return keys

    def samples(self, start_ms: int, end_ms: int) -> Samples:
        """Return what was heard in the given time as float32 at 16 kHz; forgotten audio is left out."""
        start = max(0, start_ms * _SAMPLES_PER_MS - self._kept_from)
        end = max(start, end_ms * _SAMPLES_PER_MS - self._kept_from)
        return to_float(bytes(self._kept[start * 2 : end * 2]))

    def forget(self, before_ms: int) -> None:
        """Let go of audio and probabilities from before ``before_ms``."""
        drop = before_ms * _SAMPLES_PER_MS - self._kept_from
        if drop > 0:
            drop = min(drop, len(self._kept) // 2)
            del self._kept[: drop * 2]
            self._kept_from += drop
            self._windows = [window for window in self._windows if window.start_ms >= before_ms - WINDOW_MS]

    def speech_span(self, start_ms: int, end_ms: int) -> tuple[int, int] | None:
        """Return where speech is between two times, with pre-roll and tail; ``None`` where there is none."""
        spoken = self.spoken(start_ms, end_ms)
        if spoken is None:
            return None
        return max(start_ms, spoken[0] - PRE_ROLL_MS), min(end_ms, spoken[1] + TAIL_MS)

    def spoken(self, start_ms: int, end_ms: int) -> tuple[int, int] | None:
        """Return when speech begins and ends between two times; ``None`` where there is none.

        This gate keeps words that the recogniser would find in silence or noise from being said.
        """
        spoken = [
            window.start_ms
            for window in self._windows
            if start_ms <= window.start_ms < end_ms and window.probability >= _SPEECH
        ]
        if not any(second - first == WINDOW_MS for first, second in itertools.pairwise(spoken)):
            # One window alone is a click.
            return None
        return spoken[0], spoken[-1] + WINDOW_MS

    def cut_point(self, start_ms: int, end_ms: int) -> int | None:
        """Return where speech of more than ``SEGMENT_MS`` is best divided, ``None`` if it is shorter."""
        if end_ms - start_ms <= SEGMENT_MS:
            return None
        limit = start_ms + SEGMENT_MS
        candidates = [w for w in self._windows if limit - _SEARCH_MS <= w.start_ms < limit]
        if not candidates:
            return limit
        return min(candidates, key=lambda w: (w.probability, -w.start_ms)).start_ms + WINDOW_MS // 2

    def _take(self, samples: Samples, *, last: bool = False) -> None:
        resampled = self._resampler.resample_chunk(samples, last=last)
        self._kept += from_float(resampled)
        self._pending = np.concatenate((self._pending, resampled))
        self._keys += self._key_detector.feed(resampled)


def _resampler(audio_format: AudioFormat) -> soxr.ResampleStream:
    # In floating point: for 16-bit samples the library adds random dither, and nobody would be heard
    # the same way twice.
    return soxr.ResampleStream(audio_format.rate_hz, RATE_HZ, 1, dtype="float32", quality="LQ")


class Captions:
    """Words of one turn as pieces to append, from decodings of more and more of its audio.

    A word is given out once two decodings agree on it, or once several further words follow it. What was
    given out is never taken back; where a later decoding contradicts it, the rest waits for the final
    transcript.
    """

    def __init__(self) -> None:
        self._said = ""
        self._before = ""

    @property
    def said(self) -> str:
        """All that was given out."""
        return self._said

    def feed(self, text: str, *, eager: bool = False) -> str:
        """Take a decoding of the audio so far; return what can be appended (often nothing).

        ``eager`` also gives out a first word that nothing confirms yet: the user has waited for long enough.
        """
        words = text.split()
        agreed = _common_words(words, self._before.split())
        self._before = text
        count = max(len(words) - _UNCERTAIN_WORDS, agreed)
        if eager and not self._said:
            count = max(count, min(1, len(words)))
        return self._append(_strip_end(" ".join(words[:count])))

    def finish(self, text: str) -> str:
        """Take the final transcript; return what is missing where it continues what was given out."""
        return self._append(text)

    def _append(self, text: str) -> str:
        if len(text) <= len(self._said) or not text.startswith(self._said):
            return ""
        piece = text[len(self._said) :]
        # In the middle of a word ("can" then "cannot") nothing may be appended.
        if self._said and piece[0].isalnum():
            return ""
        self._said = text
        return piece


def _strip_end(text: str) -> str:
    return text.rstrip(UNCERTAIN)


def _common_words(first: list[str], second: list[str]) -> int:
    count = 0
    for one, two in zip(first, second, strict=False):
        if _strip_end(one).lower() != _strip_end(two).lower():
            break
        count += 1
    return count
