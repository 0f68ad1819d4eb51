"""What a run measured, and what may be said of it: judges a load, chooses the next one, compares. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from statistics import median
from typing import Any

FRAMES_PER_S = 50
"""Frames that each session sends in a second, 20 ms each."""


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and when a load counts as carried."""

    sessions: int = 60
    """Load of the steady comparison, where the machine can carry it."""
    rounds: int = 3
    search: bool = True
    """Whether to look for the most sessions that each relay carries."""
    limit_ms: float = 10.0
    """A relay is full when the slowest percent of frames takes longer than this there and back."""
    least_share: float = 0.97
    """Share of the frames that must come back, and of the pace of real time at which they must be sent."""
    full_share: float = 0.9
    """The load's own processes are full when they use this share of the core that they run on."""
    busy_share: float = 0.7
    """A relay that uses less than this of its core, and is too slow, is held up by something else."""
    smallest: int = 4
    """Sessions of the first load."""
    most: int = 1500
    """Sessions at the most, so that a run is bounded whatever the machine."""
    growth: float = 1.12
    piece_s: float = 3.0
    """Length of what is measured at once, in seconds."""
    settle_s: float = 1.0
    """Length of what is sent before, uncounted, in seconds."""
    pieces: int = 3
    """Pieces for each relay in a round of the steady comparison."""
    attempts: int = 2
    """A load is not carried once this many pieces in a row were not."""


@dataclass(frozen=True)
class Piece:
    """What was measured of one relay under one load in one go."""

    sessions: int
    """Sessions that were wanted."""
    joined: int
    """Sessions that were there to the end."""
    seconds: float
    """Length of the audio that each sent."""
    took_s: float
    """Time that the load's clients needed to send it."""
    frames: int
    """Frames that came back."""
    p99_ms: float
    """Delay there and back that only the slowest percent exceeded; infinite where no frame came back."""
    wall_s: float
    """Time for which CPU was counted."""
    relay_cpu_s: float
    load_cpu_s: Mapping[str, float]
    """CPU of each of the load's processes, which share one core."""

    @property
    def cpu_us_per_frame(self) -> float:
        """The relay's CPU for a frame there and back, in microseconds; there must be frames."""
        return 1e6 * self.relay_cpu_s / self.frames

    @property
    def relay_share(self) -> float:
        """Share of its core that the relay used."""
        return self.relay_cpu_s / self.wall_s

    @property
    def load_share(self) -> float:
        """Share of their core that the load's processes used."""
        return sum(self.load_cpu_s.values()) / self.wall_s

    @property
    def returned_share(self) -> float:
        """Share of the frames that came back, of those that all the wanted sessions would have sent."""
        return self.frames / (self.sessions * self.seconds * FRAMES_PER_S)


class Verdict(Enum):
    """What became of a load."""

    CARRIED = auto()
    OVER_LIMIT = auto()
    """The relay was too slow, or let sessions or frames fall."""
    LOAD_FULL = auto()
    """The load's own processes were full or held up: nothing is known of the relay."""
    HELD_UP = auto()
    """Too slow, but neither the relay nor the load was full: something else on the machine was in the way."""
    SILENT = auto()
    """Nothing came back."""


def judge(piece: Piece, plan: Plan) -> Verdict:
    """Return what became of the load that a piece measured."""
    whole, late = _is_whole(piece, plan), _is_late(piece, plan)
    if whole and not late and piece.p99_ms < plan.limit_ms:
        return Verdict.CARRIED
    if late or piece.load_share >= plan.full_share:
        return Verdict.LOAD_FULL
    if not piece.frames:
        return Verdict.SILENT
    busy = piece.relay_share >= plan.busy_share or piece.joined < piece.sessions
    return Verdict.OVER_LIMIT if busy else Verdict.HELD_UP


def keeps_up(piece: Piece, plan: Plan) -> bool:
    """Return whether the relay did all its work in time, though perhaps with delays over the limit.

    What a frame costs can be compared then: a program that holds a relay up changes its delays, not its work.
    """
    if judge(piece, plan) is Verdict.CARRIED:
        return True
    full = max(piece.relay_share, piece.load_share) >= plan.full_share
    return _is_whole(piece, plan) and not _is_late(piece, plan) and not full


def _is_whole(piece: Piece, plan: Plan) -> bool:
    # More than all: what an earlier load left behind came back as well.
    returned = plan.least_share < piece.returned_share < 1 / plan.least_share
    return piece.joined == piece.sessions and returned


def _is_late(piece: Piece, plan: Plan) -> bool:
    return piece.seconds < plan.least_share * piece.took_s


def describe(name: str, piece: Piece, plan: Plan) -> str:
    """Return a sentence about what a relay did under a load."""
    start = f"{name} at {piece.sessions} sessions: "
    match judge(piece, plan):
        case Verdict.LOAD_FULL:
            shares = ", ".join(
                f"{process} {100 * cpu_s / piece.wall_s:.0f} %" for process, cpu_s in piece.load_cpu_s.items()
            )
            if piece.load_share >= plan.full_share:
                return f"{start}the load's own processes are full ({shares} of their core)."
            pace = f"{piece.seconds:g} s of audio took {piece.took_s:.1f} s to send"
            return (
                f"{start}something else holds the load's own processes up: {pace} ({shares} of their core)."
            )
        case Verdict.SILENT:
            return f"{start}no frame came back."
        case Verdict.OVER_LIMIT if piece.joined < piece.sessions:
            return f"{start}only {piece.joined} could join or stay."
        case verdict:
            returned = f"{100 * piece.returned_share:.0f} % of the frames came back"
            core = f"{100 * piece.relay_share:.0f} % of its core"
            end = "; neither it nor the load is full." if verdict is Verdict.HELD_UP else "."
            return f"{start}p99 {piece.p99_ms:.2f} ms, {returned}, {core}{end}"


def first_loads(plan: Plan) -> Iterator[int]:
    """Yield the loads that lead to the steady comparison's: from the smallest on, doubled each time."""
    size = plan.smallest
    while size < plan.sessions:
        yield size
        size *= 2
    yield plan.sessions


@dataclass(frozen=True)
class Limit:
    """What a search found."""

    sessions: int
    """The most that was carried."""
    found: bool
    """Whether the relay could not carry more; else the search ended for another reason, and it may."""


class Search:
    """Chooses loads until the most that a relay carries is known."""

    def __init__(self, start: int, plan: Plan) -> None:
        self._start, self._plan = start, plan
        self._carried = 0
        self._failing: int | None = None
        self._reason = Verdict.CARRIED

    def next_size(self) -> int | None:
        """Return the load to try next, None where the search is over."""
        if self._failing is None:
            if self._carried >= self._plan.most:
                return None
            return min(self._grown() if self._carried else self._start, self._plan.most)
        if not self._carried:
            return self._failing // 2 or None
        if not self._is_found():
            return None
        size = self._grown()
        return size if size < self._failing else None

    def take(self, size: int, verdict: Verdict) -> None:
        """Take in what became of a load."""
        if verdict is Verdict.CARRIED:
            self._carried = size
        else:
            self._failing, self._reason = size, verdict

    def limit(self) -> Limit:
        """Return what is known so far."""
        return Limit(self._carried, self._is_found())

    def _is_found(self) -> bool:
        """Return whether the relay itself is why the last load that failed was not carried."""
        return self._reason in (Verdict.OVER_LIMIT, Verdict.SILENT)

    def _grown(self) -> int:
        return int(self._carried * self._plan.growth + 1)


@dataclass
class Findings:
    """What a run has found so far; the bare relay's part of a pair comes first."""

    sessions: int = 0
    """Load of the steady comparison; 0 before it."""
    pairs: list[tuple[Piece, Piece]] = field(default_factory=list)
    """Pieces of both relays that were measured one right after the other."""
    mb_per_session: float | None = None
    limits: list[tuple[Limit, Limit]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader of the figures must know."""


def compare(found: Findings, names: tuple[str, str], plan: Plan) -> dict[str, Any]:
    """Return the figures that were measured, under their names; what was not measured is not among them.

    ``names`` are those of the bare relay and of the product.
    """
    result: dict[str, Any] = {}
    pairs = [
        pair for pair in found.pairs if all(keeps_up(piece, plan) and piece.relay_cpu_s > 0 for piece in pair)
    ]
    if pairs:
        result |= {"sessions": found.sessions} | _steady(pairs, names)
    if found.mb_per_session is not None:
        result["mb_per_session"] = round(found.mb_per_session, 2)
    result |= _limits(found.limits, names)
    notes = list(found.notes)
    if len(pairs) < len(found.pairs):
        share = f"{len(found.pairs) - len(pairs)} of {len(found.pairs)} pairs of measurements"
        notes.append(f"{share} are left out: a relay, or the load, did not keep up.")
    return result | ({"notes": notes} if notes else {})


def _steady(pairs: list[tuple[Piece, Piece]], names: tuple[str, str]) -> dict[str, Any]:
    ratios = [product.cpu_us_per_frame / bare.cpu_us_per_frame for bare, product in pairs]
    cpu_us = [median(pair[place].cpu_us_per_frame for pair in pairs) for place in (0, 1)]
    p99_ms = [median(pair[place].p99_ms for pair in pairs) for place in (0, 1)]
    return {
        "ratio_cpu_per_frame": round(median(ratios), 3),
        "cpu_us_per_frame": {name: round(cpu_us[place], 1) for place, name in enumerate(names)},
        "p99_ms": {name: round(p99_ms[place], 2) for place, name in enumerate(names)},
        "added_p99_ms": round(p99_ms[1] - p99_ms[0], 2),
    }


def _limits(limits: list[tuple[Limit, Limit]], names: tuple[str, str]) -> dict[str, Any]:
    per_core: dict[str, int] = {}
    at_least: dict[str, int] = {}
    for place, name in enumerate(names):
        searches = [pair[place] for pair in limits]
        if searches and all(limit.found for limit in searches):
            per_core[name] = int(median(limit.sessions for limit in searches))
        elif carried := max((limit.sessions for limit in searches), default=0):
            at_least[name] = carried
    ratios = [
        product.sessions / bare.sessions
        for bare, product in limits
        if bare.found and product.found and bare.sessions and product.sessions
    ]
    result: dict[str, Any] = {}
    if per_core:
        result["sessions_per_core"] = per_core
    if at_least:
        result["sessions_per_core_at_least"] = at_least
    if ratios:
        result["ratio_sessions_per_core"] = round(median(ratios), 3)
    return result
