"""Making one reply: the provider thinks, the voice speaks sentence by sentence, the delivery is paced.

A reply may be made before it is known whether it will be wanted: it then waits, with its first sentences
ready, until it is delivered or dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.resample import Transcoder
from voiceapp.engine.inference.loading import models
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.inference.voice import Speech
from voiceapp.engine.session.actions import Failed, Opened, ReplyFact, Speaking, Spoken
from voiceapp.engine.session.items import TimedWord
from voiceapp.errors import VoiceAppError
from voiceapp.text.provider import Finished, ReplyRequest, TextDelta, TextProvider
from voiceapp.text.sentences import SentenceSplitter

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


class ReplyProduction:
    """One reply in the making. ``run`` makes it; ``deliver`` hands it over."""

    def __init__(self, provider: TextProvider, request: ReplyRequest, speaking: Speaking | None) -> None:
        self.request = request
        self.speaking = speaking
        self._provider = provider
        self._facts: asyncio.Queue[ReplyFact | None] = asyncio.Queue(_MAX_FACTS)
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue(_MAX_SENTENCES)
        self._speeches: asyncio.Queue[Speech | None] = asyncio.Queue(_MAX_SPEECHES)
        self._end: Finished | Failed = Finished()

    async def run(self) -> None:
        """Think and speak until done; never raises but for cancellation."""
        try:
            async with asyncio.TaskGroup() as tasks:
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
        await self._facts.put(None)
        await self._speeches.put(None)

    async def _think(self) -> None:
        splitter = SentenceSplitter()
        opened = False
        async for delta in self._provider.reply(self.request):
            match delta:
                case TextDelta(text=text) if self.speaking is not None:
                    if not opened:
                        await self._facts.put(Opened())
                        opened = True
                    # Whoever sends a book at once gets no more of the loop than who sends it word by word.
                    for start in range(0, len(text), _AT_ONCE):
                        for sentence in splitter.feed(text[start : start + _AT_ONCE]):
                            await self._sentences.put(sentence)
                case Finished():
                    self._end = delta
                case _:
                    await self._facts.put(delta)
        for sentence in splitter.finish():
            await self._sentences.put(sentence)
        if self.speaking is not None:
            await self._sentences.put(None)

    async def _speak(self, speaking: Speaking) -> None:
        priority = Priority.FINAL
        while (sentence := await self._sentences.get()) is not None:
            ready = await models().ready()
            speech = await ready.pool.run(priority, ready.voice.speak, sentence, speaking.speed)
            await self._speeches.put(speech)
            priority = Priority.SENTENCE

    async def deliver(
        self, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        """Hand over every fact in order; ``drained`` is awaited before more audio is handed over."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._deliver_facts(take, drained))
            if self.speaking is not None:
                tasks.create_task(self._deliver_speech(self.speaking, take, drained))
        take(self._end)

    async def _deliver_facts(
        self, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        while (fact := await self._facts.get()) is not None:
            take(fact)
            await drained()

    async def _deliver_speech(
        self, speaking: Speaking, take: Callable[[ReplyFact], None], drained: Callable[[], Awaitable[None]]
    ) -> None:
        chunks = Chunks(speaking.audio_format)
        loop = asyncio.get_running_loop()
        begun_s = sent_ms = 0.0
        while (speech := await self._speeches.get()) is not None:
            for spoken in chunks.feed(speech):
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
