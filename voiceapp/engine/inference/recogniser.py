"""The recogniser: Moonshine tiny (English) on plain onnxruntime.

Greedy decoding with the decoder's key/value cache. A draft (the tokens of an earlier, shorter decoding of the
same utterance) is verified in one pass, so that only what differs is decoded token by token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from voiceapp.engine.inference.weights import ModelError, WeightFile, open_model

RATE_HZ: Final = 16_000

_FOLDER: Final = "assets/tiny-en"
ENCODER: Final = WeightFile(
    "moonshine_voice",
    f"{_FOLDER}/encoder_model.ort",
    "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
)
DECODER: Final = WeightFile(
    "moonshine_voice",
    f"{_FOLDER}/decoder_model_merged.ort",
    "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
)
TOKENIZER: Final = WeightFile(
    "moonshine_voice",
    f"{_FOLDER}/tokenizer.bin",
    "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
)

_BEGIN: Final = 1
_END: Final = 2
_FIRST_BYTE: Final = 3
_LAST_BYTE: Final = 258
_HEADS: Final = 8
_HEAD_SIZE: Final = 36
# Nobody speaks faster; beyond it the model repeats itself.
_TOKENS_PER_SECOND: Final = 6.5
_MIN_SAMPLES: Final = 1024
_MAX_REPEAT: Final = 8

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recognition:
    """Words of one stretch of speech, and the tokens that a later decoding may take as its draft."""

    text: str
    tokens: tuple[int, ...] = ()


class Recogniser:
    """One set of weights; ``recognise`` may run in several threads at once."""

    def __init__(self) -> None:
        self._pieces = parse_tokenizer(TOKENIZER.read())
        self._encoder = open_model(ENCODER.read())
        self._decoder = open_model(DECODER.read())
        self._outputs = [output.name for output in self._decoder.get_outputs()]
        self._past = [
            value.name for value in self._decoder.get_inputs() if value.name.startswith("past_key_values")
        ]

    def recognise(self, samples: Samples, draft: tuple[int, ...] = ()) -> Recognition:
        """Return the words in ``samples`` (float32 mono at 16 kHz, shape (samples,)).

        Nothing is said in less than 64 ms. Whether there is speech at all is the detector's to say: this
        model finds words in silence.
        """
        if samples.size < _MIN_SAMPLES:
            return Recognition("")
        mask = np.ones((1, samples.size), np.int64)
        hidden = self._encoder.run(None, {"input_values": samples[None], "attention_mask": mask})[0]
        limit = max(1, math.ceil(samples.size / RATE_HZ * _TOKENS_PER_SECOND))
        tokens = collapse_repeats(self._decode(hidden, mask, limit, draft[:limit]))
        return Recognition(self._text(tokens), tuple(tokens))

    def _decode(
        self, hidden: Samples, mask: NDArray[np.int64], limit: int, draft: tuple[int, ...]
    ) -> list[int]:
        """Return at most ``limit`` tokens without the end mark."""
        fixed = {"encoder_hidden_states": hidden, "encoder_attention_mask": mask}
        nothing = np.zeros((1, _HEADS, 0, _HEAD_SIZE), np.float32)
        feed: dict[str, Any] = {
            **fixed,
            **dict.fromkeys(self._past, nothing),
            "input_ids": np.array([[_BEGIN, *draft]], np.int64),
            "use_cache_branch": np.array([False]),
        }
        logits, *present = self._decoder.run(None, feed)
        choices = logits[0].argmax(axis=-1).tolist()
        agreed = 0
        while agreed < len(draft) and choices[agreed] == draft[agreed]:
            agreed += 1
        tokens = list(draft[:agreed])
        feed["use_cache_branch"] = np.array([True])
        for name, value in zip(self._outputs[1:], present, strict=True):
            kept = value[:, :, : agreed + 1] if ".decoder." in name else value
            feed[name.replace("present", "past_key_values")] = np.ascontiguousarray(kept)
        token = choices[agreed]
        while token != _END and len(tokens) < limit:
            tokens.append(token)
            feed["input_ids"] = np.array([[token]], np.int64)
            logits, *present = self._decoder.run(None, feed)
            for name, value in zip(self._outputs[1:], present, strict=True):
                # The cached branch returns no keys of the encoder: they do not change.
                if ".decoder." in name:
                    feed[name.replace("present", "past_key_values")] = value
            token = int(logits[0, -1].argmax())
        return tokens

    def _text(self, tokens: list[int]) -> str:
        raw = b"".join(self._pieces[token] for token in tokens if token >= _FIRST_BYTE)
        return " ".join(raw.decode("utf-8", "ignore").replace("\u2581", " ").split())


def parse_tokenizer(content: bytes) -> list[bytes]:
    """Return the piece of each token id: a length of one or two bytes, then that many bytes, repeatedly."""
    pieces: list[bytes] = []
    position = 0
    while position < len(content):
        size = content[position]
        position += 1
        if size >= 128:
            size = content[position] * 128 + size - 128
            position += 1
        piece = content[position : position + size]
        if len(piece) != size:
            raise ModelError("The recogniser's vocabulary is cut short.")
        pieces.append(piece)
        position += size
    if len(pieces) <= _LAST_BYTE:
        raise ModelError("The recogniser's vocabulary is too small.")
    return pieces


def collapse_repeats(tokens: list[int]) -> list[int]:
    """Return ``tokens`` with a phrase that the model repeats over and over said once.

    Three times in a row are too many for a phrase of several tokens ("Yes. Yes. Yes."), five for a single
    token: people do say "two two two".
    """
    result = list(tokens)
    for size in range(1, _MAX_REPEAT + 1):
        least = 5 if size == 1 else 3
        start = 0
        while start + size * least <= len(result):
            phrase = result[start : start + size]
            end = start + size
            while result[end : end + size] == phrase:
                end += size
            if end - start >= size * least and len(set(phrase)) == size:
                del result[start + size : end]
            start += 1
    return result
