"""What may be said of a load, which load is next, and which figures are printed, by tables."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from voiceapp.loadtest.figures import (
    Findings,
    Limit,
    Piece,
    Plan,
    Search,
    Verdict,
    compare,
    describe,
    first_loads,
    judge,
    keeps_up,
)

PLAN = Plan()
GOOD = Piece(
    sessions=60,
    joined=60,
    seconds=3.0,
    took_s=3.0,
    frames=9000,
    p99_ms=4.0,
    wall_s=3.2,
    relay_cpu_s=0.9,
    load_cpu_s={"clients": 0.5, "service": 0.4},
)
"""A relay that carries 60 sessions, at 100 µs of CPU a frame."""
FULL_LOAD = {"clients": 1.9, "service": 1.1}
BUSY = {"relay_cpu_s": 2.5}
NAMES = ("bare", "voiceapp")
LEFT_OUT = "pairs of measurements are left out: a relay, or the load, did not keep up."


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Verdict.CARRIED),
        ({"p99_ms": 9.99}, Verdict.CARRIED),
        ({"p99_ms": 10.0} | BUSY, Verdict.OVER_LIMIT),
        ({"frames": 8731} | BUSY, Verdict.CARRIED),
        ({"frames": 8730} | BUSY, Verdict.OVER_LIMIT),
        ({"joined": 59}, Verdict.OVER_LIMIT),
        ({"frames": 0, "p99_ms": math.inf}, Verdict.SILENT),
        ({"frames": 0, "joined": 0, "p99_ms": math.inf}, Verdict.SILENT),
        # The load's processes are full: the delay is theirs.
        ({"p99_ms": 40.0, "load_cpu_s": FULL_LOAD}, Verdict.LOAD_FULL),
        ({"frames": 0, "p99_ms": math.inf, "load_cpu_s": FULL_LOAD}, Verdict.LOAD_FULL),
        ({"p99_ms": 40.0, "load_cpu_s": {"clients": 1.6, "service": 1.2}} | BUSY, Verdict.OVER_LIMIT),
        # Nobody is full: the machine is busy with something else.
        ({"p99_ms": 40.0}, Verdict.HELD_UP),
        ({"p99_ms": 40.0, "relay_cpu_s": 2.2}, Verdict.HELD_UP),
        ({"frames": 8000}, Verdict.HELD_UP),
        # Full or not: what was carried was carried.
        ({"load_cpu_s": FULL_LOAD}, Verdict.CARRIED),
        # They sent more slowly than people speak: however good the delays are, that was another load.
        ({"took_s": 3.2}, Verdict.LOAD_FULL),
        ({"took_s": 3.05}, Verdict.CARRIED),
    ],
)
def test_what_became_of_a_load(change: dict[str, Any], verdict: Verdict) -> None:
    assert judge(replace(GOOD, **change), PLAN) is verdict


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"p99_ms": 90.0}, True),
        ({"p99_ms": 90.0, "relay_cpu_s": 2.9}, False),
        ({"p99_ms": 90.0, "load_cpu_s": FULL_LOAD}, False),
        ({"p99_ms": 90.0, "frames": 8000}, False),
        # Frames of a load before came back late and were counted.
        ({"p99_ms": 90.0, "frames": 9600}, False),
        ({"frames": 0, "p99_ms": math.inf}, False),
        ({"took_s": 4.0}, False),
        ({"joined": 50}, False),
        ({"relay_cpu_s": 3.1}, True),
    ],
)
def test_a_relay_keeps_up_when_its_work_is_done_in_time_and_it_is_not_full(
    change: dict[str, Any], kept: bool
) -> None:
    assert keeps_up(replace(GOOD, **change), PLAN) is kept


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "p99 4.00 ms, 100 % of the frames came back, 28 % of its core."),
        (
            {"p99_ms": 12.0},
            "p99 12.00 ms, 100 % of the frames came back, 28 % of its core; neither it nor the load is full.",
        ),
        (
            {"p99_ms": 12.0, "frames": 4500} | BUSY,
            "p99 12.00 ms, 50 % of the frames came back, 78 % of its core.",
        ),
        ({"joined": 40}, "only 40 could join or stay."),
        ({"frames": 0, "p99_ms": math.inf}, "no frame came back."),
        (
            {"p99_ms": 12.0, "load_cpu_s": FULL_LOAD},
            "the load's own processes are full (clients 59 %, service 34 % of their core).",
        ),
        (
            {"took_s": 4.0},
            "something else holds the load's own processes up: 3 s of audio took 4.0 s to send "
            "(clients 16 %, service 12 % of their core).",
        ),
    ],
)  # fmt: skip
def test_a_load_in_words(change: dict[str, Any], words: str) -> None:
    assert describe("bare", replace(GOOD, **change), PLAN) == f"bare at 60 sessions: {words}"


@pytest.mark.parametrize(
    ("sessions", "loads"),
    [
        (60, [4, 8, 16, 32, 60]),
        (64, [4, 8, 16, 32, 64]),
        (5, [4, 5]),
        (4, [4]),
        (1, [1]),
    ],
)
def test_the_first_loads_are_small_and_lead_to_the_one_that_is_asked_for(
    sessions: int, loads: list[int]
) -> None:
    assert list(first_loads(Plan(sessions=sessions))) == loads


def searched(
    start: int, relay_carries: int, other: tuple[int, Verdict] = (10_000, Verdict.LOAD_FULL), most: int = 1500
) -> tuple[Limit, list[int]]:
    """Search with a relay that carries so many sessions, where from another size on something else fails.

    Return what was found, and the loads tried.
    """
    search = Search(start, Plan(most=most))
    tried: list[int] = []
    while (size := search.next_size()) is not None:
        tried.append(size)
        assert len(tried) < 200, "the search does not end"
        carries, reason = other
        if size > carries:
            search.take(size, reason)
        else:
            search.take(size, Verdict.OVER_LIMIT if size > relay_carries else Verdict.CARRIED)
    return search.limit(), tried


@pytest.mark.parametrize("start", [1, 4, 8, 60])
@pytest.mark.parametrize("carries", [1, 2, 3, 4, 7, 8, 30, 59, 60, 61, 100, 333, 1000])
def test_a_search_finds_what_a_relay_carries_wherever_it_starts(start: int, carries: int) -> None:
    limit, _ = searched(start, carries)
    assert limit.found
    # Within a step of growth.
    assert carries / Plan().growth - 1 <= limit.sessions <= carries


def test_a_search_whose_first_load_is_not_carried_goes_down_and_then_up() -> None:
    limit, tried = searched(60, 40)
    assert tried[:3] == [60, 30, 34]
    assert limit == Limit(39, found=True)


def test_a_relay_that_carries_nothing_is_found_to_carry_nothing() -> None:
    assert searched(8, 0) == (Limit(0, found=True), [8, 4, 2, 1])


@pytest.mark.parametrize("reason", [Verdict.LOAD_FULL, Verdict.HELD_UP])
@pytest.mark.parametrize(("start", "carries"), [(60, 100), (60, 60), (60, 20), (4, 3)])
def test_where_something_else_is_full_the_relay_s_limit_is_not_known(
    start: int, carries: int, reason: Verdict
) -> None:
    limit, tried = searched(start, 10_000, (carries, reason))
    assert not limit.found
    assert 0 < limit.sessions <= carries
    assert limit.sessions in tried


def test_a_search_is_bounded_and_says_that_there_may_be_more() -> None:
    limit, tried = searched(60, 10_000, most=200)
    assert limit == Limit(200, found=False)
    assert max(tried) == 200


def test_the_load_is_raised_in_small_steps() -> None:
    _, tried = searched(60, 300)
    assert all(after <= before * 1.14 for before, after in pairwise(tried))


def pair(bare_us: float, product_us: float, **both: Any) -> tuple[Piece, Piece]:
    """Return pieces of both relays with so much CPU a frame."""
    piece = replace(GOOD, **both)
    bare, product = (replace(piece, relay_cpu_s=us * 9000 / 1e6) for us in (bare_us, product_us))
    return bare, replace(product, p99_ms=product.p99_ms + 1.5)


def test_the_comparison_is_the_middle_of_pairs_that_were_measured_one_after_the_other() -> None:
    found = Findings(sessions=60, mb_per_session=0.2345)
    # The machine's mood changed, for both alike.
    found.pairs = [pair(100, 110), pair(200, 220), pair(100, 130)]
    assert compare(found, NAMES, PLAN) == {
        "sessions": 60,
        "ratio_cpu_per_frame": 1.1,
        "cpu_us_per_frame": {"bare": 100.0, "voiceapp": 130.0},
        "p99_ms": {"bare": 4.0, "voiceapp": 5.5},
        "added_p99_ms": 1.5,
        "mb_per_session": 0.23,
    }


def test_nothing_measured_is_nothing_printed() -> None:
    assert compare(Findings(), NAMES, PLAN) == {}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"frames": 0, "p99_ms": math.inf},
        {"p99_ms": 40.0, "load_cpu_s": FULL_LOAD},
        {"p99_ms": 40.0, "relay_cpu_s": 3.1},
        {"p99_ms": 400.0, "frames": 7000},
        {"took_s": 5.0},
    ],
)
def test_a_ratio_that_was_not_measured_is_not_printed(spoilt: dict[str, Any]) -> None:
    bare, product = pair(100, 110)
    for bad in ((replace(bare, **spoilt), product), (bare, replace(product, **spoilt))):
        found = Findings(sessions=60, pairs=[bad, bad])
        assert compare(found, NAMES, PLAN) == {"notes": [f"2 of 2 {LEFT_OUT}"]}
        found.pairs.append((bare, product))
        result = compare(found, NAMES, PLAN)
        assert result["ratio_cpu_per_frame"] == 1.1
        assert result["notes"] == [f"2 of 3 {LEFT_OUT}"]


def test_cpu_that_was_not_seen_is_not_divided_by() -> None:
    assert "ratio_cpu_per_frame" not in compare(Findings(sessions=4, pairs=[pair(0, 100)]), NAMES, PLAN)


def test_a_relay_over_its_limit_is_compared_all_the_same_with_its_delays() -> None:
    result = compare(Findings(sessions=60, pairs=[pair(100, 120, p99_ms=25.0)]), NAMES, PLAN)
    assert result["ratio_cpu_per_frame"] == 1.2
    assert result["p99_ms"] == {"bare": 25.0, "voiceapp": 26.5}


def test_a_run_that_the_end_of_the_product_ended_has_the_figures_until_then() -> None:
    """Its first pairs stand; of the search that it died in nothing is said but that it died."""
    found = Findings(sessions=60, pairs=[pair(100, 110)], mb_per_session=0.2)
    found.notes.append("voiceapp ended by itself (exit code -9).")
    result = compare(found, NAMES, PLAN)
    assert result["ratio_cpu_per_frame"] == 1.1
    assert result["notes"] == ["voiceapp ended by itself (exit code -9)."]
    assert not {"sessions_per_core", "ratio_sessions_per_core"} & result.keys()


@pytest.mark.parametrize(
    ("limits", "figures"),
    [
        (
            [(Limit(bare, True), Limit(ours, True)) for bare, ours in ((100, 90), (110, 110), (90, 90))],
            {"sessions_per_core": {"bare": 100, "voiceapp": 90}, "ratio_sessions_per_core": 1.0},
        ),
        # The load was full before the bare relay was: how many it carries is not known, nor the ratio.
        (
            [(Limit(300, False), Limit(200, True))],
            {"sessions_per_core": {"voiceapp": 200}, "sessions_per_core_at_least": {"bare": 300}},
        ),
        # In one round only: the ratio is that of the other.
        (
            [(Limit(300, False), Limit(200, True)), (Limit(200, True), Limit(180, True))],
            {
                "sessions_per_core": {"voiceapp": 190},
                "sessions_per_core_at_least": {"bare": 300},
                "ratio_sessions_per_core": 0.9,
            },
        ),
        ([(Limit(0, True), Limit(0, True))], {"sessions_per_core": {"bare": 0, "voiceapp": 0}}),
        ([(Limit(0, False), Limit(0, False))], {}),
        ([], {}),
    ],
)  # fmt: skip
def test_what_is_said_of_the_largest_loads(
    limits: list[tuple[Limit, Limit]], figures: dict[str, Any]
) -> None:
    assert compare(Findings(limits=limits), NAMES, PLAN) == figures
