"""The page's microphone: its frames are checked and counted."""

from __future__ import annotations

import pytest

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError
from voiceapp.relay.session.microphone import MAX_FRAME_BYTES, Microphone


@pytest.mark.parametrize(
    ("audio_format", "size", "code"),
    [
        (AudioFormat.PCM16, 961, "invalid_value"),
        (AudioFormat.PCM16, MAX_FRAME_BYTES + 2, "message_too_large"),
        (AudioFormat.PCMU, MAX_FRAME_BYTES + 1, "message_too_large"),
    ],
)
def test_a_frame_that_cannot_be_heard_is_counted_all_the_same(
    audio_format: AudioFormat, size: int, code: str
) -> None:
    microphone = Microphone(audio_format)
    with pytest.raises(AudioFormatError) as refused:
        microphone.count(bytes(size))
    assert refused.value.code == code
    assert microphone.frames == 1


@pytest.mark.parametrize(("audio_format", "size"), [(AudioFormat.PCM16, 960), (AudioFormat.PCMA, 161),
                                                    (AudioFormat.PCM16, MAX_FRAME_BYTES)])  # fmt: skip
def test_a_frame_of_whole_samples_is_heard(audio_format: AudioFormat, size: int) -> None:
    microphone = Microphone(audio_format)
    microphone.count(bytes(size))
    assert microphone.frames == 1
