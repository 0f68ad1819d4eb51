"""The words of one stretch of microphone audio, found while it grows.

Short speech is decoded whole, again and again. Long speech is divided at its quietest places, and what lies
before the last division is settled: it is never decoded again, and its audio may be let go.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from voiceapp.engine.hearing.ear import Captions, Ear
from voiceapp.engine.inference.loading import Models
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.inference.recogniser import Recognition
from voiceapp.engine.session.transcripts import Segment
from voiceapp.language.punctuation import ended


class Utterance:
    """One turn, or one press of the talk button; ``start_ms`` is on the buffer's clock."""

    def __init__(self, models: Models, ear: Ear, start_ms: int) -> None:
        self.captions = Captions()
        self._models = models
        self._ear = ear
        self._begin_ms = self._start_ms = start_ms
        self._settled: list[Segment] = []
        self._last: Segment | None = None
        self._draft: tuple[int, ...] = ()
        self._lock = asyncio.Lock()

    @property
    def needed_from_ms(self) -> int:
        """Audio from here on is still needed."""
        return self._start_ms

    @property
    def segments(self) -> list[Segment]:
        """What ``words`` found last, stretch by stretch; the last of them ends as a sentence does."""
        found = [*self._settled, *([self._last] if self._last is not None else [])]
        while found:
            last = found.pop()
            if text := ended(last.text):
                return [*found, replace(last, text=text)]
        return []

    async def settle(self, end_ms: int) -> None:
        """Settle what can be, of the audio up to ``end_ms``."""
        async with self._lock:
            await self._settle(end_ms, Priority.SENTENCE)

    async def partial(self, end_ms: int) -> str:
        """Return the words so far."""
        async with self._lock:
            await self._settle(end_ms, Priority.SENTENCE)
            found = await self._decode(end_ms, Priority.PARTIAL)
            self._draft = found.tokens
            return self._join(found.text)

    async def words(self, end_ms: int, priority: Priority) -> str:
        """Return all words up to ``end_ms``, with the marks that the recogniser puts behind them."""
        async with self._lock:
            await self._settle(end_ms, priority)
            found = await self._decode(end_ms, priority)
            self._last = self._segment(found.text, end_ms)
            return self._join(found.text)

    async def _settle(self, end_ms: int, priority: Priority) -> None:
        while (cut := self._ear.cut_point(self._start_ms, end_ms)) is not None:
            found = await self._decode(cut, priority)
            if (segment := self._segment(found.text, cut)) is not None:
                self._settled.append(segment)
            self._start_ms = cut
            self._draft = ()

    async def _decode(self, end_ms: int, priority: Priority) -> Recognition:
        span = self._ear.speech_span(self._start_ms, end_ms)
        if span is None:
            return Recognition("")
        samples = self._ear.samples(*span)
        return await self._models.pool.run(priority, self._models.recogniser.recognise, samples, self._draft)

    def _join(self, last: str) -> str:
        return " ".join(part for part in (*(one.text for one in self._settled), last) if part)

    def _segment(self, text: str, end_ms: int) -> Segment | None:
        spoken = self._ear.spoken(self._start_ms, end_ms)
        if not text or spoken is None:
            return None
        return Segment(text, spoken[0] - self._begin_ms, spoken[1] - self._begin_ms)
