"""Weights are the files that they should be."""

from __future__ import annotations

import pytest

from voiceapp.engine.inference.recogniser import (
    DECODER,
    ENCODER,
    TOKENIZER,
)
from voiceapp.engine.inference.vad import WEIGHTS
from voiceapp.engine.inference.weights import ModelError, WeightFile


@pytest.mark.parametrize("weights", [ENCODER, DECODER, TOKENIZER, WEIGHTS])
def test_altered_weights_are_refused(weights: WeightFile) -> None:
    assert weights.read()
    with pytest.raises(ModelError, match="not the file") as caught:
        WeightFile(weights.package, weights.path, "0" * 64).read()
    assert caught.value.code == "model_unavailable"


def test_missing_weights_say_what_is_missing() -> None:
    with pytest.raises(ModelError, match="no_such_package is not installed"):
        WeightFile("no_such_package", "x", "").read()
    with pytest.raises(ModelError, match="cannot be read"):
        WeightFile("hibari", "assets/nothing.onnx", "").read()
