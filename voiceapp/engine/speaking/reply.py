"""Making one reply: the provider thinks, the voice speaks sentence by sentence, the delivery is paced.

A reply may be made before it is known whether it will be wanted: it then waits, with its first sentences
ready, until it is delivered or dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Transcoder
from voiceapp.engine.inference.loading import models
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.inference.voice import Speech, Voice, align_words
from voiceapp.engine.session.actions import Failed, Opened, ReplyFact, Speaking, Spoken
from voiceapp.engine.session.items import TimedWord
from voiceapp.errors import VoiceAppError
from voiceapp.serving.task_group import TaskGroup
from voiceapp.text.provider import Finished, ReplyRequest, TakenBack, TextDelta, TextProvider
from voiceapp.text.sentences import SentenceSplitter, SpokenForm

logger = logging.getLogger(__name__)

_FIRST_CHUNKS_MS: Final = (100, 150)
_CHUNK_MS: Final = 250
# So far ahead of the listener is enough for any network, and little is in vain when the user interrupts.
_AHEAD_MS: Final = 4_000
# Text that nobody has taken yet: a reply that may be dropped need not be thought to its end.
_MAX_FACTS: Final = 64
_MAX_SENTENCES: Final = 8
_AT_ONCE: Final = 1_000
_MAX_SPEECHES: Final = 2


_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class _Made(Generic[_Part]):
    """A part of a reply that waits, ``None`` behind the last; of ``attempt`` 0 it cannot be taken back."""

    attempt: int
    value: _Part | None


class ReplyProduction:
    """One reply in the making. ``run`` makes it; ``deliver`` hands it over."""

    def __init__(self, provider: TextProvider, request: ReplyRequest, speaking: Speaking | None) -> None:
        self.request = request
        self.speaking = speaking
        self._provider = provider
        self._facts: asyncio.Queue[_Made[ReplyFact]] = asyncio.Queue(_MAX_FACTS)
        self._sentences: asyncio.Queue[_Made[str]] = asyncio.Queue(_MAX_SENTENCES)
        self._speeches: asyncio.Queue[_Made[Speech]] = asyncio.Queue(_MAX_SPEECHES)
        self._splitter = SentenceSplitter()
        # Counts how often the words so far were taken back, from 1.
        self._attempt = 1
        # Until the provider says that it is the end, it is none.
        self._end: Finished | Failed = Failed("text_engine_error", "The model broke off its reply.")

    async def run(self) -> None:
        """Think and speak until done; never raises but for cancellation."""
        try:
            async with TaskGroup() as tasks:
                tasks.create_task(self._think())
                if self.speaking is not None:
                    tasks.create_task(self._speak(self.speaking))
        except* VoiceAppError as group:
            error = group.exceptions[0]
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            assert isinstance(error, VoiceAppError)
            self._end = Failed(error.code, error.message)
        except* Exception:
            # The boundary of a reply's tasks: what goes wrong is told as the response's end.
            logger.exception("A reply failed")
            self._end = Failed("server_error", "The reply could not be made.")
        await self._facts.put(_Made(0, None))
        await self._speeches.put(_Made(0, None))

    async def _think(self) -> None:
        """Take what the provider brings; where it fails, what it said before is spoken all the same."""
        try:
            await self._take_reply()
        except VoiceAppError as error:
            self._end = Failed(error.code, error.message)
            await self._say(self._splitter.finish())
        if self.speaking is not None:
            await self._sentences.put(_Made(0, None))

    async def _take_reply(self) -> None:
        opened = False
        async for delta in self._provider.reply(self.request):
            match delta:
                case TextDelta(text=text) if self.speaking is not None:
                    if not opened:
                        await self._facts.put(_Made(0, Opened()))
                        opened = True
                    # Whoever sends a book at once gets no more of the loop than who sends it word by word.
                    for start in range(0, len(text), _AT_ONCE):
                        await self._say(self._splitter.feed(text[start : start + _AT_ONCE]))
                case TextDelta():
                    await self._facts.put(_Made(self._attempt, delta))
                case TakenBack():
                    self._attempt += 1
                    self._splitter = SentenceSplitter()
                    await self._facts.put(_Made(0, delta))
                case Finished():
                    self._end = delta
                case _:
                    await self._facts.put(_Made(0, delta))
        await self._say(self._splitter.finish())

    async def _say(self, sentences: list[str]) -> None:
        for sentence in sentences:
            await self._sentences.put(_Made(self._attempt, sentence))

    async def _speak(self, speaking: Speaking) -> None:
        priority, forms, attempt = Priority.FINAL, SpokenForm(), self._attempt
        while (sentence := await self._sentences.get()).value is not None:
            if self._is_taken_back(sentence):
                continue
            if sentence.attempt != attempt:
                forms, attempt = SpokenForm(), sentence.attempt
            ready = await models().ready()
            read = forms.of(sentence.value)
            speech = await ready.pool.run(
                priority, _spoken, ready.voice, sentence.value, read, speaking.speed
            )
            await self._speeches.put(_Made(sentence.attempt, speech))
            priority = Priority.SENTENCE

    def _is_taken_back(self, made: _Made[Any]) -> bool:
        return 0 < made.attempt < self._attempt

    async def deliver(
        self, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        """Hand over every fact in order; ``drained`` is awaited before more audio is handed over."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._deliver_facts(take, drained))
            if self.speaking is not None:
                tasks.create_task(self._deliver_speech(self.speaking, take, drained))
        take(self._end)

    async def _deliver_facts(
        self, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        while (fact := await self._facts.get()).value is not None:
            if not self._is_taken_back(fact):
                take(fact.value)
                await drained()

    async def _deliver_speech(
        self, speaking: Speaking, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        chunks = Chunks(speaking.audio_format)
        loop = asyncio.get_running_loop()
        begun_s = sent_ms = 0.0
        while (speech := await self._speeches.get()).value is not None:
            if self._is_taken_back(speech):
                continue
            for spoken in chunks.feed(speech.value):
                now_s = loop.time()
                begun_s = begun_s or now_s
                ahead_ms = sent_ms - (now_s - begun_s) * 1000
                if ahead_ms > _AHEAD_MS:
                    await asyncio.sleep((ahead_ms - _AHEAD_MS) / 1000)
                await drained()
                take(spoken)
                sent_ms += speaking.audio_format.duration_ms(len(spoken.audio))
        for spoken in chunks.finish():
            take(spoken)


def _spoken(voice: Voice, sentence: str, read: str, speed: float) -> Speech:
    """Return ``read`` as speech, with the words of ``sentence``, which is what the caption shows."""
    speech = voice.speak(read, speed)
    return speech if read == sentence else replace(speech, words=align_words(sentence, speech.words))


class Chunks:
    """Speech in the wanted format, cut into the pieces in which it is sent, with the words of each."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._transcoder = Transcoder(AudioFormat.PCM16, audio_format)
        self._audio = bytearray()
        self._words: list[TimedWord] = []
        self._spoken_ms = 0.0
        self._cut_ms = 0.0
        self._count = 0

    def feed(self, speech: Speech) -> list[Spoken]:
        """Take one sentence; return its pieces, the last of them shorter."""
        self._words += [
            TimedWord(word.text, self._spoken_ms + word.start_ms, self._spoken_ms + word.end_ms)
            for word in speech.words
        ]
        self._spoken_ms += speech.duration_ms
        self._audio += self._transcoder.feed(speech.samples)
        pieces: list[Spoken] = []
        while self._audio:
            pieces.append(self._cut())
        return pieces

    def finish(self) -> list[Spoken]:
        """Return what the resampler and the words still hold."""
        if self._format is not AudioFormat.PCM16:
            self._audio += self._transcoder.feed(b"", last=True)
        if not self._audio and not self._words:
            return []
        words, self._words = tuple(self._words), []
        audio, self._audio = bytes(self._audio), bytearray()
        return [Spoken(audio, words)]

    def _cut(self) -> Spoken:
        duration_ms = _FIRST_CHUNKS_MS[self._count] if self._count < len(_FIRST_CHUNKS_MS) else _CHUNK_MS
        self._count += 1
        size = duration_ms * self._format.bytes_per_ms
        audio = bytes(self._audio[:size])
        del self._audio[:size]
        self._cut_ms += self._format.duration_ms(len(audio))
        begun = [word for word in self._words if word.start_ms < self._cut_ms]
        self._words = self._words[len(begun) :]
        return Spoken(audio, tuple(begun))
