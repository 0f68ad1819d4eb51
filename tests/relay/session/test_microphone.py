"""The page's microphone: checked, counted, and kept while nobody hears it."""

from __future__ import annotations

import pytest

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError
from voiceapp.relay.session.microphone import EARLY_AUDIO_MS, MAX_FRAME_BYTES, Microphone


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


def test_what_was_kept_comes_in_its_order_and_once() -> None:
    microphone = Microphone(AudioFormat.PCM16)
    frames = [bytes([number]) * 960 for number in range(3)]
    for frame in frames:
        microphone.keep(frame)
    assert list(microphone.kept()) == frames
    assert list(microphone.kept()) == []


@pytest.mark.parametrize("audio_format", AudioFormat)
def test_the_newest_speech_is_kept_as_far_as_there_is_room(audio_format: AudioFormat) -> None:
    microphone = Microphone(audio_format)
    for number in range(EARLY_AUDIO_MS // 100 + 5):
        microphone.keep(bytes([number]) * (100 * audio_format.bytes_per_ms))
    kept = list(microphone.kept())
    assert len(kept) == EARLY_AUDIO_MS // 100
    assert [frame[0] for frame in (kept[0], kept[-1])] == [5, EARLY_AUDIO_MS // 100 + 4]
    # Once it was given away there is room again.
    microphone.keep(kept[0])
    assert list(microphone.kept()) == [kept[0]]
