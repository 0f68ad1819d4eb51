"""Turns from probabilities: when they start, pause, resume and stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.engine.turns.detector import (
    WINDOW_MS,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnDetector,
    TurnMark,
    TurnSettings,
)
from voiceapp.engine.turns.endpointing import Completeness


def run(detector: TurnDetector, probabilities: Iterable[float], first: int = 0) -> list[TurnMark]:
    marks: list[TurnMark] = []
    for index, probability in enumerate(probabilities, first):
        marks += detector.feed(probability, index * WINDOW_MS)
    return marks


def silence(ms: int) -> list[float]:
    return [0.02] * -(-ms // WINDOW_MS)


def speech(ms: int) -> list[float]:
    return [0.9] * -(-ms // WINDOW_MS)


def test_a_turn_starts_with_its_padding_and_ends_with_its_silence() -> None:
    detector = TurnDetector(TurnSettings(prefix_padding_ms=300, silence_duration_ms=500))
    marks = run(detector, silence(960) + speech(640) + silence(1000))
    assert marks == [
        SpeechStarted(audio_start_ms=960 - 300, detected_ms=960 + 64),
        SpeechPaused(audio_end_ms=1600 + 160),
        SpeechStopped(audio_end_ms=1600 + 512, last_speech_ms=1600),
    ]


def test_one_loud_window_is_no_speech() -> None:
    assert run(TurnDetector(TurnSettings()), silence(320) + speech(32) + silence(320) + speech(32)) == []


def test_padding_is_clamped_to_the_beginning_and_to_the_turn_before() -> None:
    detector = TurnDetector(TurnSettings(prefix_padding_ms=2000, silence_duration_ms=200))
    marks = run(detector, speech(320) + silence(224) + speech(320))
    starts = [mark.audio_start_ms for mark in marks if isinstance(mark, SpeechStarted)]
    assert starts == [0, 320 + 224]


def test_speech_that_goes_on_after_a_pause_throws_the_preparation_away() -> None:
    detector = TurnDetector(TurnSettings(silence_duration_ms=500))
    marks = run(detector, speech(320) + silence(192) + speech(320) + silence(600))
    assert [type(mark) for mark in marks] == [
        SpeechStarted,
        SpeechPaused,
        SpeechResumed,
        SpeechPaused,
        SpeechStopped,
    ]


def test_preparation_happens_once_per_pause() -> None:
    detector = TurnDetector(TurnSettings(silence_duration_ms=2000))
    marks = run(detector, speech(320) + silence(1900))
    assert sum(isinstance(mark, SpeechPaused) for mark in marks) == 1


def test_a_short_wait_still_leaves_time_to_prepare() -> None:
    marks = run(TurnDetector(TurnSettings(silence_duration_ms=200)), speech(320) + silence(320))
    paused, stopped = (mark for mark in marks if not isinstance(mark, SpeechStarted))
    assert isinstance(paused, SpeechPaused)
    assert isinstance(stopped, SpeechStopped)
    assert stopped.audio_end_ms - paused.audio_end_ms >= 90


def test_probabilities_between_the_thresholds_neither_begin_nor_end_a_pause() -> None:
    detector = TurnDetector(TurnSettings(threshold=0.5, silence_duration_ms=200))
    assert len(run(detector, speech(320) + [0.4] * 40)) == 1
    assert detector.speaking


def test_the_threshold_is_the_sessions() -> None:
    quiet = [0.6] * 20
    assert run(TurnDetector(TurnSettings(threshold=0.8)), quiet) == []
    assert len(run(TurnDetector(TurnSettings(threshold=0.5)), quiet)) == 1


def test_a_reset_forgets_the_open_turn_and_keeps_later_ones_behind_it() -> None:
    detector = TurnDetector(TurnSettings(prefix_padding_ms=300))
    run(detector, speech(640))
    detector.reset(640)
    assert not detector.speaking
    marks = run(detector, speech(640), first=20)
    assert marks == [SpeechStarted(audio_start_ms=640, detected_ms=640 + 64)]


def test_settings_are_read_from_the_ga_object() -> None:
    settings = TurnSettings.from_ga(
        {"type": "server_vad", "threshold": 0.7, "silence_duration_ms": 300, "interrupt_response": False}
    )
    assert settings == TurnSettings(threshold=0.7, silence_duration_ms=300, interrupt_response=False)
    assert TurnSettings.from_ga(None) is None


@pytest.mark.parametrize(("eagerness", "longest_ms"), [("low", 8000), ("medium", 4000), ("high", 2000)])
def test_eagerness_sets_the_longest_wait(eagerness: Any, longest_ms: int) -> None:
    settings = TurnSettings(type="semantic_vad", eagerness=eagerness)
    waits = [settings.silence_ms(ending) for ending in Completeness]
    assert waits == sorted(waits)
    assert waits[-1] == longest_ms == settings.silence_ms()


def test_auto_is_medium() -> None:
    auto, medium = (TurnSettings(type="semantic_vad", eagerness=one) for one in ("auto", "medium"))
    assert [auto.silence_ms(one) for one in Completeness] == [medium.silence_ms(one) for one in Completeness]


@pytest.mark.parametrize("ending", list(Completeness))
def test_a_semantic_turn_ends_by_its_words(ending: Completeness) -> None:
    settings = TurnSettings(type="semantic_vad", eagerness="high")
    detector = TurnDetector(settings)
    run(detector, speech(320))
    first, marks, asked = 10, list[TurnMark](), 0
    while not marks or not isinstance(marks[-1], SpeechStopped):
        if detector.undecided:
            asked += 1
            detector.judge(ending)
        marks += run(detector, silence(32), first)
        first += 1
    assert asked == 1
    stopped = marks[-1]
    assert isinstance(stopped, SpeechStopped)
    assert settings.silence_ms(ending) <= stopped.audio_end_ms - 320 < settings.silence_ms(ending) + WINDOW_MS


def test_a_judgement_is_forgotten_when_speech_goes_on() -> None:
    detector = TurnDetector(TurnSettings(type="semantic_vad", eagerness="high"))
    run(detector, speech(320) + silence(224))
    assert detector.undecided
    detector.judge(Completeness.OVER)
    run(detector, speech(320) + silence(224), first=17)
    assert detector.undecided


@given(
    st.lists(st.floats(0, 1), max_size=300),
    st.integers(32, 2000),
    st.integers(0, 1000),
    st.floats(0.1, 0.95),
)
def test_marks_always_alternate_and_never_go_back(
    probabilities: list[float], wait_ms: int, padding_ms: int, threshold: float
) -> None:
    settings = TurnSettings(threshold=threshold, silence_duration_ms=wait_ms, prefix_padding_ms=padding_ms)
    floor, open_since, paused = 0, None, False
    for mark in run(TurnDetector(settings), probabilities):
        match mark:
            case SpeechStarted(audio_start_ms=start, detected_ms=detected):
                assert open_since is None
                assert floor <= start <= detected
                open_since, paused = start, False
            case SpeechPaused():
                assert open_since is not None
                assert not paused
                paused = True
            case SpeechResumed():
                assert paused
                paused = False
            case SpeechStopped(audio_end_ms=end, last_speech_ms=last):
                assert open_since is not None
                assert open_since <= last < end
                assert end - last >= wait_ms or end - last >= WINDOW_MS
                floor, open_since = end, None


@pytest.mark.parametrize("wait_ms", [200, 300, 500, 1000])
def test_the_wait_is_the_sessions_to_one_window(wait_ms: int) -> None:
    marks = run(TurnDetector(TurnSettings(silence_duration_ms=wait_ms)), speech(320) + silence(2000))
    stopped = marks[-1]
    assert isinstance(stopped, SpeechStopped)
    assert wait_ms <= stopped.audio_end_ms - 320 < wait_ms + WINDOW_MS
