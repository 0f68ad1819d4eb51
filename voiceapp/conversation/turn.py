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

QUIET_DBFS: Final = -46.0
"""A turn whose loudest frame is below this holds no speech: a quiet room is at -50, a quiet voice at -40."""

COMMIT_EMPTY: Final = "input_audio_buffer_commit_empty"
"""The service's code for a commit without sound."""

MAX_UNDER_WAY: Final = 64
"""Commits that the service has not answered yet; more are not looked at."""


@dataclass(slots=True)
class UserTurn:
    """What is known of the turn that the user speaks, and which turns hold no speech, by their loudness.

    Times are milliseconds on the session's clock. ``speechless`` has the items of turns that the user
    committed although no frame of them was as loud as a voice.
    """

    speaking: bool = False
    speechless: set[str] = field(default_factory=set)
    uncommitted: bool = False
    """Whether speech has begun of which the service has made no item yet."""
    unanswered: bool = False
    """Whether a turn was committed, and the service has not begun to answer it."""
    _committed_id: str = ""
    _stopped_ms: float | None = None
    _answer_by_ms: float = 0.0
    _loudest_dbfs: float = -math.inf
    _quiet_commits: deque[bool] = field(default_factory=lambda: deque(maxlen=MAX_UNDER_WAY))

    def speech_started(self) -> None:
        """The user speaks."""
        self.speaking = self.uncommitted = True

    def speech_stopped(self, now: float) -> None:
        """The user spoke."""
        self.speaking = False
        self._stopped_ms, self._answer_by_ms = now, now + ANSWER_DUE_MS

    def response_began(self) -> None:
        """The answer has begun."""
        self._answer_by_ms = 0.0
        self.unanswered = False

    def latency(self, now: float) -> int | None:
        """Return how long the user waited for the first sound that comes now; once in a turn."""
        stopped_ms, self._stopped_ms = self._stopped_ms, None
        return None if stopped_ms is None else int(now - stopped_ms)

    def open(self, now: float) -> bool:
        """Whether the user speaks, or may be answered any moment."""
        return self.speaking or now < self._answer_by_ms

    def hear(self, frame: bytes, audio_format: AudioFormat) -> None:
        """Take a frame of the microphone, where the user says when a turn is over."""
        if self._loudest_dbfs >= QUIET_DBFS:
            return
        samples = frame if audio_format is AudioFormat.PCM16 else g711.decode(frame, audio_format)
        self._loudest_dbfs = max(self._loudest_dbfs, level_dbfs(samples))

    def event_sent(self, event: Event | UnknownEvent) -> None:
        """Take note where the page commits what it has sent, or has it forgotten."""
        if isinstance(event, events.InputAudioBufferCommit):
            self._quiet_commits.append(self._loudest_dbfs < QUIET_DBFS)
        if isinstance(event, events.InputAudioBufferCommit | events.InputAudioBufferClear):
            self._loudest_dbfs = -math.inf

    def committed(self, item_id: str) -> None:
        """The service made an item of the turn, by the commit before all others where there was one."""
        self.unanswered, self._committed_id = True, item_id
        # What is an item is over, also where the service has not said so.
        self.speaking = self.uncommitted = False
        if self._quiet_commits and self._quiet_commits.popleft():
            self.speechless.add(item_id)

    def wordless(self, item_id: str) -> None:
        """No words were heard in a turn: if it was the last, nobody need answer it."""
        if item_id == self._committed_id:
            self.unanswered = False

    def commit_refused(self, code: str | None) -> None:
        """The service refused something of the page's: the commit before all others, by its code."""
        if self._quiet_commits and code == COMMIT_EMPTY:
            self._quiet_commits.popleft()

    def connection_lost(self) -> None:
        """The service is gone, and with it what it had heard of the turn and what was under way."""
        self.speaking = self.uncommitted = False
        self._answer_by_ms = 0.0
        self.unanswered = False
        self._quiet_commits.clear()
        self._loudest_dbfs = -math.inf
