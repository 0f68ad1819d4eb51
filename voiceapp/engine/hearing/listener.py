"""One connection's listening: microphone audio in, turns and transcripts out, as facts for the session.

Detection, recognition and the preparation of a reply run in the inference threads; this is their conductor on
the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from voiceapp.engine.hearing.ear import Ear, Window
from voiceapp.engine.hearing.echo import EchoGate
from voiceapp.engine.hearing.utterance import Utterance
from voiceapp.engine.inference.loading import Models
from voiceapp.engine.inference.pool import Priority
from voiceapp.engine.session.actions import Action, ForgetTurn, Hear, Listen, Transcribe, TranscribeAudio
from voiceapp.engine.session.session import EngineSession
from voiceapp.engine.turns.detector import (
    WINDOW_MS,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnDetector,
    TurnMark,
)
from voiceapp.engine.turns.endpointing import Completeness, judge
from voiceapp.language.punctuation import ended
from voiceapp.serving.task_group import TaskGroup

logger = logging.getLogger(__name__)

Order = Hear | Listen | ForgetTurn | Transcribe | TranscribeAudio

# Speech is decoded again after this much more of it.
_PARTIAL_MS: Final = 320
# The first word is looked for, and shown unconfirmed, once speech has lasted for this long.
_EAGER_MS: Final = 416
# Kept in front of a turn that may begin at any moment, beyond its padding.
_SPARE_MS: Final = 500
_PIECE_MS: Final = 1_000
# After so much silence in an open turn there are no more words to be found.
_QUIET_MS: Final = 1_000
# A client may send a file at once; what is not heard yet waits here, and the client beyond that.
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_MAX_FINISHING: Final = 8


@dataclass(slots=True)
class _Speculation:
    """The words of a turn that has perhaps ended."""

    utterance: Utterance
    task: asyncio.Task[str | None]


class Listener:
    """Takes orders in sequence; ``run`` carries them out."""

    def __init__(
        self,
        session: EngineSession,
        perform: Callable[[list[Action]], None],
        prepare: Callable[[str | None], None],
        next_is_lost: Callable[[], bool],
    ) -> None:
        """``prepare`` is told the words of a turn that may be over, and ``None`` when it was not.

        ``next_is_lost`` is asked of each turn's words whether they shall be lost on purpose.
        """
        self._session = session
        self._perform = perform
        self._prepare = prepare
        self._next_is_lost = next_is_lost
        self.echo = EchoGate()
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._detector: TurnDetector | None = None
        self._open: Utterance | None = None
        self._closed: dict[str, Utterance] = {}
        self._finishing: set[Utterance] = set()
        self._finish_tasks: set[asyncio.Task[None]] = set()
        self._partial: asyncio.Task[None] | None = None
        self._speech_ms = 0
        self._decoded_ms = 0
        self._speculation: _Speculation | None = None

    def order(self, order: Order) -> None:
        """Queue an order; callers wait for ``room`` between messages."""
        if isinstance(order, Hear):
            self._waiting_bytes += len(order.audio)
            if self._waiting_bytes > _MAX_WAITING_BYTES:
                self._room.clear()
        self._orders.put_nowait(order)

    async def room(self) -> None:
        """Wait until more audio may be queued."""
        await self._room.wait()

    async def run(self, models: Models) -> None:
        """Carry out orders until cancelled."""
        self._models = models
        try:
            async with TaskGroup() as self._tasks:
                first = await self._orders.get()
                assert isinstance(first, Listen)
                self._format = first.audio_format
                self._ear = Ear(models.detector, first.audio_format)
                self._listen(first)
                while True:
                    await self._carry_out(await self._orders.get())
        finally:
            # Tasks that were cancelled hold what they were cancelled in, which is this.
            del self._tasks
            self._partial = self._speculation = None
            self._finish_tasks.clear()

    async def fail(self, code: str, message: str) -> None:
        """Carry out orders without models: nothing is heard, and every transcription fails."""
        while True:
            match await self._orders.get():
                case Hear(audio=audio):
                    self._done_with(audio)
                case Transcribe(item_id=item_id) | TranscribeAudio(item_id=item_id):
                    self._perform(self._session.transcript_failed(item_id, code, message))

    async def _carry_out(self, order: Order) -> None:
        match order:
            case Hear(audio=audio):
                await self._hear(audio)
            case Listen():
                self._listen(order)
            case ForgetTurn(at_ms=at_ms):
                self._forget_turn(at_ms)
            case Transcribe():
                await self._transcribe(order)
            case TranscribeAudio():
                await self._begin_finishing(self._transcribe_given(order), None)

    # -- microphone -------------------------------------------------------------------------------------

    async def _hear(self, audio: bytes) -> None:
        size = _PIECE_MS * self._format.bytes_per_ms
        for start in range(0, len(audio), size):
            windows = await self._models.pool.detect(self._ear.hear, audio[start : start + size])
            for key in self._ear.keys_pressed():
                self._perform(self._session.key_pressed(key, int(time.time())))
            for window in windows:
                if self._detector is not None and self._detector.undecided:
                    await self._judge(self._detector)
                self._find_turns(window)
            self._keep_up()
        self._done_with(audio)

    def _done_with(self, audio: bytes) -> None:
        self._waiting_bytes -= len(audio)
        if self._waiting_bytes <= _MAX_WAITING_BYTES:
            self._room.set()

    def _listen(self, order: Listen) -> None:
        self._format = order.audio_format
        self._ear.change_format(order.audio_format)
        if order.turns is None:
            if self._detector is not None or self._open is None:
                self._drop_turn()
                self._open = Utterance(self._models, self._ear, self._ear.end_ms)
            self._detector = None
        elif self._detector is None:
            self._drop_turn()
            self._detector = TurnDetector(order.turns)
            self._detector.reset(self._ear.end_ms)
        else:
            self._detector.configure(order.turns)

    def _forget_turn(self, at_ms: int) -> None:
        self._drop_turn()
        if self._detector is None:
            self._open = Utterance(self._models, self._ear, at_ms)
        else:
            self._detector.reset(at_ms)

    def _drop_turn(self) -> None:
        self._drop_speculation()
        self._open = None

    def _find_turns(self, window: Window) -> None:
        if self._detector is None:
            return
        now_s = asyncio.get_running_loop().time()
        own = self.echo.is_echo(window.level, now_s)
        for mark in self._detector.feed(0.0 if own else window.probability, window.start_ms):
            self._turn(mark)

    async def _judge(self, detector: TurnDetector) -> None:
        """Judge by its words whether the turn is over; they are looked for since the pause began.

        Audio waits here, so that a turn ends at the same place however fast the audio comes.
        """
        text: str | None = None
        if self._speculation is not None:
            await asyncio.wait([self._speculation.task])
            text = self._speculation.task.result()
        detector.judge(Completeness.OPEN if text is None else judge(text))

    def _turn(self, mark: TurnMark) -> None:
        match mark:
            case SpeechStarted(audio_start_ms=start_ms, detected_ms=detected_ms):
                self._open = Utterance(self._models, self._ear, start_ms)
                self._speech_ms = detected_ms - 2 * WINDOW_MS
                self._decoded_ms = self._speech_ms + _EAGER_MS - _PARTIAL_MS
                self._perform(self._session.speech_started(start_ms, detected_ms))
                if self._detector is not None and self._detector.interrupts:
                    self.echo.interrupted()
            case SpeechPaused(audio_end_ms=end_ms) if self._open is not None:
                self._speculate(self._open, end_ms)
            case SpeechResumed():
                self._drop_speculation()
            case SpeechStopped(audio_end_ms=end_ms) if self._open is not None:
                if (item_id := self._session.turn_item_id) is not None:
                    self._closed[item_id] = self._open
                self._open = None
                self._perform(self._session.speech_stopped(end_ms))
            case _:
                pass

    def _keep_up(self) -> None:
        """After new audio: decode more of an open turn, and let go of what nobody will need."""
        end_ms = self._ear.end_ms
        self._session.heard(end_ms)
        utterance = self._open
        if (
            utterance is not None
            and end_ms - self._decoded_ms >= _PARTIAL_MS
            and (self._detector is None or self._detector.silent_ms < _QUIET_MS)
            and (self._partial is None or self._partial.done())
        ):
            self._decoded_ms = end_ms
            self._partial = self._tasks.create_task(self._decode_more(utterance, end_ms))
        needed = [one.needed_from_ms for one in (*self._closed.values(), *self._finishing)]
        if utterance is not None:
            needed.append(utterance.needed_from_ms)
        padding_ms = self._detector.prefix_padding_ms if self._detector is not None else 0
        self._ear.forget(min([end_ms - padding_ms - _SPARE_MS, *needed]))

    async def _decode_more(self, utterance: Utterance, end_ms: int) -> None:
        item_id = self._session.turn_item_id
        if self._detector is None or item_id is None or not self._session.transcribes:
            await utterance.settle(end_ms)
            return
        # The final recognition will tell whether the words are lost.
        text = await _unless_it_fails(utterance.partial(end_ms), "Recognition of a partial failed")
        if text is None:
            return
        if self._open is utterance:
            piece = utterance.captions.feed(text, eager=end_ms - self._speech_ms >= _EAGER_MS)
            if piece:
                self._perform(self._session.transcript_delta(item_id, piece))

    # -- the end of a turn ------------------------------------------------------------------------------

    def _speculate(self, utterance: Utterance, end_ms: int) -> None:
        # A partial that has not started yet would only delay the words that matter now.
        if self._partial is not None:
            self._partial.cancel()
        task = self._tasks.create_task(self._guess(utterance, end_ms))
        self._speculation = _Speculation(utterance, task)

    async def _guess(self, utterance: Utterance, end_ms: int) -> str | None:
        # The end of the turn tries once more and tells the client if that fails, too.
        words = utterance.words(end_ms, Priority.SPECULATIVE)
        text = await _unless_it_fails(words, "Recognition ahead of the end of a turn failed")
        if text is None:
            return None
        if self._speculation is not None and self._speculation.utterance is utterance:
            self._prepare(ended(text))
        return text

    def _drop_speculation(self) -> None:
        if self._speculation is not None:
            self._speculation.task.cancel()
            self._speculation = None
            self._prepare(None)

    async def _transcribe(self, order: Transcribe) -> None:
        utterance = self._closed.pop(order.item_id, None)
        if utterance is None:
            utterance = self._open or Utterance(self._models, self._ear, order.start_ms)
            self._open = None
        speculation, self._speculation = self._speculation, None
        if speculation is not None and speculation.utterance is not utterance:
            speculation.task.cancel()
            speculation = None
        if self._next_is_lost():
            message = f"Input transcription failed for item '{order.item_id}'."
            self._perform(self._session.transcript_failed(order.item_id, "DeploymentNotFound", message))
            return
        await self._begin_finishing(self._finish(order, utterance, speculation), utterance)

    async def _begin_finishing(self, finish: Coroutine[Any, Any, None], utterance: Utterance | None) -> None:
        key = utterance or Utterance(self._models, self._ear, self._ear.end_ms)
        while len(self._finishing) >= _MAX_FINISHING:
            await asyncio.wait(self._finish_tasks, return_when=asyncio.FIRST_COMPLETED)
        self._finishing.add(key)
        task = self._tasks.create_task(finish)
        self._finish_tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._finish_tasks.discard(task)
            self._finishing.discard(key)

        task.add_done_callback(done)

    async def _finish(
        self, order: Transcribe, utterance: Utterance, speculation: _Speculation | None
    ) -> None:
        text = await speculation.task if speculation is not None else None
        if text is None:
            text = await _unless_it_fails(utterance.words(order.end_ms, Priority.FINAL))
        if text is None:
            self._failed(order.item_id)
            return
        text = ended(text)
        if rest := utterance.captions.finish(text):
            self._perform(self._session.transcript_delta(order.item_id, rest))
        self._perform(self._session.transcript_final(order.item_id, text, utterance.segments))

    async def _transcribe_given(self, order: TranscribeAudio) -> None:
        """Recognise audio that came inside an item, through an ear of its own."""
        text = await _unless_it_fails(self._words_of(order))
        if text is None:
            self._failed(order.item_id)
        else:
            self._perform(self._session.transcript_final(order.item_id, ended(text)))

    async def _words_of(self, order: TranscribeAudio) -> str:
        ear = Ear(self._models.detector, order.audio_format)
        size = _PIECE_MS * order.audio_format.bytes_per_ms
        for start in range(0, len(order.audio), size):
            await self._models.pool.detect(ear.hear, order.audio[start : start + size])
        return await Utterance(self._models, ear, 0).words(ear.end_ms, Priority.FINAL)

    def _failed(self, item_id: str) -> None:
        message = f"Input transcription failed for item '{item_id}'."
        self._perform(self._session.transcript_failed(item_id, "transcription_failed", message))


async def _unless_it_fails(words: Awaitable[str], failure: str = "Recognition failed") -> str | None:
    """Return what was recognised; ``None``, and a line in the log, where that fails."""
    try:
        return await words
    except Exception:
        # The boundary of the models: a turn without words must not end the session.
        logger.exception(failure)
        return None
