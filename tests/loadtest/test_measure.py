"""Runs with real processes: clients, service, relays. What they measure of the machine is not judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from voiceapp.loadtest import measure
from voiceapp.loadtest.figures import Findings, Plan, compare

TOLERANT = Plan(
    sessions=2,
    smallest=2,
    rounds=1,
    pieces=1,
    search=False,
    piece_s=0.1,
    settle_s=0.02,
    # No machine is too slow, none too busy.
    limit_ms=1e9,
    least_share=1e-9,
    full_share=1e9,
)
NAMES = ("bare", "other")
Bench = tuple[measure.Load, tuple[measure.Relay, measure.Relay]]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """The load, and two bare relays to compare."""
    with (
        measure.running_load() as (load, service),
        measure.running_bare("bare", service) as bare,
        measure.running_bare("other", service) as other,
    ):
        yield load, (bare, other)


def kill(process: measure.MeasuredProcess) -> None:
    process.process.kill()
    process.process.wait()


def test_two_relays_are_compared_and_the_most_that_each_carries_is_looked_for(bench: Bench) -> None:
    found, lines = Findings(), list[str]()
    plan = replace(TOLERANT, sessions=3, search=True, most=4)
    measure.run(lines.append, plan, *bench, found)
    result = compare(found, NAMES, plan)
    assert result["sessions"] == 3
    assert result["ratio_cpu_per_frame"] > 0
    assert result["cpu_us_per_frame"].keys() == set(NAMES)
    # Both carry all that is asked for, so that is the least that is known.
    assert result["sessions_per_core_at_least"] == {"bare": 4, "other": 4}
    assert "notes" not in result
    for start in ("  bare at 2 sessions: p99", "  other at 3 sessions: p99", "other: carries at least 4"):
        assert any(line.startswith(start) for line in lines)


def test_a_first_load_over_the_limit_is_compared_and_says_so(bench: Bench) -> None:
    found, plan = Findings(), replace(TOLERANT, limit_ms=0.0, search=True)
    measure.run(lambda line: None, plan, *bench, found)
    result = compare(found, NAMES, plan)
    assert result["ratio_cpu_per_frame"] > 0
    assert "ratio_sessions_per_core" not in result
    assert "sessions_per_core" not in result
    assert result["notes"][0].startswith("bare at 2 sessions: p99 ")
    assert "No load was carried within 0 ms, so no largest was looked for." in result["notes"]


def test_a_load_whose_own_processes_are_full_compares_nothing_and_says_so(bench: Bench) -> None:
    """Full from the first frame on: any CPU is too much, and no delay is short enough."""
    found, plan = Findings(), replace(TOLERANT, smallest=1, limit_ms=0.0, full_share=0.0)
    measure.run(lambda line: None, plan, *bench, found)
    result = compare(found, NAMES, plan)
    assert result.keys() == {"notes"}
    assert "bare at 1 sessions: the load's own processes are full" in result["notes"][0]
    assert "Compared at 1 sessions instead of 2." in result["notes"]


def test_the_end_of_a_relay_ends_the_run_and_leaves_what_was_measured(bench: Bench) -> None:
    load, relays = bench
    found = Findings()

    def say(line: str) -> None:
        # The third turn begins with the bare relay.
        if len(found.pairs) == 2 and line.startswith("bare at 2"):
            kill(relays[1])

    with pytest.raises(measure.RunEnded, match=r"^other ended by itself \(exit code -9\)\.$"):
        measure.run(say, replace(TOLERANT, pieces=3), load, relays, found)
    assert len(found.pairs) == 2
    assert compare(found, NAMES, TOLERANT)["ratio_cpu_per_frame"] > 0


@pytest.mark.parametrize("which", ["clients", "service"])
def test_the_end_of_the_load_s_own_processes_is_not_the_relay_s(bench: Bench, which: str) -> None:
    load, relays = bench
    kill(getattr(load, which))
    with pytest.raises(measure.RunEnded, match=which):
        measure.run(lambda line: None, TOLERANT, load, relays, Findings())


@pytest.mark.slow
def test_the_product_is_compared_with_the_bare_relay() -> None:
    result = measure.measure(lambda line: None, TOLERANT)
    assert result["ratio_cpu_per_frame"] > 0
    assert result["cpu_us_per_frame"].keys() == {"bare", "voiceapp"}
    assert "mb_per_session" in result
    assert "notes" not in result


def test_a_run_without_a_comparison_prints_what_there_is_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = {"notes": ["voiceapp did not start."]}
    monkeypatch.setattr("voiceapp.web.management.commands.loadtest.measure", lambda say, plan: notes)
    out = StringIO()
    with pytest.raises(CommandError, match="could not be compared"):
        call_command("loadtest", "--json", stdout=out)
    assert json.loads(out.getvalue()) == notes
