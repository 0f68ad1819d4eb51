"""The turn that the user speaks, until its answer begins; pure."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs
from voiceapp.protocol import events
from voiceapp.protocol.events import Event, UnknownEvent

ANSWER_DUE_MS = 3_000.0
"""How long after the user stopped speaking the service may begin an answer of its own accord."""


@dataclass(slots=True)
class SpokenTurn:
    """Times are milliseconds on the session's clock."""

    speaking: bool = False
    _stopped_ms: float | None = None
    _answer_by_ms: float = 0.0

    def began(self) -> None:
        """The user speaks."""
        self.speaking = True

    def stopped(self, now: float) -> None:
        """The user spoke."""
        self.speaking = False
        self._stopped_ms, self._answer_by_ms = now, now + ANSWER_DUE_MS

    def answered(self) -> None:
        """A response began."""
        self._answer_by_ms = 0.0

    def latency(self, now: float) -> int | None:
        """Return how long the user waited for the first sound that comes now; once in a turn."""
        stopped_ms, self._stopped_ms = self._stopped_ms, None
        return None if stopped_ms is None else int(now - stopped_ms)

    def lost(self) -> None:
        """The service is gone, and with it what it had heard of the turn."""
        self.speaking, self._answer_by_ms = False, 0.0

    def open(self, now: float) -> bool:
        """Whether the user speaks, or may be answered any moment."""
        return self.speaking or now < self._answer_by_ms


QUIET_DBFS: Final = -46.0
"""A turn whose loudest frame is below this holds no speech: a quiet room is at -50, a quiet voice at -40."""


MAX_UNDER_WAY: Final = 64
"""Commits that the service has not answered yet; more are not looked at."""


@dataclass(slots=True)
class Doubt:
    """Which of the user's turns hold no speech, by how loud they were."""

    loudest_dbfs: float = -math.inf
    committed: deque[bool] = field(default_factory=lambda: deque(maxlen=MAX_UNDER_WAY))
    items: set[str] = field(default_factory=set)

    def hear(self, frame: bytes, audio_format: AudioFormat) -> None:
        """Take a frame of the microphone."""
        if self.loudest_dbfs >= QUIET_DBFS:
            return
        samples = frame if audio_format is AudioFormat.PCM16 else g711.decode(frame, audio_format)
        self.loudest_dbfs = max(self.loudest_dbfs, level_dbfs(samples))

    def page_sent(self, event: Event | UnknownEvent) -> None:
        """Take note where the page commits what it has sent, or has it forgotten."""
        if isinstance(event, events.InputAudioBufferCommit):
            self.committed.append(self.loudest_dbfs < QUIET_DBFS)
        if isinstance(event, events.InputAudioBufferCommit | events.InputAudioBufferClear):
            self.loudest_dbfs = -math.inf

    def became(self, item_id: str) -> None:
        """The service made an item of the commit before all others."""
        if self.committed and self.committed.popleft():
            self.items.add(item_id)

    def refused(self, code: str | None) -> None:
        """The service refused something of the page's: the commit before all others, by its code."""
        if self.committed and code == "input_audio_buffer_commit_empty":
            self.committed.popleft()

    def lost(self) -> None:
        """The connection is gone, and with it what was under way."""
        self.committed.clear()
        self.loudest_dbfs = -math.inf
