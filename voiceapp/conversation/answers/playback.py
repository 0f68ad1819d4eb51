"""What the page has received, played and will never play of each item's audio; pure.

The service generates faster than real time, so what was received says little about what was heard. The
page reports what its speaker played; a page that never reports is taken to play in real time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LISTENING_MS = 2_000.0
"""A speaker whose reports do not move for so long has stopped."""

CUT_SETTLE_MS = 250.0
"""How long a cut waits for the page's last report before the last known position is taken."""

DRAINED_SLACK_MS = 2.0
"""Reports are whole milliseconds, so a track within this of its end has been heard to the end."""


@dataclass(slots=True)
class Track:
    """The audio of one item on its way to the speaker."""

    index: int
    item_id: str
    content_index: int
    response_id: str
    first_ms: float
    received_ms: float = 0.0
    reported_ms: float | None = None
    complete: bool = False
    drained: bool = False
    announced: bool = False
    settle_at_ms: float | None = None
    cut_ms: int | None = None
    parts: list[tuple[int, float]] = field(default_factory=list)
    """Where each part of the item's content begins, by its index, in milliseconds of the whole."""
    half_sample: bytes = b""
    """The beginning of a sample whose end comes with the next delta."""

    @property
    def cutting(self) -> bool:
        """Whether this track has been cut or is about to be: nothing more of it is played."""
        return self.cut_ms is not None or self.settle_at_ms is not None

    def within_part(self, at_ms: int) -> tuple[int, int]:
        """Return the part of the content that is heard at a moment, and how much of it is before that."""
        index, start = next((part for part in reversed(self.parts) if part[1] <= at_ms), self.parts[0])
        return index, int(at_ms - start)


@dataclass(slots=True)
class Playback:
    """The tracks of a session that are not over, in the order in which the page plays them."""

    tracks: dict[str, Track] = field(default_factory=dict)
    settling: list[Track] = field(default_factory=list)
    """The cuts that wait for the page's last report."""
    dropped_responses: set[str] = field(default_factory=set)
    latest_response_id: str = ""
    """The response whose audio came last."""
    _count: int = 0
    _reports: bool = False
    _free_at_ms: float = 0.0
    _advanced_ms: float = -math.inf

    def receive(self, item_id: str, content_index: int, response_id: str, now: float) -> Track | None:
        """Return the track of an item of which audio came; ``None`` where it must not reach the speaker."""
        if response_id in self.dropped_responses:
            return None
        track = self.tracks.get(item_id)
        if track is None:
            self._forget_heard(now)
            track = Track(self._count, item_id, content_index, response_id, first_ms=now)
            self._count += 1
            self.tracks[item_id] = track
            self.latest_response_id = response_id
        if track.cutting:
            return None
        if not track.parts or track.parts[-1][0] != content_index:
            track.parts.append((content_index, track.received_ms))
        # What was complete, and heard, goes on where the service has more of it.
        track.complete = track.drained = False
        return track

    def complete(self, item_id: str) -> Track | None:
        """All audio of an item has been received; return its track where this is news."""
        track = self.tracks.get(item_id)
        if track is None or track.complete:
            return None
        track.complete = True
        return track

    def report(self, item_id: str, played_ms: float, *, final: bool, now: float) -> Track | None:
        """Take the page's word for what it played; return the track, if it is a live one."""
        track = self.tracks.get(item_id)
        if track is None or track.drained or track.cut_ms is not None:
            return None
        self._reports = True
        # A page cannot have played what it never received, and playing does not go backwards.
        before = track.reported_ms or 0.0
        track.reported_ms = min(max(played_ms, before, 0.0), track.received_ms)
        if track.reported_ms > before:
            self._advanced_ms = now
        if final and not track.cutting and self._all_heard(track, track.reported_ms):
            track.drained = True
        return track

    def heard_ms(self, track: Track, now: float) -> float:
        """Return how much of a track has been heard, in milliseconds."""
        if track.reported_ms is not None:
            return track.reported_ms
        if self._reports:
            return 0.0
        return min(max(now - self._expected_start(track), 0.0), track.received_ms)

    def playing(self, now: float) -> bool:
        """Return whether anything is left to be heard."""
        return any(not self._over(track, now) for track in self.tracks.values())

    def listened(self, now: float) -> bool:
        """Return whether somebody listens: the speaker goes on, or would where the page reports nothing."""
        return now - self._advanced_ms < LISTENING_MS if self._reports else self.playing(now)

    def begin_cut(self, now: float) -> list[Track]:
        """Stop everything unheard; return the tracks that stop, first the one that is playing."""
        stopped = [track for track in self.tracks.values() if not self._over(track, now)]
        for track in stopped:
            track.settle_at_ms = now + CUT_SETTLE_MS
            self.dropped_responses.add(track.response_id)
        self.settling += stopped
        return stopped

    def settle(self, track: Track, now: float) -> int:
        """Fix a cut where the speaker stopped; return that position in whole milliseconds."""
        track.cut_ms = int(min(self.heard_ms(track, now), track.received_ms))
        track.settle_at_ms = None
        self.settling.remove(track)
        return track.cut_ms

    def _forget_heard(self, now: float) -> None:
        """Drop what is over: an hour's talk has a thousand tracks, and one or two of them matter."""
        for track in [track for track in self.tracks.values() if self._over(track, now)]:
            if track.settle_at_ms is None:
                self._free_at_ms = max(self._free_at_ms, self._expected_start(track) + track.received_ms)
                del self.tracks[track.item_id]

    def _over(self, track: Track, now: float) -> bool:
        if track.drained or track.cutting:
            return True
        return track.complete and self._all_heard(track, self.heard_ms(track, now))

    @staticmethod
    def _all_heard(track: Track, heard_ms: float) -> bool:
        return track.complete and heard_ms >= track.received_ms - DRAINED_SLACK_MS

    def _expected_start(self, track: Track) -> float:
        """When a page that does not report would have begun this track: after those before it."""
        end = self._free_at_ms
        for other in self.tracks.values():
            start = max(end, other.first_ms)
            if other is track:
                return start
            end = start + other.received_ms
        return track.first_ms
