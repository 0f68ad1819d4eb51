"""Between the page's formats and the service's."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.relay.session.transcoding import Transcoding

PCM16, PCMU, PCMA = AudioFormat.PCM16, AudioFormat.PCMU, AudioFormat.PCMA


@pytest.mark.parametrize("audio_format", AudioFormat)
def test_audio_passes_as_it_is_where_both_use_one_format(audio_format: AudioFormat) -> None:
    transcoding = Transcoding(audio_format, audio_format)
    data = bytes(range(240)) * 4
    for _ in range(2):
        assert transcoding.to_upstream(data) is data
        assert transcoding.to_browser(data, "item_1") is data
        assert transcoding.rest_to_browser("item_1") == b""
        transcoding.agree(audio_format, audio_format)


def test_each_direction_has_formats_of_its_own() -> None:
    transcoding = Transcoding(PCMU, PCM16)
    transcoding.agree(PCMA, PCM16)
    silence = PCMU.silence * 160
    assert transcoding.to_upstream(silence) == g711.encode(g711.decode(silence, PCMU), PCMA)
    samples = bytes(960)
    assert transcoding.to_browser(samples, "item_1") is samples


def test_an_answer_is_given_to_its_last_sample_and_the_next_begins_anew() -> None:
    transcoding = Transcoding(PCM16, PCM16)
    transcoding.agree(PCM16, PCMU)
    answer = PCMU.silence * 800

    def heard() -> bytes:
        parts = [transcoding.to_browser(answer[at : at + 160], "item_1") for at in range(0, len(answer), 160)]
        return b"".join([*parts, transcoding.rest_to_browser("item_1")])

    # The library adds dither of a step or two to 16-bit samples: what is silent stays nearly so.
    for samples in (heard(), heard()):
        assert len(samples) == 100 * PCM16.bytes_per_ms
        assert np.abs(np.frombuffer(samples, "<i2")).max() <= 2


def test_the_same_agreement_again_makes_no_seam() -> None:
    through, renewed = Transcoding(PCM16, PCM16), Transcoding(PCM16, PCM16)
    through.agree(PCMU, PCM16)
    renewed.agree(PCMU, PCM16)
    speech = bytes(range(256)) * 15
    both = []
    for transcoding in (through, renewed):
        first = transcoding.to_upstream(speech)
        if transcoding is renewed:
            transcoding.agree(PCMU, PCM16)
        both.append(first + transcoding.to_upstream(speech))
    assert both[0] == both[1]


def test_a_turn_is_whole_at_its_end_and_the_next_begins_anew() -> None:
    transcoding = Transcoding(PCMU, PCM16)
    transcoding.agree(PCM16, PCM16)
    for length in (1, 5, 50):
        sent = [transcoding.to_upstream(PCMU.silence * 160) for _ in range(length)]
        sent.append(transcoding.rest_before({"type": "input_audio_buffer.commit"}))
        assert sum(map(len, sent)) == length * 20 * PCM16.bytes_per_ms
    assert transcoding.rest_before({"type": "input_audio_buffer.commit"}) == b""
    transcoding.to_upstream(PCMU.silence * 160)
    assert transcoding.rest_before({"type": "response.create"}) == b""
    assert transcoding.rest_before({"type": "input_audio_buffer.clear"}) == b"", "it was taken back"
    assert transcoding.rest_before({"type": "input_audio_buffer.commit"}) == b""


def test_nothing_of_an_item_that_was_cut_is_heard_in_another_one() -> None:
    """Two items that take turns do not share a filter, and what is cut leaves nothing behind."""
    loud, quiet = bytes([0xFF, 0x3F]) * 480, bytes(960)
    transcoding = Transcoding(PCM16, PCMU)
    transcoding.agree(PCM16, PCM16)
    heard = b""
    for _ in range(10):
        transcoding.to_browser(loud, "loud")
        heard += transcoding.to_browser(quiet, "quiet")
    transcoding.rest_to_browser("loud")
    heard += transcoding.rest_to_browser("quiet") + transcoding.to_browser(quiet * 5, "next")
    assert np.abs(np.frombuffer(g711.decode(heard, PCMU), "<i2")).max() <= 8
