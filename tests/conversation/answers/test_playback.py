"""What was received, played and never heard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voiceapp.conversation.answers.playback import CUT_SETTLE_MS, Playback, Track


def received(playback: Playback, item: str, ms: float, now: float = 0, *, complete: bool = True) -> Track:
    track = playback.receive(item, 0, f"resp_{item}", now)
    assert track is not None
    track.received_ms += ms
    if complete:
        playback.complete(item)
    return track


def test_a_page_that_never_reports_is_taken_to_play_in_real_time() -> None:
    playback = Playback()
    received(playback, "a", 2000)
    assert playback.begin_cut(6000) == []
    playback = Playback()
    track = received(playback, "a", 2000)
    [cut] = playback.begin_cut(700)
    assert cut is track
    assert playback.settle(cut, 700) == 700


def test_the_playing_item_is_cut_and_the_queued_one_at_nothing() -> None:
    playback = Playback()
    received(playback, "a", 1000)
    received(playback, "b", 1000)
    playback.report("a", 300, final=False, now=0)
    cuts = playback.begin_cut(5000)
    assert [(track.item_id, playback.settle(track, 5000)) for track in cuts] == [("a", 300), ("b", 0)]


def test_an_underrun_does_not_restart_the_count() -> None:
    playback = Playback()
    received(playback, "a", 500, complete=False)
    playback.report("a", 500, final=True, now=0)
    received(playback, "a", 1000, now=900, complete=False)
    playback.report("a", 700, final=False, now=0)
    [track] = playback.begin_cut(1100)
    assert playback.settle(track, 1100) == 700


def test_a_cut_waits_for_the_pages_last_report_but_not_for_ever() -> None:
    playback = Playback()
    received(playback, "a", 1000)
    playback.report("a", 400, final=False, now=0)
    [track] = playback.begin_cut(0)
    assert track.settle_at_ms == CUT_SETTLE_MS
    playback.report("a", 440, final=True, now=0)
    assert playback.settle(track, 100) == 440
    assert playback.settling == []


def test_what_was_heard_is_forgotten_but_not_the_numbers() -> None:
    playback = Playback()
    for n in range(1000):
        track = received(playback, f"item_{n}", 100, now=n * 1000)
        assert track.index == n
        playback.report(f"item_{n}", 100, final=True, now=0)
        assert len(playback.tracks) <= 2


def test_a_page_that_never_reports_plays_one_after_the_other_even_when_the_first_is_forgotten() -> None:
    playback = Playback()
    received(playback, "a", 1000, now=0)
    received(playback, "b", 1000, now=10)
    received(playback, "c", 1000, now=1500)
    # a played to 1000, b to 2000, and c from then on.
    cuts = playback.begin_cut(2300)
    assert [(track.item_id, playback.settle(track, 2300)) for track in cuts] == [("c", 300)]


def test_nothing_more_of_a_cut_response_is_received() -> None:
    playback = Playback()
    track = received(playback, "a", 1000, complete=False)
    playback.begin_cut(0)
    assert playback.receive("a", 0, "resp_a", 1) is None
    assert playback.receive("a2", 0, "resp_a", 1) is None
    assert playback.receive("b", 0, "resp_b", 1) is not None
    assert track.received_ms == 1000


@given(
    chunks=st.lists(st.integers(0, 5000), min_size=1, max_size=5),
    reports=st.lists(st.tuples(st.floats(-100, 30_000), st.booleans()), max_size=6),
    now=st.floats(0, 60_000),
)
def test_a_cut_is_never_beyond_what_was_received(
    chunks: list[int], reports: list[tuple[float, bool]], now: float
) -> None:
    playback = Playback()
    for ms in chunks:
        received(playback, "a", ms, complete=False)
    for played, final in reports:
        playback.report("a", played, final=final, now=0)
    for track in playback.begin_cut(now):
        assert 0 <= playback.settle(track, now) <= sum(chunks)
