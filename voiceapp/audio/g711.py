"""G.711 μ-law and A-law by table, after ITU-T G.711 and G.191.

Input and output are ``bytes``: G.711 codes on one side, signed 16-bit little-endian on the other.
The encoders take the 14 (μ-law) or 13 (A-law) most significant bits of a 16-bit sample, as the ITU's
software tool library does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError

_Samples = NDArray[np.int16]


def _ulaw_decode_table() -> _Samples:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    exponent, mantissa = (code >> 4) & 0x07, code & 0x0F
    magnitude = (((mantissa << 3) + 0x84) << exponent) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype("<i2")


def _alaw_decode_table() -> _Samples:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    exponent, mantissa = (code >> 4) & 0x07, code & 0x0F
    linear = (mantissa << 4) + 8
    magnitude = np.where(exponent > 0, (linear + 0x100) << np.maximum(exponent - 1, 0), linear)
    return np.where(code & 0x80, magnitude, -magnitude).astype("<i2")


def _ulaw_encode_table() -> NDArray[np.uint8]:
    sample = np.arange(65536, dtype=np.int32).astype(np.uint16).view(np.int16).astype(np.int32)
    # One's complement for negative values, at 14 bits, as in the ITU tool library.
    magnitude = np.where(sample < 0, (~sample >> 2) + 33, (sample >> 2) + 33)
    magnitude = np.minimum(magnitude, 0x1FFF)
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 5
    mantissa = (magnitude >> (exponent + 1)) & 0x0F
    code = ~((exponent << 4) | mantissa) & 0x7F
    return np.where(sample >= 0, code | 0x80, code).astype(np.uint8)


def _alaw_encode_table() -> NDArray[np.uint8]:
    sample = np.arange(65536, dtype=np.int32).astype(np.uint16).view(np.int16).astype(np.int32)
    magnitude = np.where(sample < 0, ~sample >> 4, sample >> 4)
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 4, 0)
    segment = np.where(magnitude > 15, exponent + 1, 0)
    mantissa = np.where(magnitude > 15, (magnitude >> exponent) & 0x0F, magnitude)
    code = (segment << 4) | mantissa
    return (np.where(sample >= 0, code | 0x80, code) ^ 0x55).astype(np.uint8)


_DECODE: Final = {AudioFormat.PCMU: _ulaw_decode_table(), AudioFormat.PCMA: _alaw_decode_table()}
_ENCODE: Final = {AudioFormat.PCMU: _ulaw_encode_table(), AudioFormat.PCMA: _alaw_encode_table()}


def decode(codes: bytes, law: AudioFormat) -> bytes:
    """Turn G.711 codes into 16-bit samples at the same rate (8 kHz); the size doubles."""
    return _DECODE[law].take(np.frombuffer(codes, np.uint8)).tobytes()


def encode(samples: bytes, law: AudioFormat) -> bytes:
    """Turn 16-bit samples into G.711 codes at the same rate; the size halves.

    Raises ``AudioFormatError`` where ``samples`` has an odd number of bytes.
    """
    if len(samples) % 2:
        raise AudioFormatError("16-bit audio must have an even number of bytes.", code="invalid_value")
    return _ENCODE[law].take(np.frombuffer(samples, "<u2")).tobytes()
