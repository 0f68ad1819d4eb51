"""From speech probabilities to turns: when the user starts and stops, on the input buffer's clock.

Pure: one probability per window of ``WINDOW_MS`` goes in, turn marks come out. All times are milliseconds of
audio written to the buffer since the session began, as in the protocol's ``audio_start_ms``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from voiceapp.engine.turns.endpointing import Completeness

WINDOW_MS: Final = 32
"""Length of one detection window: 512 samples at 16 kHz."""

_ONSET_WINDOWS: Final = 2
# Below the threshold by this much counts as silence: one value for both would flicker at the edge.
_HYSTERESIS: Final = 0.15
_SPECULATE_MS: Final = 160


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """``turn_detection`` of a session that detects turns itself."""

    type: Literal["server_vad", "semantic_vad"] = "server_vad"
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 200
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"

    @classmethod
    def from_ga(cls, turn_detection: dict[str, Any] | None) -> TurnSettings | None:
        """Read a complete GA ``turn_detection`` object; ``None`` is push-to-talk."""
        if turn_detection is None:
            return None
        known = {name: turn_detection[name] for name in cls.__dataclass_fields__ if name in turn_detection}
        return cls(**known)

    def silence_ms(self, ending: Completeness | None = None) -> int:
        """How long the user must be silent for the turn to be over.

        ``ending`` is how the words end, ``None`` where that is not known: then the longest wait holds.
        """
        if self.type == "server_vad":
            return self.silence_duration_ms
        return _SEMANTIC_SILENCE_MS[self.eagerness][ending or Completeness.HANGING]

    @property
    def shortest_ms(self) -> int:
        """The silence before which no turn ends, whatever was said."""
        return self.silence_ms(Completeness.OVER)

    @property
    def speculate_ms(self) -> int:
        """Silence after which a reply is prepared; less than half of the wait where the wait is short."""
        return min(_SPECULATE_MS, self.shortest_ms * 2 // 5)


_MEDIUM: Final = {
    Completeness.OVER: 450,
    Completeness.OPEN: 1_200,
    Completeness.UNFINISHED: 2_500,
    Completeness.HANGING: 4_000,
}
_SEMANTIC_SILENCE_MS: Final = {
    "low": {
        Completeness.OVER: 800,
        Completeness.OPEN: 2_200,
        Completeness.UNFINISHED: 5_000,
        Completeness.HANGING: 8_000,
    },
    "medium": _MEDIUM,
    "auto": _MEDIUM,
    "high": {
        Completeness.OVER: 250,
        Completeness.OPEN: 600,
        Completeness.UNFINISHED: 1_200,
        Completeness.HANGING: 2_000,
    },
}


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The user speaks; ``audio_start_ms`` includes the padding."""

    audio_start_ms: int
    detected_ms: int


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The user may have finished: worth preparing a reply with the audio up to ``audio_end_ms``."""

    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The pause was no end: throw away what was prepared."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The turn is over; ``audio_end_ms`` includes the silence that was waited for."""

    audio_end_ms: int
    last_speech_ms: int


TurnMark = SpeechStarted | SpeechPaused | SpeechResumed | SpeechStopped


class TurnDetector:
    """Turns of one stream. Feed every window once, in order."""

    def __init__(self, settings: TurnSettings) -> None:
        self._settings = settings
        self._speaking = False
        self._onset = 0
        self._onset_ms = 0
        self._silence_ms = 0
        self._last_speech_ms = 0
        self._paused = False
        self._floor_ms = 0
        self._ending: Completeness | None = None

    @property
    def speaking(self) -> bool:
        """Whether a turn is open."""
        return self._speaking

    @property
    def silent_ms(self) -> int:
        """How long the user of an open turn has been silent."""
        return self._silence_ms

    @property
    def undecided(self) -> bool:
        """Whether the next window may end the turn, which depends on words that nobody has judged yet."""
        return (
            self._paused
            and self._ending is None
            and self._settings.type == "semantic_vad"
            and self._silence_ms + WINDOW_MS >= self._settings.shortest_ms
        )

    def judge(self, ending: Completeness) -> None:
        """Say how the words before the pause end; it holds until speech goes on."""
        if self._paused:
            self._ending = ending

    @property
    def prefix_padding_ms(self) -> int:
        """How much audio before speech belongs to a turn."""
        return self._settings.prefix_padding_ms

    @property
    def interrupts(self) -> bool:
        """Whether the user's speech stops the assistant's."""
        return self._settings.interrupt_response

    def configure(self, settings: TurnSettings) -> None:
        """Change the settings; an open turn goes on under the new ones."""
        self._settings = settings

    def reset(self, at_ms: int) -> None:
        """Forget an open turn; no later turn starts before ``at_ms`` (the buffer was emptied there)."""
        self._speaking = self._paused = False
        self._ending = None
        self._onset = 0
        self._silence_ms = 0
        self._floor_ms = at_ms

    def feed(self, probability: float, start_ms: int) -> list[TurnMark]:
        """Take the window that begins at ``start_ms``; return what it brought about, in order."""
        if self._speaking:
            return self._feed_turn(probability, start_ms)
        return self._feed_silence(probability, start_ms)

    def _feed_silence(self, probability: float, start_ms: int) -> list[TurnMark]:
        if probability < self._settings.threshold:
            self._onset = 0
            return []
        if self._onset == 0:
            self._onset_ms = start_ms
        self._onset += 1
        if self._onset < _ONSET_WINDOWS:
            return []
        end_ms = start_ms + WINDOW_MS
        self._speaking, self._paused, self._silence_ms = True, False, 0
        self._ending = None
        self._last_speech_ms = end_ms
        begin_ms = max(self._floor_ms, self._onset_ms - self._settings.prefix_padding_ms, 0)
        return [SpeechStarted(begin_ms, end_ms)]

    def _feed_turn(self, probability: float, start_ms: int) -> list[TurnMark]:
        end_ms = start_ms + WINDOW_MS
        settings = self._settings
        if probability >= settings.threshold:
            self._last_speech_ms = end_ms
            self._silence_ms = 0
            self._ending = None
            if self._paused:
                self._paused = False
                return [SpeechResumed(start_ms)]
            return []
        # Between the two thresholds a pause neither begins nor ends.
        if self._silence_ms == 0 and probability >= max(settings.threshold - _HYSTERESIS, 0.01):
            self._last_speech_ms = end_ms
            return []
        self._silence_ms += WINDOW_MS
        if self._silence_ms >= settings.silence_ms(self._ending):
            self._speaking = self._paused = False
            self._onset = 0
            self._floor_ms = end_ms
            return [SpeechStopped(end_ms, self._last_speech_ms)]
        # Only at the first window past the mark: every further one would pile up work.
        if not self._paused and self._silence_ms >= settings.speculate_ms:
            self._paused = True
            return [SpeechPaused(end_ms)]
        return []
