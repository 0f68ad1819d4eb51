"""The voice: text to speech with the time of every word.

``Voice`` is what the engine needs of a voice; ``HibariVoice`` is the one that ships. It reads one sentence
at a time; the durations that its network predicts per phoneme give the words' times.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from voiceapp.audio.pcm import from_float
from voiceapp.engine.inference.weights import WeightFile, open_model
from voiceapp.engine.session.items import TimedWord

RATE_HZ: Final = 24_000

WEIGHTS: Final = WeightFile(
    "hibari", "assets/hibari.onnx", "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
)
UNKNOWN_WORDS: Final = WeightFile(
    "hibari", "assets/oov.onnx", "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76"
)
# The network's own, internal output: how many steps of 25 ms each phoneme lasts.
_DURATIONS: Final = b"/Cast_32_output_0"
_STEP_SAMPLES: Final = 600
_MAX_PHONEMES: Final = 400
# The network begins with a third of a second of silence, which would be heard as hesitation.
_LEAD_SAMPLES: Final = RATE_HZ * 20 // 1000
_TAIL_SAMPLES: Final = RATE_HZ * 250 // 1000
_AUDIBLE: Final = 0.01
_MIN_SPEED, _MAX_SPEED = 0.5, 2.0


@dataclass(frozen=True, slots=True)
class Speech:
    """16-bit samples at 24 kHz, and the words in them, as written and with the space that follows each.

    The words' texts joined are the text spoken; their times count from the first sample.
    """

    samples: bytes
    words: tuple[TimedWord, ...]

    @property
    def duration_ms(self) -> float:
        """How long it lasts."""
        return len(self.samples) / (RATE_HZ * 2 / 1000)


class Voice(Protocol):
    """A voice; ``speak`` may run in several threads at once."""

    def speak(self, sentence: str, speed: float = 1.0) -> Speech:
        """Return ``sentence`` as speech; ``speed`` 1.0 is the voice's own pace."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """One word as the voice reads it ("nine" for "9"), and its phonemes' ids."""

    text: str
    ids: list[int]


class HibariVoice:
    """Hibari's one bundled voice, American English."""

    def __init__(self) -> None:
        UNKNOWN_WORDS.read()
        self._session = open_model(with_output(WEIGHTS.read(), _DURATIONS))
        hibari: Any = importlib.import_module("hibari.tts")
        self._dsp: Any = importlib.import_module("hibari.dsp")
        self._normalize: Any = importlib.import_module("hibari.g2p.normalize").normalize
        package: Any = importlib.import_module("hibari.g2p")
        self._g2p: Any = package.G2P()
        # Reading the vocabulary from the file rather than from a Hibari spares a second copy of the model.
        self._vocabulary: dict[str, int] = package._load_json("vocab.json")
        self._space = self._vocabulary[" "]
        assert hibari.SAMPLE_RATE == RATE_HZ

    def speak(self, sentence: str, speed: float = 1.0) -> Speech:
        """Return ``sentence`` as speech; text without a single pronounceable sign gives no samples."""
        pace = min(max(speed, _MIN_SPEED), _MAX_SPEED)
        samples: list[NDArray[np.float32]] = []
        spoken: list[TimedWord] = []
        position = 0
        for group in _groups(self._read(sentence)):
            audio, ends = self._synthesise(group, pace)
            begin, end = _audible_span(audio)
            start = position
            for word, stop in zip(group, ends, strict=True):
                # Times are counted from the first sample kept, so the silence cut off in front is subtracted.
                until = position + min(max(stop - begin, 0), end - begin)
                spoken.append(TimedWord(word.text, start * 1000 / RATE_HZ, until * 1000 / RATE_HZ))
                start = until
            samples.append(audio[begin:end])
            position += end - begin
        joined = np.concatenate(samples) if samples else np.zeros(0, np.float32)
        return Speech(from_float(joined), align_words(sentence, spoken))

    def _read(self, sentence: str) -> list[_Spoken]:
        tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(self._normalize(sentence)))
        words: list[_Spoken] = []
        text, ids = "", list[int]()
        for token in tokens:
            text += token.text
            ids += [self._vocabulary[sign] for sign in token.phonemes or "" if sign in self._vocabulary]
            if token.whitespace:
                words.append(_Spoken(text, ids))
                text, ids = "", []
        if text:
            words.append(_Spoken(text, ids))
        return words

    def _synthesise(self, group: Sequence[_Spoken], pace: float) -> tuple[NDArray[np.float32], list[int]]:
        """Return the samples of a group and the sample at which each of its words ends."""
        ids, lasts = [0], list[int]()
        for word in group:
            ids += word.ids
            lasts.append(len(ids))
            ids.append(self._space)
        ids[-1] = 0
        feed = {"ids": np.array([ids], np.int64), "speed": np.array([pace], np.float32)}
        *spectra, durations = self._session.run(None, feed)
        if not any(word.ids for word in group):
            return np.zeros(0, np.float32), [0] * len(group)
        # The same text sounds the same every time: the noise in the voice is seeded.
        audio = self._dsp.synth(*(part[0] for part in spectra), np.random.default_rng(0))
        edges = np.cumsum(np.asarray(durations).reshape(-1)) * _STEP_SAMPLES
        return audio, [int(edges[last - 1]) for last in lasts]


def _groups(words: list[_Spoken]) -> list[list[_Spoken]]:
    """Divide words so that no group is longer than the network can read."""
    groups: list[list[_Spoken]] = []
    size = _MAX_PHONEMES
    for word in words:
        part = _Spoken(word.text, word.ids[:_MAX_PHONEMES])
        size += len(part.ids) + 1
        if size > _MAX_PHONEMES:
            groups.append([])
            size = len(part.ids) + 1
        groups[-1].append(part)
    return groups


def _audible_span(audio: NDArray[np.float32]) -> tuple[int, int]:
    audible = np.flatnonzero(np.abs(audio) > _AUDIBLE)
    if not audible.size:
        return 0, 0
    return max(0, int(audible[0]) - _LEAD_SAMPLES), min(audio.size, int(audible[-1]) + _TAIL_SAMPLES)


def align_words(sentence: str, spoken: Sequence[TimedWord]) -> tuple[TimedWord, ...]:
    """Return the words of ``sentence`` as written, timed by the words that were spoken for them.

    Where what is written and what is said differ ("9:30", "nine thirty"), the written words share the time of
    the spoken ones by their length.
    """
    written = re.findall(r"\s*\S+\s*", sentence)
    written_cores = [_core(word) for word in written]
    spoken_cores = [_core(word.text) for word in spoken]
    matcher = difflib.SequenceMatcher(None, written_cores, spoken_cores, autojunk=False)
    words: list[TimedWord] = []
    clock = 0.0
    for kind, first, last, start, stop in matcher.get_opcodes():
        if kind == "equal":
            for offset in range(last - first):
                time = spoken[start + offset]
                words.append(TimedWord(written[first + offset], time.start_ms, time.end_ms))
            clock = words[-1].end_ms
            continue
        until = spoken[stop - 1].end_ms if stop > start else clock
        weight = sum(len(core) for core in written_cores[first:last]) or 1
        begin, step = clock, (until - clock) / weight
        for index in range(first, last):
            end = begin + step * len(written_cores[index])
            words.append(TimedWord(written[index], begin, end))
            begin = end
        clock = max(clock, until)
    return tuple(words)


def _core(word: str) -> str:
    return "".join(sign for sign in word.lower() if sign.isalnum())


def with_output(model: bytes, name: bytes) -> bytes:
    """Return an ONNX model that also puts out its internal value ``name``.

    A model is a protocol buffer: a second ``graph`` field (7) appended to it is merged into the first, and so
    is its one more ``output`` (12) with nothing but a ``name`` (1).
    """
    output = _field(12, _field(1, name))
    return model + _field(7, output)


def _field(number: int, content: bytes) -> bytes:
    size, encoded = len(content), bytearray([number << 3 | 2])
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes(encoded) + bytes([size]) + content
