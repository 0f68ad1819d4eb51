"""The turn that the user speaks: how long the answer took, and whether the turn held any speech."""

from __future__ import annotations

import math

import numpy as np
import pytest

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.turn import ANSWER_DUE_MS, MAX_UNDER_WAY, QUIET_DBFS, UserTurn
from voiceapp.protocol import events

COMMIT = events.InputAudioBufferCommit()
CLEAR = events.InputAudioBufferClear()


def sine(dbfs: float, audio_format: AudioFormat = AudioFormat.PCM16) -> bytes:
    """Return 20 ms of a tone of this level."""
    time = np.arange(audio_format.rate_hz // 50) / audio_format.rate_hz
    peak = 32768 * 10 ** (dbfs / 20) * math.sqrt(2)
    samples = (np.sin(2 * np.pi * 500 * time) * peak).astype("<i2").tobytes()
    return samples if audio_format is AudioFormat.PCM16 else g711.encode(samples, audio_format)


QUIET, LOUD = sine(QUIET_DBFS - 6), sine(QUIET_DBFS + 6)


def spoken(turn: UserTurn, *frames: bytes, item: str = "item") -> bool:
    """Let the page send frames and commit them; return whether the turn is known to hold no speech."""
    for frame in frames:
        turn.hear(frame, AudioFormat.PCM16)
    turn.event_sent(COMMIT)
    turn.committed(item)
    return item in turn.speechless


def test_the_wait_for_an_answer_is_counted_from_the_end_of_speech_and_once() -> None:
    turn = UserTurn()
    assert turn.latency(50) is None
    turn.speech_started()
    turn.speech_stopped(1000)
    assert turn.latency(1240.7) == 240
    assert turn.latency(1300) is None


def test_a_turn_is_open_while_the_user_speaks_and_until_an_answer_is_no_longer_due() -> None:
    turn = UserTurn()
    assert not turn.open(0)
    turn.speech_started()
    assert turn.open(10_000)
    turn.speech_stopped(10_000)
    assert turn.open(10_000 + ANSWER_DUE_MS - 1)
    assert not turn.open(10_000 + ANSWER_DUE_MS)


def test_a_turn_is_over_once_its_answer_begins_or_the_service_is_lost() -> None:
    for over in (UserTurn.response_began, UserTurn.connection_lost):
        turn = UserTurn()
        turn.speech_started()
        turn.speech_stopped(0)
        over(turn)
        assert not turn.open(1)
    turn = UserTurn()
    turn.speech_started()
    turn.connection_lost()
    assert not turn.open(1)


def test_one_loud_frame_makes_a_turn_of_speech() -> None:
    turn = UserTurn()
    assert spoken(turn, QUIET, QUIET)
    assert not spoken(turn, QUIET, LOUD, QUIET, item="second")
    # The next turn is measured anew.
    assert spoken(turn, QUIET, item="third")
    assert turn.speechless == {"item", "third"}


@pytest.mark.parametrize("law", [AudioFormat.PCMU, AudioFormat.PCMA])
def test_telephone_audio_is_measured_as_what_it_sounds_like(law: AudioFormat) -> None:
    for dbfs, speechless in ((QUIET_DBFS - 6, True), (QUIET_DBFS + 6, False)):
        turn = UserTurn()
        turn.hear(sine(dbfs, law), law)
        turn.event_sent(COMMIT)
        turn.committed("item")
        assert ("item" in turn.speechless) is speechless


def test_what_the_page_has_forgotten_is_not_measured() -> None:
    turn = UserTurn()
    turn.hear(LOUD, AudioFormat.PCM16)
    turn.event_sent(CLEAR)
    assert spoken(turn, QUIET)


def test_commits_are_answered_in_their_order() -> None:
    turn = UserTurn()
    turn.hear(LOUD, AudioFormat.PCM16)
    turn.event_sent(COMMIT)
    turn.hear(QUIET, AudioFormat.PCM16)
    turn.event_sent(COMMIT)
    turn.committed("loud")
    turn.committed("quiet")
    assert turn.speechless == {"quiet"}
    # What the service commits by itself is nobody's press of a button.
    turn.committed("its own")
    assert turn.speechless == {"quiet"}


def test_a_refused_commit_becomes_no_item() -> None:
    turn = UserTurn()
    turn.event_sent(COMMIT)
    turn.commit_refused("some_other_error")
    turn.commit_refused("input_audio_buffer_commit_empty")
    assert not spoken(turn, LOUD)


def test_commits_of_a_lost_service_are_forgotten() -> None:
    turn = UserTurn()
    turn.hear(LOUD, AudioFormat.PCM16)
    turn.event_sent(COMMIT)
    turn.connection_lost()
    assert spoken(turn, QUIET)


def test_commits_that_are_never_answered_are_bounded() -> None:
    turn = UserTurn()
    for _ in range(MAX_UNDER_WAY):
        turn.event_sent(COMMIT)
    turn.hear(LOUD, AudioFormat.PCM16)
    turn.event_sent(COMMIT)
    for number in range(MAX_UNDER_WAY):
        turn.committed(f"item_{number}")
    assert len(turn.speechless) == MAX_UNDER_WAY - 1
